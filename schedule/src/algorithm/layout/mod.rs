//! Building blocks of several algorithms: members, trees over ranks, and the layout of blocks.

pub(crate) mod incoming_values;
pub(crate) mod leaders;
pub(crate) mod subtree_blocks;
pub(crate) mod swap_buffers;
pub(crate) mod tree;
