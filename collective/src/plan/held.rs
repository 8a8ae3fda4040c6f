//! What is left of a plan while any thread or the quarantine has it: its memory, and what its starts are run as.

use super::layout::{Card, Placed};
use super::lower::Milestone;
use super::starts::Starts;
use super::walking::Walking;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::Result;
use tasuki_core::engine::{self, Condition, Machine, Program};
use tasuki_core::fabric::{SignalCell, plainly_reached};
use tasuki_core::segment::layout::SIGNAL_STRIDE;

/// Tests of a start that is not over, after which it is asked whether it can be: that takes longer than a test.
const ASKED_EVERY: u32 = 256;

/// What is left of a plan while any thread or the quarantine has it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) machine: Arc<Machine>,
    pub(super) own: Placed,
    pub(super) signals: u32,
    pub(super) form: Form,
    pub(super) started: Arc<AtomicU64>,
    /// How often it will have been started when all values that pass through it have come out; 0: none do.
    pub(super) passed_after: AtomicU64,
    /// The plan was dropped while its steps were left in their midst.
    pub(super) is_left: AtomicBool,
    /// How often it was asked whether a start is over that was not.
    pub(super) asked: AtomicU32,
    /// What members say of their starts when they leave, and the watch that finds out that one has left without one;
    /// if others wait for them.
    pub(super) starts: Option<(Arc<Starts>, u32)>,
    pub(super) operator: Option<u32>,
    /// Where its bytes are counted.
    pub(super) counted: Arc<AtomicU64>,
}

/// As what a plan is run.
#[derive(Debug)]
pub(super) enum Form {
    /// Programs that go on by what arrives, whoever runs them; and what the end of a start waits for.
    Programs(Box<[Program]>, Box<[(SignalCell, Milestone)]>),
    /// Steps that this rank runs in its calls.
    Walk(Arc<Walking>),
    /// Steps of calls, which have them.
    Calls,
}

impl Held {
    /// Whether all that this member started has been run, also what others wait for.
    pub(super) fn is_through(&self) -> bool {
        let runs = |own: &Program| self.machine.is_through(own);
        self.is_at_rest()
            && match &self.form {
                Form::Programs(programs, _) => programs.iter().all(runs),
                Form::Walk(_) | Form::Calls => true,
            }
    }

    /// Whether the last start is over for this member, and none is to come of itself.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.passes() && self.is_over()
    }

    /// Whether values pass through it that have not all come out.
    pub(super) fn passes(&self) -> bool {
        self.passed_after.load(Ordering::Relaxed) > 0
    }

    /// How often this member will have started it, without further calls.
    pub(super) fn starts(&self) -> u64 {
        self.started.load(Ordering::Relaxed).max(self.passed_after.load(Ordering::Relaxed))
    }

    /// Values begin to pass, in so many starts; 0: none do any more.
    pub(super) fn let_pass(&self, starts: u64) {
        let after = if starts == 0 { 0 } else { self.started.load(Ordering::Relaxed) + starts };
        self.passed_after.store(after, Ordering::Relaxed);
    }

    /// Whether this member has left its steps in their midst, by a panic: others may wait for them.
    pub(super) fn is_broken(&self) -> bool {
        let is_broken = matches!(&self.form, Form::Walk(walking) if walking.is_broken());
        is_broken || self.is_left.load(Ordering::Relaxed)
    }

    /// Whether the last start is over for this member.
    pub(super) fn is_over(&self) -> bool {
        let last = self.started.load(Ordering::Relaxed);
        let is_met = |(cell, milestone): &(SignalCell, Milestone)| {
            plainly_reached(cell.read(self.machine.fabric()), milestone.in_start(last))
        };
        last == 0
            || match &self.form {
                Form::Programs(_, milestones) => milestones.iter().all(is_met),
                Form::Walk(walking) => walking.is_at_rest(),
                Form::Calls => true,
            }
    }

    /// This member leaves: nothing more passes, and it says how often it has started the plan.
    pub(super) fn say_starts(&self) -> Result<()> {
        self.let_pass(0);
        self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.say(&self.machine, self.starts()))
    }

    /// It has said so, waits until it is through, and says if it cannot be. Error: so it is.
    pub(super) fn settle_at_end(&self) -> Result<()> {
        self.settle().or_else(|error| {
            self.starts.as_ref().map_or(Ok(()), |(starts, _)| starts.say_one_less(&self.machine))?;
            Err(error)
        })
    }

    /// Returns when it is through. Error: it cannot be.
    pub(super) fn settle(&self) -> Result<()> {
        let call = || "the end of a plan that was dropped".to_string();
        while !self.is_at_rest() && !self.is_broken() {
            if self.is_over() {
                self.machine.relax(&call())?; // what passes goes on in that
            } else {
                self.wait(&call)?;
            }
        }
        while !self.is_through() {
            self.check_others(&call)?;
            self.machine.relax(&call())?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn wait(&self, call: &dyn Fn() -> String) -> Result<()> {
        let last = self.started.load(Ordering::Relaxed);
        let at_end = |&(cell, milestone): &(SignalCell, Milestone)| engine::Milestone {
            cell,
            threshold: milestone.in_start(last),
        };
        match &self.form {
            _ if last == 0 => Ok(()),
            Form::Walk(walking) => walking.wait(call),
            Form::Programs(programs, milestones) => {
                self.machine.wait_for_programs(programs, milestones.iter().map(at_end), self.watch(), call)
            }
            Form::Calls => Ok(()),
        }
    }

    /// Whether the last start is over. Moves this rank's work on.
    pub(super) fn test(&self, call: &dyn Fn() -> String) -> Result<bool> {
        let last = self.started.load(Ordering::Relaxed);
        match &self.form {
            _ if last == 0 => Ok(true),
            Form::Walk(walking) => walking.test(call),
            Form::Programs(programs, milestones) => {
                self.machine.go_on_with(programs);
                for (cell, milestone) in milestones {
                    let condition = Condition::Signal(*cell, milestone.in_start(last), None);
                    if !self.machine.test(&condition, call)? {
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

    fn watch(&self) -> u32 {
        self.starts.as_ref().map_or(0, |&(_, watch)| watch)
    }

    fn check_others(&self, call: &dyn Fn() -> String) -> Result<()> {
        self.machine.complaint_of(self.watch()).map_or(Ok(()), |cause| Err(self.machine.fault(cause, call)))
    }

    /// Gives everything back. Nobody reaches it any more.
    pub(super) fn free(&self) {
        if let Form::Programs(programs, _) = &self.form {
            programs.iter().for_each(|own| self.machine.drop_program(own));
        }
        self.starts.iter().for_each(|&(_, watch)| self.machine.remove_watch(watch));
        self.own.give_back(&self.machine, self.signals, &self.counted);
        self.operator.iter().for_each(|&number| self.machine.remove_operator(number));
    }
}

impl Placed {
    /// Bytes that a part takes with so many signals.
    pub(super) fn bytes(&self, signals: u32) -> u64 {
        self.layout.bytes + self.beside + u64::from(signals) * SIGNAL_STRIDE
    }

    /// The memory of an own part goes back, and its signals, so many.
    pub(super) fn give_back(&self, machine: &Machine, signals: u32, counted: &AtomicU64) {
        counted.fetch_sub(self.bytes(signals), Ordering::Relaxed);
        let Card { block, signals: first, .. } = self.card;
        if block != 0 {
            let freed = machine.registry().free(block);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        machine.registry().give_back_signals(first, signals);
    }
}

impl Milestone {
    /// How far the signal has come at the end of that start, counted from 1.
    pub(super) fn in_start(&self, start: u64) -> u64 {
        self.first.wrapping_add((start - 1).wrapping_mul(self.per_start))
    }
}
