//! The state of a plan that is shared by the `Plan`, the threads that run it and the list of agreed frees: its
//! memory, and the form in which its starts run.

use crate::agreed_free::MadeTogether;
use crate::failure::monitor::FailureMonitor;
use crate::plan::compile::queues::StartThreshold;
use crate::plan::end::departed::DepartedMembers;
use crate::plan::run::in_calls::InCalls;
use crate::plan::setup::layout::{PlacedPart, PlanAddress};
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::{self, Condition, RepeatingQueue, WaitEvent, Worker};
use tasuki_core::fabric::{SignalCell, certainly_reached};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::layout::SIGNAL_STRIDE;
use tasuki_message::Context;

/// After this many unsuccessful tests of a start, its wait probe checks that the start can still complete. The probe
/// takes longer than a test.
const ASKED_EVERY: u32 = 256;

/// In place of a number of starts: the member takes no part in the plan, so that nobody waits for its starts.
pub(crate) const NO_PART: u64 = u64::MAX >> 2;

/// The state of a plan that is shared by the `Plan`, the threads that run it and the list of agreed frees.
#[derive(Debug)]
pub(crate) struct PlanState {
    pub(crate) worker: Arc<Worker>,
    /// False if this member exchanges nothing with others in a start.
    pub(crate) takes_part: bool,
    pub(crate) own: PlacedPart,
    pub(crate) signals: u32,
    pub(crate) form: Form,
    pub(crate) started: Arc<AtomicU64>,
    /// Number of starts after which all values of a chunked start have passed; 0 if no chunked start is under way.
    pub(crate) passed_after: AtomicU64,
    /// True if the plan was dropped after a panic had ended its steps.
    pub(crate) is_left: AtomicBool,
    /// True once this member has [stopped](PlanState::stop) it.
    pub(crate) is_stopped: AtomicBool,
    /// Number of tests of a start that was not complete.
    pub(crate) asked: AtomicU32,
    /// Publishes the number of starts when this member leaves, and detects members that have left without making a
    /// start. None if members do not wait for each other's queues.
    pub(crate) starts: Option<(Arc<DepartedMembers>, u32)>,
    pub(crate) operator: Option<u32>,
    /// The counter that includes its bytes.
    pub(crate) counted: Arc<AtomicU64>,
}

/// The form in which a plan runs.
#[derive(Debug)]
pub(crate) enum Form {
    /// Repeating queues, which any rank may run, and the thresholds that the end of a start waits for.
    Queues(Box<[RepeatingQueue]>, Box<[(SignalCell, StartThreshold)]>),
    /// An execution, which the calling thread runs.
    Execution(Arc<InCalls>),
    /// The execution of cached calls. The cache holds it.
    Calls,
}

impl PlanState {
    /// Returns true if everything that this member started has run, also steps for which only others wait.
    pub(crate) fn has_run_all(&self) -> bool {
        let runs = |own: &RepeatingQueue| self.worker.has_run_all(own);
        let is_stopped = self.is_stopped.load(Ordering::Relaxed);
        is_stopped
            || self.is_at_rest()
                && match &self.form {
                    Form::Queues(queues, _) => queues.iter().all(runs),
                    Form::Execution(_) | Form::Calls => true,
                }
    }

    /// Returns true if the last start is complete for this member, and no chunked start will make another one.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.passes() && self.is_over()
    }

    /// Returns true if a chunked start is under way.
    pub(crate) fn passes(&self) -> bool {
        self.passed_after.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of starts that this member has made, counting all those of a chunked start under way;
    /// [`NO_PART`] if others do not need them.
    pub(crate) fn starts(&self) -> u64 {
        if !self.takes_part {
            return NO_PART;
        }
        self.started.load(Ordering::Relaxed).max(self.passed_after.load(Ordering::Relaxed))
    }

    /// Begins a chunked start that consists of `starts` starts of the plan; 0 ends it.
    pub(crate) fn set_chunked_starts(&self, starts: u64) {
        let after = if starts == 0 { 0 } else { self.started.load(Ordering::Relaxed) + starts };
        self.passed_after.store(after, Ordering::Relaxed);
    }

    /// Returns true if a panic has ended the steps of this member. Other members may still wait for those steps.
    pub(crate) fn is_broken(&self) -> bool {
        let is_broken = matches!(&self.form, Form::Execution(in_calls) if in_calls.is_broken());
        is_broken || self.is_left.load(Ordering::Relaxed)
    }

    /// Lets no step of the last start run any more, if this rank's calls run them: the communicator has failed.
    pub(crate) fn abandon(&self) {
        if let Form::Execution(in_calls) = &self.form {
            in_calls.abandon();
        }
    }

    /// Ends the plan for this member, which has dropped it, after the communicator has failed. Returns when no step of
    /// this member runs any more, on any rank, and none will. Effects of its last steps may still be on their way.
    pub(crate) fn stop(&self) {
        if self.is_stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        match &self.form {
            Form::Queues(queues, _) => queues.iter().for_each(|own| self.worker.drop_repeating_queue(own)),
            Form::Execution(in_calls) => in_calls.abandon(),
            Form::Calls => {}
        }
    }

    /// Returns true if the last start is complete for this member.
    pub(crate) fn is_over(&self) -> bool {
        let last = self.started.load(Ordering::Relaxed);
        let is_met = |(cell, start_threshold): &(SignalCell, StartThreshold)| {
            certainly_reached(cell.read(self.worker.fabric()), start_threshold.in_start(last))
        };
        last == 0
            || match &self.form {
                Form::Queues(_, start_thresholds) => start_thresholds.iter().all(is_met),
                Form::Execution(in_calls) => in_calls.is_at_rest(),
                Form::Calls => true,
            }
    }

    /// Ends a chunked start, and publishes the number of starts, because this member leaves.
    pub(crate) fn publish_starts(&self) -> Result<()> {
        self.set_chunked_starts(0);
        if self.is_stopped.load(Ordering::Relaxed) {
            return Ok(()); // the others may have freed the signal
        }
        self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.publish(&self.worker, self.starts()))
    }

    /// Waits until all starts have run, after [`publish_starts`](Self::publish_starts). If they cannot complete,
    /// publishes that and returns an error.
    pub(crate) fn settle_at_end(&self) -> Result<()> {
        self.settle().or_else(|error| {
            self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.publish_one_less(&self.worker))?;
            Err(error)
        })
    }

    /// Waits until all starts have run. Error: they cannot complete.
    pub(crate) fn settle(&self) -> Result<()> {
        let call = || "the end of a plan that was dropped".to_string();
        if self.is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        while !self.is_at_rest() && !self.is_broken() {
            if self.is_over() {
                self.worker.relax(&call())?; // the next pieces of a chunked start begin in this call
            } else {
                self.wait(&call)?;
            }
        }
        while !self.has_run_all() {
            self.check_others(&call)?;
            self.worker.relax(&call())?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn wait(&self, call: &dyn Fn() -> String) -> Result<()> {
        let last = self.started.load(Ordering::Relaxed);
        let at_end = |&(cell, start_threshold): &(SignalCell, StartThreshold)| engine::SignalTarget {
            cell,
            threshold: start_threshold.in_start(last),
        };
        match &self.form {
            _ if last == 0 => Ok(()),
            Form::Execution(in_calls) => in_calls.wait(call),
            Form::Queues(queues, start_thresholds) => self.worker.wait_for_repeating_queues(
                queues,
                start_thresholds.iter().map(at_end),
                self.wait_probe(),
                call,
            ),
            Form::Calls => Ok(()),
        }
    }

    /// Returns true if the last start is complete. Makes progress.
    pub(crate) fn test(&self, call: &dyn Fn() -> String) -> Result<bool> {
        let last = self.started.load(Ordering::Relaxed);
        match &self.form {
            _ if last == 0 => Ok(true),
            Form::Execution(in_calls) => in_calls.test(call),
            Form::Queues(queues, start_thresholds) => {
                self.worker.run_repeating_queues(queues);
                for (cell, start_threshold) in start_thresholds {
                    let condition = Condition::Signal(*cell, start_threshold.in_start(last), None);
                    if !self.worker.test(&condition, call)? {
                        return self.check_others_now_and_then(call).map(|()| false);
                    }
                }
                Ok(true)
            }
            Form::Calls => Ok(true),
        }
    }

    /// Once in many calls, returns an error if a start cannot complete because a member has left without it.
    fn check_others_now_and_then(&self, call: &dyn Fn() -> String) -> Result<()> {
        let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1); // a lost count does not matter
        self.asked.store(asked, Ordering::Relaxed);
        if asked.is_multiple_of(ASKED_EVERY) { self.check_others(call) } else { Ok(()) }
    }

    fn wait_probe(&self) -> u32 {
        self.starts.as_ref().map_or(0, |&(_, wait_probe)| wait_probe)
    }

    /// Returns an error if a start cannot complete, also if only a look at all members shows that.
    pub(crate) fn look(&self, monitor: &FailureMonitor, call: &dyn Fn() -> String) -> Result<()> {
        self.check_others(call)?;
        monitor.look(&self.worker).map_or(Ok(()), |cause| Err(self.worker.fault(cause, call)))
    }

    fn check_others(&self, call: &dyn Fn() -> String) -> Result<()> {
        self.worker
            .wait_probes()
            .error_of(self.wait_probe())
            .map_or(Ok(()), |cause| Err(self.worker.fault(cause, call)))
    }

    /// Frees all memory and signals of the plan. No member may reach them any more.
    pub(crate) fn free(&self, context: &Context) {
        match &self.form {
            Form::Queues(..) if self.is_stopped.load(Ordering::Relaxed) => {}
            Form::Queues(queues, _) => queues.iter().for_each(|own| self.worker.drop_repeating_queue(own)),
            Form::Execution(in_calls) => context.progress().remove_continuation(&**in_calls),
            Form::Calls => {}
        }
        self.starts.iter().for_each(|&(_, wait_probe)| self.worker.wait_probes().remove(wait_probe));
        self.own.give_back(&self.worker, self.signals, &self.counted);
        self.operator.iter().for_each(|&number| self.worker.operators().remove(number));
    }
}

/// The event that the last start of a plan is complete for this member.
#[derive(Debug)]
pub(crate) struct PlanOver {
    pub(crate) plan_state: Arc<PlanState>,
    pub(crate) call: String,
}

impl WaitEvent for PlanOver {
    fn happened(&self) -> bool {
        self.plan_state.is_over()
    }

    fn call(&self) -> String {
        self.call.clone()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None // any member may be missing: the task looks for those that have left
    }
}

impl MadeTogether for PlanState {
    fn is_over(&self) -> bool {
        self.has_run_all()
    }
}

impl PlacedPart {
    /// Returns the bytes that the part uses with `signals` signals.
    pub(crate) fn bytes(&self, signals: u32) -> u64 {
        self.layout.bytes + self.beside + u64::from(signals) * SIGNAL_STRIDE
    }

    /// Frees the memory and the `signals` signals of this rank's own part.
    pub(crate) fn give_back(&self, worker: &Worker, signals: u32, counted: &AtomicU64) {
        counted.fetch_sub(self.bytes(signals), Ordering::Relaxed);
        let PlanAddress { block, signals: first, .. } = self.base;
        if block != 0 {
            let freed = worker.registry().free(block);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        // Fails only if the job is over; then nobody gets the signals.
        let _ = worker.cure_signals(first, signals);
        worker.registry().free_signals(first, signals);
    }
}

impl StartThreshold {
    /// Returns the threshold at the end of a start. Starts are counted from 1.
    pub(crate) fn in_start(&self, start: u64) -> u64 {
        self.first.wrapping_add((start - 1).wrapping_mul(self.per_start))
    }
}
