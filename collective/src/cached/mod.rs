//! Repeated collective calls: compiled schedules that are kept, and the choice between two variants at run time.

pub(crate) mod autotune;
pub(crate) mod schedule_cache;
