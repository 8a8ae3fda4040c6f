//! Plans: schedules that members have prepared, to be started any number of times.
//!
//! When it is made, each member lays out the buffers and signals of its part, tells the others where they are, and
//! prepares its steps as programs of its engine. A start raises one signal of the member's own. From there the programs
//! go on by what arrives, run by whoever is there: the member in its calls, a peer that raised a signal, a helper.

mod farewell;
mod layout;
mod leaves;
mod lower;
mod quarantine;

use quarantine::Quarantine;

use super::communicator::Communicator;
use super::stages::Stages;
use crate::schedule::{Buffer, Part, Room, START, Schedule};
use bytemuck::{Pod, Zeroable};
use farewell::Farewell;
use layout::{Card, Layout, Placed};
use lower::{Lowering, Milestone};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{self, Caching, Condition, Machine, Program, View};
use tasuki_core::fabric::{SignalCell, plainly_reached};
use tasuki_core::queue::reduction::{Operator, Reduction};
use tasuki_core::segment::GlobalAddress;

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
    name: String,
    rooms: Box<[Room]>,
    ended: u64,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, {} starts)", self.name, self.held.started.load(Ordering::Relaxed))
    }
}

/// What each member tells all others when a plan is made.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Word {
    card: Card,
    /// 0: this member found no room for its part.
    found_room: u64,
    /// What the schedule is.
    fingerprint: u64,
    /// What it has done with.
    done: u64,
    /// The first of the signals by which members leave.
    farewell: u64,
}

impl Communicator {
    /// Prepares a schedule, together with all members. Values are combined as `how` says. `prepare` is called before a
    /// queue is made.
    ///
    /// Errors: members came with different schedules; one of them had no room for its part; the schedule is not for as
    /// many ranks as there are members. Then nobody has the plan.
    pub fn plan(&self, schedule: &Schedule, how: Combining, prepare: &dyn Fn()) -> Result<Plan> {
        let call = || format!("plan({})", schedule.name());
        let _held = self.begin(&call)?;
        let fault = |cause| self.machine().fault(cause, call);
        if schedule.ranks() != self.size() {
            let (ranks, size) = (schedule.ranks(), self.size());
            return Err(fault(Cause::Argument(format!(
                "a schedule for {ranks} ranks, of a group of {size} members"
            ))));
        }
        prepare();
        let part = schedule.part(self.rank().index());
        let begun = Begun::new(self.messages().machine().clone(), &part);
        let fingerprint = fingerprint(schedule);
        let card = begun.as_ref().map_or(Card::zeroed(), |begun| begun.own.card);
        let done = self.lock_plans().word();
        let farewell = self.name_farewell().map_err(fault)?;
        let word = Word { card, found_room: begun.is_ok().into(), fingerprint, done, farewell };
        let words = self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, &call))?;
        self.free_what_is_over(words.iter().map(|word| word.done));
        self.promise_farewell(&words)?;
        let held = begun.and_then(|begun| match self.agree_on(&words, fingerprint) {
            Ok(()) => begun.finish(self, schedule, &part, &words, how),
            Err(cause) => {
                begun.own.give_back(&begun.machine, begun.stood.len() as u32);
                Err(cause)
            }
        });
        // Nobody is to wait for one who could not.
        let all = self.allgather_steps(&[u64::from(held.is_ok())]);
        let all = all.map_err(|error| self.step_failed(error, &call))?;
        let held = held.map_err(fault)?;
        if all.contains(&0) {
            held.free();
            let text = "another member found no room for its part, or came with another schedule";
            return Err(fault(Cause::Unsupported(text.into())));
        }
        let held = Arc::new(held);
        let number = self.lock_plans().enter(held.clone());
        Ok(Plan {
            held,
            number,
            plans: self.plans().clone(),
            name: schedule.name().into(),
            rooms: part.rooms().into(),
            ended: 0,
        })
    }

    /// Returns when all plans of this communicator that all members have dropped are freed. Collective.
    pub fn quiesce(&self) -> Result<()> {
        let call = || "quiesce()".to_string();
        let _held = self.begin(&call)?;
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

    /// The signals by which members leave, made with the first plan.
    fn name_farewell(&self) -> Result<u64, Cause> {
        if let Some(&first) = self.farewell.get() {
            return Ok(first);
        }
        let made = self.machine().registry().private_signals(Stages::count(self.size()));
        let first = u64::from(made.map_err(|error| error.cause().clone())?);
        Ok(*self.farewell.get_or_init(|| first))
    }

    /// From the first plan on members leave together.
    fn promise_farewell(&self, words: &[Word]) -> Result<()> {
        if self.leaves_together.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let first = words[self.rank().index()].farewell as u32;
        let machine = self.machine();
        let neighbours = |stage| self.neighbours(stage, |member| words[member.index()].farewell as u32);
        let stages = Stages::new(machine, first, Stages::count(self.size()), neighbours);
        let stages = stages.map_err(|cause| machine.fault(cause, || "plan()".into()))?;
        self.messages().owe(Arc::new(Farewell::new(self.plans().clone(), stages, machine)))
    }

    fn lock_plans(&self) -> std::sync::MutexGuard<'_, Quarantine> {
        self.plans().lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_what_is_over(&self, words: impl Iterator<Item = u64>) {
        let over = self.lock_plans().settle(words);
        over.iter().for_each(|plan| plan.free());
    }

    /// Whether all members came with the same schedule, and with room for it.
    fn agree_on(&self, words: &[Word], fingerprint: u64) -> Result<(), Cause> {
        if let Some(other) = words.iter().position(|word| word.fingerprint != fingerprint) {
            let text = format!("member {other} came with another schedule, or other sizes, or another root");
            return Err(Cause::Argument(text));
        }
        match words.iter().position(|word| word.found_room == 0) {
            Some(other) => {
                Err(Cause::Unsupported(format!("member {other} found no room for its part; nobody has it")))
            }
            None => Ok(()),
        }
    }
}

/// Something that all members must have in common, as a number.
fn fingerprint(schedule: &Schedule) -> u64 {
    let mut hasher = DefaultHasher::new();
    (schedule.name(), schedule.ranks()).hash(&mut hasher);
    for rank in [0, schedule.ranks() - 1] {
        format!("{:?}", schedule.part(rank)).hash(&mut hasher);
    }
    hasher.finish()
}

/// The memory and signals of a part.
struct Begun {
    machine: Arc<Machine>,
    own: Placed,
    stood: Vec<u64>,
}

impl Begun {
    fn new(machine: Arc<Machine>, part: &Part) -> Result<Begun, Cause> {
        let layout = Layout::of(part);
        let count = part.counters().len() as u32;
        let own_cause = |error: tasuki_core::base::Error| error.cause().clone();
        let signals = machine.registry().private_signals(count).map_err(own_cause)?;
        let block = match layout.bytes {
            0 => 0,
            bytes => match machine.registry().allocate_local(bytes) {
                Ok(block) => block,
                Err(error) => {
                    machine.registry().give_back_signals(signals, count);
                    return Err(own_cause(error));
                }
            },
        };
        let stood = (signals..signals + count).map(|signal| machine.count_of_own(signal)).collect();
        let card = Card { block, signals: signals.into() };
        Ok(Begun { own: Placed::new(machine.rank(), card, part), machine, stood })
    }

    /// The programs, now that it is known where the others have their parts.
    fn finish(
        self,
        members: &Communicator,
        schedule: &Schedule,
        part: &Part,
        words: &[Word],
        how: Combining,
    ) -> Result<Held, Cause> {
        let (how, operator) = match how {
            Combining::Nothing => (None, None),
            Combining::Known(how) => (Some(how), None),
            Combining::Own(operator, bytes) => {
                let number = self.machine.add_operator(operator);
                (Some(Reduction::own(number, bytes)), Some(number))
            }
        };
        let mut held = Held {
            machine: self.machine,
            own: self.own,
            signals: part.counters().len() as u32,
            programs: Box::default(),
            milestones: Box::default(),
            started: AtomicU64::new(0),
            operator,
        };
        match held.prepare(members, schedule, part, words, (how, &self.stood)) {
            Ok(()) => Ok(held),
            Err(cause) => {
                held.free();
                Err(cause)
            }
        }
    }
}

impl Held {
    fn prepare(
        &mut self,
        members: &Communicator,
        schedule: &Schedule,
        part: &Part,
        words: &[Word],
        (how, stood): (Option<Reduction>, &[u64]),
    ) -> Result<(), Cause> {
        let mut others = BTreeMap::new();
        for member in lower::named(part) {
            let known = members.messages().rank_of(Rank(member));
            let rank = known.ok_or(Cause::NoSuchRank { rank: Rank(member), size: words.len() })?;
            let placed = Placed::new(rank, words[member as usize].card, &schedule.part(member as usize));
            others.insert(member, placed);
        }
        let lowering = Lowering { own: &self.own, stood, how, others: &others };
        let start = self.own.number(START);
        let programs = lowering.programs(part)?;
        let milestones = lowering.milestones(part);
        let mut made = Vec::new();
        for program in programs {
            match self.machine.make_program(&program.commands, start, program.per_start) {
                Ok(own) => made.push(own),
                Err(cause) => {
                    self.programs = made.into();
                    return Err(cause);
                }
            }
        }
        self.programs = made.into();
        let cell =
            |milestone: Milestone| Ok((self.machine.fabric().own_signal(milestone.signal)?, milestone));
        self.milestones = milestones.into_iter().map(cell).collect::<Result<_, Cause>>()?;
        Ok(())
    }

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
        self.own.give_back(&self.machine, self.signals);
        self.operator.iter().for_each(|&number| self.machine.remove_operator(number));
    }
}

impl Placed {
    /// The memory of an own part goes back, and its signals, so many.
    fn give_back(&self, machine: &Machine, signals: u32) {
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
            return Err(machine.fault(Cause::Argument(text.into()), || self.call("start")));
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
