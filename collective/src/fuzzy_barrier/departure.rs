//! A member that leaves tells others which fuzzy barriers it has not started.
//!
//! It may stay for long after its program has ended: others need its plans or its messages, or it has barriers under
//! way. So the members that it notifies do not wait until it is gone. If it learns, while it stays, that a barrier which
//! it has started will not complete, it tells them so.

use crate::dissemination::Dissemination;
use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::Lane;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::fabric::Fabric;
use tasuki_core::node::node_state::RankStage;
use tasuki_message::FinalizeHook;

/// What a member tells others about the fuzzy barriers of a communicator when it leaves.
#[derive(Debug)]
pub(crate) struct FuzzyDeparture {
    pub(super) stages: Arc<Dissemination>,
    pub(super) monitor: Arc<FailureMonitor>,
    /// How many barriers this member has started.
    pub(super) started: Arc<AtomicU64>,
    fabric: Arc<dyn Fabric>,
    /// One more than the last barrier that will complete, as far as it was told; 0: it was not.
    published: AtomicU64,
}

impl FuzzyDeparture {
    pub(crate) fn new(
        worker: &Worker,
        stages: Dissemination,
        monitor: &Arc<FailureMonitor>,
    ) -> Arc<FuzzyDeparture> {
        Arc::new(FuzzyDeparture {
            stages: Arc::new(stages),
            monitor: monitor.clone(),
            started: monitor.lane_count(Lane::FuzzyBarrier).clone(),
            fabric: worker.shared_fabric().clone(),
            published: AtomicU64::new(0),
        })
    }
}

impl FinalizeHook for FuzzyDeparture {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        true
    }

    fn will_leave(&self, worker: &Worker) {
        let last = self.started.load(Ordering::Relaxed);
        let published = self.published.compare_exchange(0, last + 1, Ordering::Relaxed, Ordering::Relaxed);
        if published.is_ok() {
            self.stages.publish_departure(worker, last);
        }
    }

    /// Passes on what others have told, until the barriers that this member has started are complete, as far as they
    /// will be.
    fn announce_finalize(&self, worker: &Worker) -> Result<bool> {
        let Some(mut last) = self.published.load(Ordering::Relaxed).checked_sub(1) else { return Ok(true) };
        while let Some((known, _)) = self.stages.departed_before(&*self.fabric, last) {
            self.stages.publish_fewer(worker, last - known);
            last = known;
            self.published.store(last + 1, Ordering::Relaxed);
        }
        Ok(self.monitor.is_failed() || self.stages.have_reached(worker, last))
    }

    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        let last = self.published.load(Ordering::Relaxed).saturating_sub(1);
        let (stages, monitor) = (self.stages.clone(), self.monitor.clone());
        Some(Arc::new(DepartureEvent { stages, monitor, fabric: self.fabric.clone(), last }))
    }

    fn finalize(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
}

/// All members have started a barrier, or one has told that it will not complete.
#[derive(Debug)]
struct DepartureEvent {
    stages: Arc<Dissemination>,
    monitor: Arc<FailureMonitor>,
    fabric: Arc<dyn Fabric>,
    last: u64,
}

impl DepartureEvent {
    fn missing(&self) -> Option<Rank> {
        self.stages.missing_before(self.stages.len(), &*self.fabric, self.last)
    }
}

impl WaitEvent for DepartureEvent {
    fn happened(&self) -> bool {
        self.monitor.is_failed()
            || self.stages.departed_before(&*self.fabric, self.last).is_some()
            || self.missing().is_none()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.missing()?, RankStage::Left))
    }
}
