//! Messages beyond the blocking calls: owned requests, scopes that borrow their buffers, buffered sends, and
//! variants.

mod buffered_sends;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod scope_list;
pub(crate) mod slot;
mod variants;
