//! Lets members that have made plans leave together: none is gone before all are ready to leave.
//!
//! A start is complete for a member when its results are there and its inputs may be changed. Other members may still
//! read from the plan's buffers in its memory, or forward data through them. So a member that leaves first publishes
//! the number of its starts ([`departed`](crate::plan::end::departed)), because others may wait for more starts. Then
//! it waits until all its starts have run, and enters a dissemination barrier of all members. It is gone when the
//! barrier is complete. Each round of the barrier begins when the previous round is complete. A member that has died,
//! or is gone without having entered the barrier, ends it.

use crate::dissemination::Dissemination;
use crate::plan::registry::Plans;
use crate::plan::state::PlanState;
use std::sync::{Arc, PoisonError};
use tasuki_core::base::sync::{AtomicBool, AtomicUsize, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::fabric::Fabric;
use tasuki_core::node::node_state::RankStage;
use tasuki_message::FinalizeHook;

/// The barrier in which the members of a communicator that have made plans leave together.
#[derive(Debug)]
pub(crate) struct PlanShutdown {
    plans: Plans,
    stages: Arc<Dissemination>,
    fabric: Arc<dyn Fabric>,
    /// True once this member has waited for its starts to run.
    is_quiescent: AtomicBool,
    /// Number of rounds in which this member has notified its partner.
    notified: Arc<AtomicUsize>,
    /// True once all members have dropped the communicator and its plans.
    is_freed: Arc<AtomicBool>,
}

impl PlanShutdown {
    pub(crate) fn new(
        plans: Plans,
        stages: Dissemination,
        is_freed: Arc<AtomicBool>,
        worker: &Worker,
    ) -> PlanShutdown {
        PlanShutdown {
            is_freed,
            plans,
            stages: Arc::new(stages),
            fabric: worker.shared_fabric().clone(),
            is_quiescent: AtomicBool::new(false),
            notified: Arc::default(),
        }
    }

    fn plans(&self) -> Vec<Arc<PlanState>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Publishes the numbers of starts, and waits until all starts have run. Error: some cannot complete.
    fn settle(&self) -> Result<()> {
        let plans = self.plans();
        plans.iter().try_for_each(|plan| plan.publish_starts())?; // another member may wait for more starts
        let outcomes: Vec<_> = plans.iter().map(|plan| plan.settle_at_end()).collect();
        outcomes.into_iter().collect()
    }

    /// Notifies the partners of all rounds that may begin. Returns true if all rounds are complete.
    fn notify_partners(&self, worker: &Worker) -> Result<bool> {
        loop {
            let notified = self.notified.load(Ordering::Relaxed);
            if notified == self.stages.len() {
                return Ok(self.stages.have_reached(worker, 1));
            }
            if notified > 0 && !self.stages.is_notified(&*self.fabric, notified - 1) {
                return Ok(false);
            }
            self.notified.store(notified + 1, Ordering::Relaxed);
            self.stages.notify_partner(worker, notified)?;
        }
    }
}

/// The event that a member can continue its shutdown.
#[derive(Debug)]
struct ShutdownRound {
    stages: Arc<Dissemination>,
    fabric: Arc<dyn Fabric>,
    notified: Arc<AtomicUsize>,
}

impl WaitEvent for ShutdownRound {
    fn happened(&self) -> bool {
        let notified = self.notified.load(Ordering::Relaxed);
        if notified < self.stages.len() {
            return notified == 0 || self.stages.is_notified(&*self.fabric, notified - 1);
        }
        self.stages.missing_partner(&*self.fabric).is_none()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.stages.missing_partner(&*self.fabric)?, RankStage::Left))
    }
}

impl FinalizeHook for PlanShutdown {
    /// A member that has freed its plans leaves together with the others, unless all have dropped the communicator.
    fn is_finalized(&self, _worker: &Worker) -> bool {
        self.is_freed.load(Ordering::Relaxed)
    }

    fn announce_finalize(&self, worker: &Worker) -> Result<bool> {
        if self.is_freed.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if !self.is_quiescent.load(Ordering::Relaxed) {
            self.is_quiescent.store(true, Ordering::Relaxed);
            // If some starts cannot complete, this member notifies its partners all the same: theirs may be complete,
            // and they wait for it. It runs no more steps.
            let _ = self.settle();
        }
        self.notify_partners(worker)
    }

    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        let (stages, fabric, notified) = (self.stages.clone(), self.fabric.clone(), self.notified.clone());
        Some(Arc::new(ShutdownRound { stages, fabric, notified }))
    }

    fn finalize(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
}
