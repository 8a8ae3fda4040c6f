//! Collective calls: blocking, nonblocking, of unequal counts (vector), on neighbourhoods, and prepared as plans.

pub(crate) mod blocking;
pub(crate) mod chunked_plan;
pub(crate) mod neighbourhood;
pub(crate) mod nonblocking;
pub(crate) mod plan;
pub(crate) mod vector;
