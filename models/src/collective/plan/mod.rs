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
mod walking;

use quarantine::Quarantine;

use super::communicator::Communicator;
use crate::message::Context;
use crate::schedule::{Buffer, Room, START, Schedule};
use super::selection::Cut;
use super::shape::Shape;
pub(super) use arrange::{Arranged, Made};
use layout::{Card, Placed};
use lower::Milestone;
use walking::{Content, Walker, Walking};
pub use passing::{Passed, Passing};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::{self, Caching, Condition, Machine, Program, View};
use tasuki_core::fabric::{SignalCell, plainly_reached};
use tasuki_core::queue::reduction::{Operator, Reduction};
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
    form: Form,
    started: AtomicU64,
    operator: Option<u32>,
    /// Where its bytes are counted.
    counted: Arc<AtomicU64>,
}

/// As what a plan is run.
#[derive(Debug)]
enum Form {
    /// Programs that go on by what arrives, whoever runs them; and what the end of a start waits for.
    Programs(Box<[Program]>, Box<[(SignalCell, Milestone)]>),
    /// Steps that this rank runs in its calls.
    Walk(Arc<Walking>),
    /// Steps of calls, which have them.
    Calls,
}

/// The plans of a communicator that are there or wait to be freed.
pub(in crate::collective) type Plans = Arc<Mutex<Quarantine>>;

/// A schedule that the members of a communicator have prepared.
///
/// One start is under way at a time. Dropping it frees all, as soon as nobody can reach it any more: when all members
/// have dropped it, and the next plan is made or all [quiesce](Communicator::quiesce).
pub struct Plan {
    held: Arc<Held>,
    /// Its buffers and steps, if it is run by this rank alone.
    walker: Option<Walker>,
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
        Ok(self.plan_of(arranged, schedule, part.rooms().into()))
    }

    /// Prepares a collective by the algorithm that is chosen for it. The rest is as of [`plan`](Communicator::plan).
    pub fn plan_for(&self, shape: &Shape, how: Combining, prepare: &dyn Fn()) -> Result<Plan> {
        let selection = self.select(shape)?;
        match selection.walk(shape) {
            Some(cut) => self.plan_walk(shape, &cut, how),
            None => self.plan(&selection.choose(shape).schedule(shape, 1), how, prepare),
        }
    }

    fn plan_walk(&self, shape: &Shape, cut: &Cut, how: Combining) -> Result<Plan> {
        let schedule = cut.schedule();
        let call = || format!("plan({})", schedule.name());
        let _held = self.begin(None, &call)?;
        let me = self.rank().index();
        let (part, bytes) = (schedule.part(me), shape.rooms(me));
        let content = Content::new(bytes, cut, how);
        let arranged = self.arrange(&schedule, &part, Made::Walk(Some(content)), &call)?;
        let arranged = arranged.map_err(|cause| self.machine().fault(cause, call))?;
        if let Form::Walk(walking) = &arranged.held.form {
            self.messages().pump().follow(walking.clone());
        }
        let rooms = part.rooms().iter().zip(bytes).map(|(room, bytes)| Room { bytes, ..room.clone() });
        Ok(self.plan_of(arranged, &schedule, rooms.collect()))
    }

    fn plan_of(&self, arranged: Arranged, schedule: &Schedule, rooms: Box<[Room]>) -> Plan {
        Plan {
            held: arranged.held,
            walker: arranged.walker,
            number: arranged.number,
            plans: self.plans().clone(),
            messages: self.messages().clone(),
            name: schedule.name().into(),
            rooms,
            ended: 0,
        }
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
        for plan in over {
            if let Form::Walk(walking) = &plan.form {
                self.messages().pump().forget_follower(&**walking);
            }
            plan.free();
        }
    }
}

impl Held {
    /// Whether all that this member started has been run, also what others wait for.
    fn is_through(&self) -> bool {
        let runs = |own: &Program| self.machine.is_through(own);
        self.is_over()
            && match &self.form {
                Form::Programs(programs, _) => programs.iter().all(runs),
                Form::Walk(_) | Form::Calls => true,
            }
    }

    /// Whether the last start is over for this member.
    fn is_over(&self) -> bool {
        let last = self.started.load(Ordering::Relaxed);
        let is_met = |(cell, milestone): &(SignalCell, Milestone)| {
            plainly_reached(cell.read(self.machine.fabric()), milestone.in_start(last))
        };
        last == 0
            || match &self.form {
                Form::Programs(_, milestones) => milestones.iter().all(is_met),
                Form::Walk(walking) => walking.is_over(),
                Form::Calls => true,
            }
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
        let at_end = |&(cell, milestone): &(SignalCell, Milestone)| engine::Milestone {
            cell,
            threshold: milestone.in_start(last),
        };
        match &self.form {
            _ if last == 0 => Ok(()),
            Form::Walk(walking) => walking.wait(call),
            Form::Programs(programs, milestones) => {
                self.machine.wait_for_programs(programs, milestones.iter().map(at_end), call)
            }
            Form::Calls => Ok(()),
        }
    }

    /// Whether the last start is over. Moves this rank's work on.
    fn test(&self, call: &dyn Fn() -> String) -> Result<bool> {
        let last = self.started.load(Ordering::Relaxed);
        match &self.form {
            _ if last == 0 => Ok(true),
            Form::Walk(walking) => walking.test(call),
            Form::Programs(programs, milestones) => {
                self.machine.go_on_with(programs);
                for (cell, milestone) in milestones {
                    let condition = Condition::Signal(*cell, milestone.in_start(last), None);
                    if !self.machine.test(&condition, call)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Form::Calls => Ok(true),
        }
    }

    /// Gives everything back. Nobody reaches it any more.
    fn free(&self) {
        if let Form::Programs(programs, _) = &self.form {
            programs.iter().for_each(|own| self.machine.drop_program(own));
        }
        self.own.give_back(&self.machine, self.signals, &self.counted);
        self.operator.iter().for_each(|&number| self.machine.remove_operator(number));
    }
}

impl Placed {
    /// Bytes that a part takes with so many signals.
    fn bytes(&self, signals: u32) -> u64 {
        self.layout.bytes + self.beside + u64::from(signals) * SIGNAL_STRIDE
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
        let started = match (&self.held.form, &mut self.walker) {
            (Form::Walk(walking), Some(walker)) => {
                walking.start(walker).map_err(|cause| machine.fault(cause, String::new))
            }
            (Form::Programs(programs, _), _) if !programs.is_empty() => {
                machine.start_programs(programs, self.held.own.signal(START))
            }
            _ => Ok(()),
        };
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
        let is_over = self.held.test(&|| self.call("test"))?;
        if is_over {
            self.ended += 1;
        }
        Ok(is_over)
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
    pub fn write(&mut self, buffer: Buffer, at: u64, bytes: &[u8]) -> Result<()> {
        self.check_place(buffer, at, bytes.len(), "write")?;
        if let Some(walker) = &mut self.walker {
            let at = at as usize;
            let place = walker.kept_mut().map(|state| &mut state.buffer_mut(buffer)[at..at + bytes.len()]);
            place.into_iter().for_each(|place| place.copy_from_slice(bytes));
            return Ok(());
        }
        let (to, len) = (self.held.own.byte(buffer, at, 0), bytes.len() as u64);
        let machine = &self.held.machine;
        let is_done = len == 0 || machine.copy_out(View::of(bytes), 0, to, len, Caching::Cached);
        if is_done { Ok(()) } else { machine.put(to, bytes) }
    }

    /// Reads out of a buffer, when no start is under way.
    #[inline]
    pub fn read(&self, buffer: Buffer, at: u64, into: &mut [u8]) -> Result<()> {
        self.check_place(buffer, at, into.len(), "read")?;
        if let Some(walker) = &self.walker {
            let at = at as usize;
            let place = walker.kept().map(|state| &state.buffer(buffer)[at..at + into.len()]);
            place.into_iter().for_each(|place| into.copy_from_slice(place));
            return Ok(());
        }
        let (from, len) = (self.held.own.byte(buffer, at, 0), into.len() as u64);
        let machine = &self.held.machine;
        let is_done = len == 0 || machine.copy_in(from, View::of_mut(into), 0, len, Caching::Cached);
        if is_done { Ok(()) } else { machine.get(from, into) }
    }

    #[inline]
    fn check_place(&self, buffer: Buffer, at: u64, len: usize, call: &str) -> Result<()> {
        let fault = |text: String| Err(self.held.machine.fault(Cause::Argument(text), || self.call(call)));
        if self.is_active() {
            return fault("a start is under way: its buffers are the plan's until it has ended".into());
        }
        let bytes = self.bytes(buffer);
        if at.checked_add(len as u64).is_none_or(|end| end > bytes) {
            return fault(format!("{len} bytes from {at} on, of a buffer of {bytes}"));
        }
        Ok(())
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
