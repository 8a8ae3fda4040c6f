//! Memory that other ranks can access: typed addresses, arrays, registered buffers, one-sided operations.

pub(crate) mod accumulate;
pub(crate) mod allocate;
pub(crate) mod array;
pub(crate) mod atomic_op;
pub(crate) mod one_sided;
pub(crate) mod pointer;
pub(crate) mod registered;
pub(crate) mod transfer_request;
pub(crate) mod word;
