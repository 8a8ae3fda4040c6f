//! Handlers: the registry, and calls of them on other ranks.

pub(crate) mod call;
pub(crate) mod registry;
