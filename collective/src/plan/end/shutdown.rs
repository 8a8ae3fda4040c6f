//! How members that have made plans leave: none is gone before all have come so far.
//!
//! A start is over for a member when it has what it gets, and what it gave may be changed. Others may still fetch from
//! places of the plan's own that are its memory, or hand on through them. So each member, when it leaves, waits until
//! all that it has started has been run, says so, and is gone when all have said so: one round of a dissemination
//! barrier after the other, whenever the one before was heard. A member that is gone without a word, or has died, ends
//! that. Before it waits, it says what it has started ([starts](crate::plan::end::departed)): others may be waiting for
//! more.

use crate::dissemination::Dissemination;
use crate::plan::{PlanState, Plans};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{WaitEvent, Worker};
use tasuki_core::fabric::Fabric;
use tasuki_message::FinalizeHook;

/// The leave of a communicator's members that have made plans.
#[derive(Debug)]
pub(crate) struct PlanShutdown {
    plans: Plans,
    stages: Arc<Dissemination>,
    fabric: Arc<dyn Fabric>,
    /// Whether all that was started has been run.
    is_quiescent: AtomicBool,
    /// How many rounds were told.
    told: Arc<AtomicUsize>,
}

impl PlanShutdown {
    pub(crate) fn new(plans: Plans, stages: Dissemination, worker: &Worker) -> PlanShutdown {
        PlanShutdown {
            plans,
            stages: Arc::new(stages),
            fabric: worker.shared_fabric().clone(),
            is_quiescent: AtomicBool::new(false),
            told: Arc::default(),
        }
    }

    fn plans(&self) -> Vec<Arc<PlanState>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Says what was started, and waits until that has been run, or cannot be. Error: some cannot be.
    fn settle(&self) -> Result<()> {
        let plans = self.plans();
        plans.iter().try_for_each(|plan| plan.publish_starts())?; // somebody may wait for more
        let outcomes: Vec<_> = plans.iter().map(|plan| plan.settle_at_end()).collect();
        outcomes.into_iter().collect()
    }

    /// The rounds that may be told are told. Whether all are, and all were heard.
    fn tell_rounds(&self, worker: &Worker) -> Result<bool> {
        loop {
            let told = self.told.load(Ordering::Relaxed);
            if told == self.stages.len() {
                return Ok(self.stages.have_reached(worker, 1));
            }
            if told > 0 && !self.stages.has_heard(&*self.fabric, told - 1) {
                return Ok(false);
            }
            self.told.store(told + 1, Ordering::Relaxed);
            self.stages.tell_in(worker, told)?;
        }
    }
}

/// That a member can go on with its leave.
#[derive(Debug)]
struct ShutdownRound {
    stages: Arc<Dissemination>,
    fabric: Arc<dyn Fabric>,
    told: Arc<AtomicUsize>,
}

impl WaitEvent for ShutdownRound {
    fn happened(&self) -> bool {
        let told = self.told.load(Ordering::Relaxed);
        if told < self.stages.len() {
            return told == 0 || self.stages.has_heard(&*self.fabric, told - 1);
        }
        self.stages.not_heard(&*self.fabric).is_none()
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        Some((self.stages.not_heard(&*self.fabric)?, Stage::Left))
    }
}

impl FinalizeHook for PlanShutdown {
    /// Never before the end: all members leave together, also one that has freed its plans.
    fn is_finalized(&self, _worker: &Worker) -> bool {
        false
    }

    fn announce_finalize(&self, worker: &Worker) -> Result<bool> {
        if !self.is_quiescent.load(Ordering::Relaxed) {
            self.is_quiescent.store(true, Ordering::Relaxed);
            self.settle()?;
        }
        self.tell_rounds(worker)
    }

    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        let (stages, fabric, told) = (self.stages.clone(), self.fabric.clone(), self.told.clone());
        Some(Arc::new(ShutdownRound { stages, fabric, told }))
    }

    fn finalize(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
}
