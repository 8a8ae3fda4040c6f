//! Messages beyond the blocking calls: owned requests, scopes that borrow their buffers, buffered sends, and variants.

pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod scope_list;
mod send_buffer;
mod variants;
