//! Handlers (active messages): the registry, and calls of handlers on other ranks by name or number.

pub(crate) mod call;
pub(crate) mod handler_number;
pub(crate) mod inline_args;
pub(crate) mod registry;
mod reply_request;
