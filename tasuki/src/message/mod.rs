//! Nonblocking sends and receives: owned requests, and scopes that borrow their buffers.

pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod scope_list;
