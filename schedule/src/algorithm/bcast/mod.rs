//! Broadcast algorithms: all ranks get the root's bytes.

pub(crate) mod put_and_get;
pub(crate) mod scatter_allgather;
pub(crate) mod session_mode;
pub(crate) mod tree;
pub(crate) mod trinaryx3;
