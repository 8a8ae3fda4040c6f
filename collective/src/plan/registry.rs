//! The plans of a communicator, and what a member needs to make one and to leave afterwards.

use crate::agreed_free::AgreedFree;
use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::StartedPlans;
use crate::group::Group;
use crate::plan::state::PlanState;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};

/// The plans of a communicator that exist or wait to be freed.
pub(crate) type Plans = Arc<Mutex<AgreedFree<PlanState>>>;

/// The plans of a communicator, as one member sees them.
#[derive(Debug)]
pub(crate) struct PlanRegistry {
    pub(crate) group: Group,
    pub(crate) monitor: Arc<FailureMonitor>,
    /// The plans that exist or wait to be freed.
    pub(crate) plans: Plans,
    /// The plans of nonblocking calls, which members make in different orders.
    nonblocking: Mutex<Vec<Arc<PlanState>>>,
    /// The first of the signals that members with plans use to leave together.
    pub(crate) shutdown_signal: OnceLock<u32>,
    /// The first of the signals of fuzzy barriers that were taken for this communicator.
    pub(crate) fuzzy_signal: OnceLock<u32>,
    /// Set when this member is registered to leave that way.
    pub(crate) leaves_together: OnceLock<()>,
    /// True once this member has given up all that it had begun on the communicator, which has failed and which it has
    /// dropped.
    pub(crate) is_given_up: AtomicBool,
    /// True once all members have dropped the communicator and its memory is freed.
    pub(crate) is_freed: Arc<AtomicBool>,
    /// Bytes of this rank's parts of plans, of all its communicators.
    pub(crate) plan_bytes: Arc<AtomicU64>,
}

impl StartedPlans for Mutex<AgreedFree<PlanState>> {
    fn starts(&self, plan: u64) -> Option<u64> {
        self.lock().unwrap_or_else(PoisonError::into_inner).get(plan).map(|plan| plan.starts())
    }
}

impl PlanRegistry {
    pub(crate) fn new(
        group: Group,
        monitor: Arc<FailureMonitor>,
        plans: Plans,
        plan_bytes: Arc<AtomicU64>,
    ) -> Arc<PlanRegistry> {
        Arc::new(PlanRegistry {
            group,
            monitor,
            plans,
            nonblocking: Mutex::default(),
            shutdown_signal: OnceLock::new(),
            fuzzy_signal: OnceLock::new(),
            leaves_together: OnceLock::new(),
            is_given_up: AtomicBool::new(false),
            is_freed: Arc::default(),
            plan_bytes,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, AgreedFree<PlanState>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of buffers and signals that the plans and the cached schedules of this rank's communicators
    /// use.
    pub(crate) fn bytes(&self) -> u64 {
        self.plan_bytes.load(Ordering::Relaxed)
    }

    /// Marks a plan as dropped by this member.
    pub(crate) fn give_up(&self, number: u64) {
        self.lock().take(number);
    }

    /// Adds the plan of nonblocking calls.
    pub(crate) fn enter_nonblocking(&self, plan: Arc<PlanState>) {
        self.nonblocking.lock().unwrap_or_else(PoisonError::into_inner).push(plan);
    }

    /// Frees the plans of nonblocking calls. No member may run their steps any more.
    pub(crate) fn free_nonblocking(&self) {
        let plans = std::mem::take(&mut *self.nonblocking.lock().unwrap_or_else(PoisonError::into_inner));
        plans.iter().for_each(|plan| plan.free(self.group.messages()));
    }

    /// Takes the words of all members, and frees the plans that no member needs any more.
    pub(crate) fn free_what_is_over(&self, words: impl Iterator<Item = u64>) {
        let over = self.lock().settle(words);
        over.iter().for_each(|plan| plan.free(self.group.messages()));
    }
}
