//! Broadcast algorithms: all ranks get the root's bytes.

pub(crate) mod scatter_allgather;
pub(crate) mod session_mode;
pub(crate) mod split_copy;
pub(crate) mod tree;
pub(crate) mod trinaryx3;
