//! Collective calls: blocking, nonblocking, prepared as plans, of unequal counts (vector), and on neighbourhoods.

// The documentation lists the methods in the order of the modules.
pub(crate) mod blocking;

pub(crate) mod nonblocking;

pub(crate) mod plan;

pub(crate) mod chunked_plan;
pub(crate) mod vector;

pub(crate) mod neighbourhood;
