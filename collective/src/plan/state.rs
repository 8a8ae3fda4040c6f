//! The state of a plan that is shared by the `Plan`, the threads that run it and the list of deferred frees: its
//! memory, and the form in which its starts run.

use crate::plan::compile::commands::StartThreshold;
use crate::plan::end::departed::DepartedMembers;
use crate::plan::run::in_calls::InCalls;
use crate::plan::setup::layout::{PlacedPart, PlanAddress};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::Result;
use tasuki_core::engine::{self, Condition, RepeatingQueue, Worker};
use tasuki_core::fabric::{SignalCell, certainly_reached};
use tasuki_core::segment::layout::SIGNAL_STRIDE;

/// Tests of a start that is not over, after which it is asked whether it can be: that takes longer than a test.
const ASKED_EVERY: u32 = 256;

/// What is left of a plan while any thread or the list of deferred frees has it.
#[derive(Debug)]
pub(crate) struct PlanState {
    pub(crate) worker: Arc<Worker>,
    pub(crate) own: PlacedPart,
    pub(crate) signals: u32,
    pub(crate) form: Form,
    pub(crate) started: Arc<AtomicU64>,
    /// How often it will have been started when all values that pass through it have come out; 0: none do.
    pub(crate) passed_after: AtomicU64,
    /// The plan was dropped while its steps were left in their midst.
    pub(crate) is_left: AtomicBool,
    /// How often it was asked whether a start is over that was not.
    pub(crate) asked: AtomicU32,
    /// What members say of their starts when they leave, and the watch that finds out that one has left without one;
    /// if others wait for them.
    pub(crate) starts: Option<(Arc<DepartedMembers>, u32)>,
    pub(crate) operator: Option<u32>,
    /// Where its bytes are counted.
    pub(crate) counted: Arc<AtomicU64>,
}

/// As what a plan is run.
#[derive(Debug)]
pub(crate) enum Form {
    /// Programs that go on by what arrives, whoever runs them; and what the end of a start waits for.
    Queues(Box<[RepeatingQueue]>, Box<[(SignalCell, StartThreshold)]>),
    /// Steps that this rank runs in its calls.
    Execution(Arc<InCalls>),
    /// Steps of calls, which have them.
    Calls,
}

impl PlanState {
    /// Whether all that this member started has been run, also what others wait for.
    pub(crate) fn has_run_all(&self) -> bool {
        let runs = |own: &RepeatingQueue| self.worker.has_run_all(own);
        self.is_at_rest()
            && match &self.form {
                Form::Queues(queues, _) => queues.iter().all(runs),
                Form::Execution(_) | Form::Calls => true,
            }
    }

    /// Whether the last start is over for this member, and none is to come of itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.passes() && self.is_over()
    }

    /// Whether values pass through it that have not all come out.
    pub(crate) fn passes(&self) -> bool {
        self.passed_after.load(Ordering::Relaxed) > 0
    }

    /// How often this member will have started it, without further calls.
    pub(crate) fn starts(&self) -> u64 {
        self.started.load(Ordering::Relaxed).max(self.passed_after.load(Ordering::Relaxed))
    }

    /// Values begin to pass, in so many starts; 0: none do any more.
    pub(crate) fn let_pass(&self, starts: u64) {
        let after = if starts == 0 { 0 } else { self.started.load(Ordering::Relaxed) + starts };
        self.passed_after.store(after, Ordering::Relaxed);
    }

    /// Whether this member has left its steps in their midst, by a panic: others may wait for them.
    pub(crate) fn is_broken(&self) -> bool {
        let is_broken = matches!(&self.form, Form::Execution(in_calls) if in_calls.is_broken());
        is_broken || self.is_left.load(Ordering::Relaxed)
    }

    /// Whether the last start is over for this member.
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

    /// This member leaves: nothing more passes, and it says how often it has started the plan.
    pub(crate) fn publish_starts(&self) -> Result<()> {
        self.let_pass(0);
        self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.publish(&self.worker, self.starts()))
    }

    /// It has said so, waits until it is through, and says if it cannot be. Error: so it is.
    pub(crate) fn settle_at_end(&self) -> Result<()> {
        self.settle().or_else(|error| {
            self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.publish_one_less(&self.worker))?;
            Err(error)
        })
    }

    /// Returns when it is through. Error: it cannot be.
    pub(crate) fn settle(&self) -> Result<()> {
        let call = || "the end of a plan that was dropped".to_string();
        while !self.is_at_rest() && !self.is_broken() {
            if self.is_over() {
                self.worker.relax(&call())?; // what passes goes on in that
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

    /// Whether the last start is over. Moves this rank's work on.
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
                        return self.ask_for_others(call).map(|()| false);
                    }
                }
                Ok(true)
            }
            Form::Calls => Ok(true),
        }
    }

    /// Once in many calls: error, if a start cannot be over since a member has left without it.
    fn ask_for_others(&self, call: &dyn Fn() -> String) -> Result<()> {
        let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1); // a test more or less is no matter
        self.asked.store(asked, Ordering::Relaxed);
        if asked.is_multiple_of(ASKED_EVERY) { self.check_others(call) } else { Ok(()) }
    }

    fn wait_probe(&self) -> u32 {
        self.starts.as_ref().map_or(0, |&(_, wait_probe)| wait_probe)
    }

    fn check_others(&self, call: &dyn Fn() -> String) -> Result<()> {
        self.worker
            .probe_error_of(self.wait_probe())
            .map_or(Ok(()), |cause| Err(self.worker.fault(cause, call)))
    }

    /// Gives everything back. Nobody reaches it any more.
    pub(crate) fn free(&self) {
        if let Form::Queues(queues, _) = &self.form {
            queues.iter().for_each(|own| self.worker.drop_repeating_queue(own));
        }
        self.starts.iter().for_each(|&(_, wait_probe)| self.worker.remove_wait_probe(wait_probe));
        self.own.give_back(&self.worker, self.signals, &self.counted);
        self.operator.iter().for_each(|&number| self.worker.remove_operator(number));
    }
}

impl PlacedPart {
    /// Bytes that a part takes with so many signals.
    pub(crate) fn bytes(&self, signals: u32) -> u64 {
        self.layout.bytes + self.beside + u64::from(signals) * SIGNAL_STRIDE
    }

    /// The memory of an own part goes back, and its signals, so many.
    pub(crate) fn give_back(&self, worker: &Worker, signals: u32, counted: &AtomicU64) {
        counted.fetch_sub(self.bytes(signals), Ordering::Relaxed);
        let PlanAddress { block, signals: first, .. } = self.base;
        if block != 0 {
            let freed = worker.registry().free(block);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        worker.registry().free_signals(first, signals);
    }
}

impl StartThreshold {
    /// How far the signal has come at the end of that start, counted from 1.
    pub(crate) fn in_start(&self, start: u64) -> u64 {
        self.first.wrapping_add((start - 1).wrapping_mul(self.per_start))
    }
}
