//! Plans: schedules that members have prepared, to be started any number of times.
//!
//! When it is made, each member lays out the buffers and signals of its part, tells the others where they are, and
//! prepares its steps as programs of its engine. A start raises one signal of the member's own. From there the programs
//! go on by what arrives, run by whoever is there: the member in its calls, a peer that raised a signal, a helper.

mod arrange;
mod counts;
mod farewell;
mod layout;
mod leaves;
mod lower;
mod passing;
mod quarantine;
mod seen;
mod walked;

use quarantine::Quarantine;

use super::communicator::Communicator;
use crate::message::Context;
use crate::schedule::{Buffer, Room, START, Schedule};
pub(super) use arrange::{Arranged, Made};
use layout::{Card, Placed};
use lower::Milestone;
pub use passing::{Passed, Passing};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::{self, Caching, Condition, Machine, Program, View};
use tasuki_core::fabric::{SignalCell, plainly_reached};
use tasuki_core::queue::reduction::{Operator, Reduction};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::SIGNAL_STRIDE;

/// How the values of a plan are combined.
pub enum Combining {
    /// They are not.
    Nothing,
    /// As everybody knows.
    Known(Reduction),
    /// By an operator of the member's own, of values of so many bytes.
    Own(Arc<dyn Operator>, u32),
}

/// What is left of a plan while any thread or the quarantine has it.
#[derive(Debug)]
pub(in crate::collective) struct Held {
    machine: Arc<Machine>,
    own: Placed,
    signals: u32,
    programs: Box<[Program]>,
    milestones: Box<[(SignalCell, Milestone)]>,
    started: AtomicU64,
    operator: Option<u32>,
    /// Where its bytes are counted.
    counted: Arc<AtomicU64>,
}

/// The plans of a communicator that are there or wait to be freed.
pub(in crate::collective) type Plans = Arc<Mutex<Quarantine>>;

/// A schedule that the members of a communicator have prepared.
///
/// One start is under way at a time. Dropping it frees all, as soon as nobody can reach it any more: when all members
/// have dropped it, and the next plan is made or all [quiesce](Communicator::quiesce).
pub struct Plan {
    held: Arc<Held>,
    number: u64,
    plans: Plans,
    messages: Arc<Context>,
    name: String,
    rooms: Box<[Room]>,
    ended: u64,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, {} starts)", self.name, self.held.started.load(Ordering::Relaxed))
    }
}

impl Communicator {
    /// Prepares a schedule, together with all members. Values are combined as `how` says. `prepare` is called before a
    /// queue is made.
    ///
    /// Errors: members came with different schedules; one of them had no room for its part; the schedule is not for as
    /// many ranks as there are members. Then nobody has the plan.
    pub fn plan(&self, schedule: &Schedule, how: Combining, prepare: &dyn Fn()) -> Result<Plan> {
        let call = || format!("plan({})", schedule.name());
        let _held = self.begin(None, &call)?;
        let fault = |cause| self.machine().fault(cause, call);
        if schedule.ranks() != self.size() {
            let (ranks, size) = (schedule.ranks(), self.size());
            return Err(fault(Cause::Argument(format!(
                "a schedule for {ranks} ranks, of a group of {size} members"
            ))));
        }
        prepare();
        let part = schedule.part(self.rank().index());
        let arranged = self.arrange(schedule, &part, Made::Programs(how), &call)?.map_err(fault)?;
        Ok(Plan {
            held: arranged.held,
            number: arranged.number,
            plans: self.plans().clone(),
            messages: self.messages().clone(),
            name: schedule.name().into(),
            rooms: part.rooms().into(),
            ended: 0,
        })
    }

    /// A plan is of no more use to this member.
    pub(super) fn give_up(&self, number: u64) {
        self.lock_plans().take(number);
    }

    /// Returns when all plans of this communicator that all members have dropped are freed, and what it has made of
    /// calls that came again and again. Collective.
    pub fn quiesce(&self) -> Result<()> {
        let call = || "quiesce()".to_string();
        let _held = self.begin(None, &call)?;
        self.forget_habits();
        loop {
            let dropped = self.lock_plans().dropped();
            dropped.iter().try_for_each(|plan| plan.settle())?;
            let words = self.allgather_steps(&[self.lock_plans().word()]);
            let words = words.map_err(|error| self.step_failed(error, &call))?;
            if words.iter().fold(u64::MAX, |all, word| all & word) == 0 {
                return Ok(());
            }
            self.free_what_is_over(words.into_iter());
        }
    }

    fn lock_plans(&self) -> std::sync::MutexGuard<'_, Quarantine> {
        self.plans().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_what_is_over(&self, words: impl Iterator<Item = u64>) {
        let over = self.lock_plans().settle(words);
        over.iter().for_each(|plan| plan.free());
    }
}

impl Held {
    /// Whether all that this member started has been run, also what others wait for.
    fn is_through(&self) -> bool {
        self.is_over() && self.programs.iter().all(|own| self.machine.is_through(own))
    }

    /// Whether the last start is over for this member.
    fn is_over(&self) -> bool {
        let last = self.started.load(Ordering::Relaxed);
        last == 0
            || self.milestones.iter().all(|(cell, milestone)| {
                plainly_reached(cell.read(self.machine.fabric()), milestone.in_start(last))
            })
    }

    /// Returns when it is through.
    fn settle(&self) -> Result<()> {
        let call = || "the end of a plan that was dropped".to_string();
        self.wait(&call)?;
        while !self.is_through() {
            self.machine.relax(&call())?;
        }
        Ok(())
    }

    #[inline]
    fn wait(&self, call: &dyn Fn() -> String) -> Result<()> {
        let last = self.started.load(Ordering::Relaxed);
        if last == 0 {
            return Ok(());
        }
        let at_end = |&(cell, milestone): &(SignalCell, Milestone)| engine::Milestone {
            cell,
            threshold: milestone.in_start(last),
        };
        self.machine.wait_for_programs(&self.programs, self.milestones.iter().map(at_end), call)
    }

    /// Gives everything back. Nobody reaches it any more.
    fn free(&self) {
        self.programs.iter().for_each(|own| self.machine.drop_program(own));
        self.own.give_back(&self.machine, self.signals, &self.counted);
        self.operator.iter().for_each(|&number| self.machine.remove_operator(number));
    }
}

impl Placed {
    /// Bytes that a part takes with so many signals.
    fn bytes(&self, signals: u32) -> u64 {
        self.layout.bytes + u64::from(signals) * SIGNAL_STRIDE
    }

    /// The memory of an own part goes back, and its signals, so many.
    fn give_back(&self, machine: &Machine, signals: u32, counted: &AtomicU64) {
        counted.fetch_sub(self.bytes(signals), Ordering::Relaxed);
        let Card { block, signals: first } = self.card;
        if block != 0 {
            let freed = machine.registry().free(block);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
        machine.registry().give_back_signals(first as u32, signals);
    }
}

impl Milestone {
    /// How far the signal has come at the end of that start, counted from 1.
    fn in_start(&self, start: u64) -> u64 {
        self.first.wrapping_add((start - 1).wrapping_mul(self.per_start))
    }
}

impl Plan {
    /// Starts it: the steps of this member may begin. Costs one raise, and what can be done at once is done.
    ///
    /// Error: the start before has not ended, as [`Plan::wait`] or [`Plan::test`] say.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        let machine = &self.held.machine;
        let last = self.held.started.load(Ordering::Relaxed);
        if last != self.ended {
            let text =
                "it was started and has not ended: wait for it, or test it, before it is started again";
            return Err(self.refused("start", text));
        }
        machine.check().map_err(|cause| machine.fault(cause, || self.call("start")))?;
        self.held.started.store(last + 1, Ordering::Relaxed);
        if self.held.programs.is_empty() {
            return Ok(());
        }
        let started = machine.start_programs(&self.held.programs, self.held.own.signal(START));
        started.map_err(|error| error.in_call(|| self.call("start")))
    }

    /// Returns when the start is over for this member: what it gets is there, what it gave may be changed. At once, if
    /// none is under way.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        if self.is_active() {
            self.held.wait(&|| self.call("wait"))?;
            self.ended += 1;
        }
        Ok(())
    }

    /// Whether the start is over for this member. Never waits; moves this rank's work on.
    pub fn test(&mut self) -> Result<bool> {
        if !self.is_active() {
            return Ok(true);
        }
        let last = self.ended + 1;
        self.held.machine.go_on_with(&self.held.programs);
        for (cell, milestone) in &self.held.milestones {
            let condition = Condition::Signal(*cell, milestone.in_start(last), None);
            if !self.held.machine.test(&condition, &|| self.call("test"))? {
                return Ok(false);
            }
        }
        self.ended = last;
        Ok(true)
    }

    /// Whether a start is under way, as far as this member has asked.
    pub fn is_active(&self) -> bool {
        self.held.started.load(Ordering::Relaxed) != self.ended
    }

    /// Bytes of a buffer on this member.
    pub fn bytes(&self, buffer: Buffer) -> u64 {
        self.rooms.get(buffer.index()).map_or(0, |room| room.bytes)
    }

    /// Writes into a buffer, before a start. Error: a start is under way; they are more bytes than there are.
    #[inline]
    pub fn write(&self, buffer: Buffer, at: u64, bytes: &[u8]) -> Result<()> {
        let (to, len) = (self.place(buffer, at, bytes.len(), "write")?, bytes.len() as u64);
        let machine = &self.held.machine;
        let is_done = len == 0 || machine.copy_out(View::of(bytes), 0, to, len, Caching::Cached);
        if is_done { Ok(()) } else { machine.put(to, bytes) }
    }

    /// Reads out of a buffer, when no start is under way.
    #[inline]
    pub fn read(&self, buffer: Buffer, at: u64, into: &mut [u8]) -> Result<()> {
        let (from, len) = (self.place(buffer, at, into.len(), "read")?, into.len() as u64);
        let machine = &self.held.machine;
        let is_done = len == 0 || machine.copy_in(from, View::of_mut(into), 0, len, Caching::Cached);
        if is_done { Ok(()) } else { machine.get(from, into) }
    }

    #[inline]
    fn place(&self, buffer: Buffer, at: u64, len: usize, call: &str) -> Result<GlobalAddress> {
        let fault = |text: String| Err(self.held.machine.fault(Cause::Argument(text), || self.call(call)));
        if self.is_active() {
            return fault("a start is under way: its buffers are the plan's until it has ended".into());
        }
        let bytes = self.bytes(buffer);
        if at.checked_add(len as u64).is_none_or(|end| end > bytes) {
            return fault(format!("{len} bytes from {at} on, of a buffer of {bytes}"));
        }
        Ok(self.held.own.byte(buffer, at, 0))
    }

    /// What a call that cannot be made so ends with.
    #[cold]
    pub fn refused(&self, call: &str, text: &str) -> Error {
        self.held.machine.fault(Cause::Argument(text.into()), || self.call(call))
    }

    #[cold]
    fn call(&self, what: &str) -> String {
        format!("{what}({})", self.name)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.take(self.number);
    }
}
