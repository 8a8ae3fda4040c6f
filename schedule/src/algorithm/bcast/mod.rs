//! Broadcasts.

pub(crate) mod scatter_allgather;
pub(crate) mod session;
pub(crate) mod split_copy;
pub(crate) mod tree;
pub(crate) mod trinaryx3;
