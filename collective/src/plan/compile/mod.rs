//! Compiles the part of a rank into what is run: commands for the engine, or steps for its own calls.

pub(crate) mod commands;
pub(crate) mod inline_flag;
pub(crate) mod owner_only_steps;
pub(crate) mod steps;
