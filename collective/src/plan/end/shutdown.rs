//! Lets members that have made plans leave together: none is gone before all are ready to leave.
//!
//! A start is complete for a member when its results are there and its inputs may be changed. Other members may still
//! read from the plan's buffers in its memory, or forward data through them. So a member that leaves first publishes
//! the number of its starts ([`departed`](crate::plan::end::departed)), because others may wait for more starts. Then
//! it waits until all its starts have run, and takes part in one instance of the [stages](crate::dissemination) of a
//! fuzzy barrier. It is gone when the instance is complete. It raises the signal of a stage itself when the stage
//! before is complete, and needs no command for that. A member that has died, or is gone without having taken part,
//! ends it.
//!
//! No other barrier does this: ranks outside the communicator do not leave, so it is not one of the job; and a message
//! of a collective call does not reach a rank that is leaving.

use crate::dissemination::{Dissemination, DisseminationArrival};
use crate::plan::registry::Plans;
use crate::plan::state::PlanState;
use std::sync::{Arc, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::base::sync::{AtomicBool, AtomicUsize, Ordering};
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::fabric::Fabric;
use tasuki_message::FinalizeHook;

/// How the members of a communicator that have made plans leave together.
#[derive(Debug)]
pub(crate) struct PlanShutdown {
    plans: Plans,
    stages: Arc<Dissemination>,
    fabric: Arc<dyn Fabric>,
    /// True once this member has waited for its starts to run.
    is_quiescent: AtomicBool,
    /// Number of stages in which this member has notified its partner.
    notified: AtomicUsize,
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
            notified: AtomicUsize::default(),
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

    /// Notifies the partners of all stages that may begin. Returns true if all stages are complete.
    fn notify_partners(&self, worker: &Worker) -> Result<bool> {
        loop {
            let notified = self.notified.load(Ordering::Relaxed);
            if self.stages.missing_before(notified, &*self.fabric, 1).is_some() {
                return Ok(false);
            }
            if notified == self.stages.len() {
                return Ok(true);
            }
            self.notified.store(notified + 1, Ordering::Relaxed);
            self.stages.notify_partner(worker, notified)?;
        }
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
        let (stages, fabric) = (self.stages.clone(), self.fabric.clone());
        let until = self.notified.load(Ordering::Relaxed);
        Some(Arc::new(DisseminationArrival { stages, fabric, instance: 1, until }))
    }

    fn finalize(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
}
