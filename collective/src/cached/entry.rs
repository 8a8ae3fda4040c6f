//! The cache of compiled schedules that a communicator holds ([`ScheduleCache`]), and what it keeps for a kind of
//! calls: the compiled steps, and the comparison of two variants of them.

use crate::cached::kind_cache::KindCache;
use crate::cached::variant_trial::VariantTrial;
use tasuki_core::engine::executor::Execution;

/// An execution that the members have compiled together.
#[derive(Debug)]
pub(crate) struct CachedSchedule {
    /// The number of its plan, which is needed to free it.
    pub(crate) number: u64,
    pub(crate) execution: Execution,
}

/// The steps for calls of one kind.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    pub(crate) now: CachedSchedule,
    /// The comparison with another variant, if there is one for this kind.
    pub(crate) trial: Option<VariantTrial>,
}

/// The compiled steps that a communicator keeps for repeated calls. `schedule_cache.rs` looks them up and runs them.
pub(crate) type ScheduleCache = KindCache<CacheEntry>;

impl CacheEntry {
    /// Returns the numbers of the plans that its executions belong to.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> {
        let usual = self.trial.as_ref().and_then(VariantTrial::usual).map(|usual| usual.number);
        usual.into_iter().chain([self.now.number])
    }
}
