//! Building blocks of several algorithms: leaders of nodes, trees over ranks, and the layout of blocks.

pub(crate) mod incoming_values;
pub(crate) mod node_leaders;
pub(crate) mod subtree_blocks;
pub(crate) mod swap_buffers;
pub(crate) mod tree;
