//! The simulated network: which operations it accepts, what they do to the memories of ranks, and how they end.

pub(crate) mod admission;
pub(crate) mod completion;
pub(crate) mod fabric_collectives;
pub(crate) mod group_state;
pub(crate) mod in_flight;
pub(crate) mod memory;
pub(crate) mod transfer;
pub(crate) mod word_operations;
