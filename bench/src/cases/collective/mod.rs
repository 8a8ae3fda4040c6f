//! Collective operations: calls, plans that are started again and again, plans that one rank runs, fuzzy barriers.

pub(crate) mod calls;
pub(crate) mod fuzzy_barrier;
pub(crate) mod persistent;
pub(crate) mod single_driver;
