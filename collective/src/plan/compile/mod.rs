//! Compiles the part of a rank: to commands of repeating queues, or to steps that the rank runs in its own calls.

pub(crate) mod commands;
pub(crate) mod inline_flag;
pub(crate) mod owner_only_steps;
pub(crate) mod steps;
