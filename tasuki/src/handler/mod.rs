//! Handlers (active messages): functions of the program that any rank may call on any rank.

pub(crate) mod argument;
pub(crate) mod call;
pub(crate) mod declaration;
#[cfg(feature = "serde")]
mod object;
pub(crate) mod registry;
pub(crate) mod reply;
