//! Bytes that a rank takes, against the formulas of docs/guide/memory.md: alone, with messages, with plans.

pub(crate) mod message_memory;
pub(crate) mod plan_memory;
pub(crate) mod rank_memory;
