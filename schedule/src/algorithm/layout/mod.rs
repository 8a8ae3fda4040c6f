//! What several algorithms build on: who takes part, trees over ranks, and where blocks lie.

pub(crate) mod leaders;
pub(crate) mod subtree_blocks;
pub(crate) mod swap_buffers;
pub(crate) mod tree;
