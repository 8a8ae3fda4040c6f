//! Compiles the part of a rank to steps: for an execution, which the calling thread runs, or for repeating queues.

pub(crate) mod calls;
pub(crate) mod inline_flag;
pub(crate) mod owner_only_steps;
pub(crate) mod placement;
pub(crate) mod queues;
pub(crate) mod steps;
