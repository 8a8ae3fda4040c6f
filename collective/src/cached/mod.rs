//! Repeated collective calls: the cache of compiled schedules, and the choice between two variants at run time.

pub(crate) mod autotune;
pub(crate) mod entry;
pub(crate) mod kind_cache;
pub(crate) mod schedule_cache;
pub(crate) mod variant_trial;
