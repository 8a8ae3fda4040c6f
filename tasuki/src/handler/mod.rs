//! Handlers (active messages): the registry, and calls of handlers on other ranks.

pub(crate) mod call;
pub(crate) mod registry;
