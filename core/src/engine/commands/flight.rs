//! Deeds that take longer: carried out by this rank without the lease, step by step where the fabric does not do
//! them at once.

use super::attend::Failure;
use super::deeds::WORD;
use super::reach::Named;
use crate::base::Cause;
use crate::engine::action::Action;
use crate::engine::machine::Machine;
use crate::engine::order::Order;
use crate::engine::table::Draft;
use crate::engine::trace::{Place, What};
use crate::engine::{Launched, Loan};
use crate::fabric::{Atomic, Poison};
use crate::queue::command::{Command, Deed, REDUCE_BYTES_MAX};
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use std::sync::Arc;

/// A command that this rank carries out.
#[derive(Debug)]
pub(super) struct UnderWay {
    place: Place,
    course: Course,
    /// The operation that is under way now; none: its step found no room.
    operation: Option<u64>,
}

/// The steps of a command.
#[derive(Debug)]
struct Course {
    deed: Deed,
    taken: u32,
    buffers: [Option<Arc<Loan>>; 2],
}

impl Course {
    fn new(deed: Deed) -> Course {
        Course { deed, taken: 0, buffers: [None, None] }
    }

    /// Begins the next step; `None` when there is no more. `fetched` is what the last one fetched.
    fn step(&mut self, machine: &Machine, fetched: u64) -> Result<Option<Launched>, Cause> {
        match (self.deed, self.taken) {
            (Deed::Copy { from, to, len }, 0) => machine.launch_copy(from, to, len).map(Some),
            (Deed::Put { to, bytes }, 0) => self.put(machine, 0, bytes.bytes(), to).map(Some),
            (Deed::Atomic { at, atomic, .. }, 0) => machine.launch_atomic(at, atomic).map(Some),
            (Deed::Atomic { atomic, result, .. }, 1) if !result.is_null() => {
                self.result(machine, atomic, result, fetched).map(Some)
            }
            (Deed::Reduce { from, to, len, how }, step) => self.reduce(machine, step, from, to, len, how),
            _ => Ok(None),
        }
    }

    fn put(
        &mut self,
        machine: &Machine,
        buffer: usize,
        bytes: &[u8],
        to: GlobalAddress,
    ) -> Result<Launched, Cause> {
        let loan = self.buffers[buffer].get_or_insert_with(|| Loan::of(bytes.to_vec()));
        machine.launch_put(to, &loan.enter()?, 0..bytes.len())
    }

    /// What a word was goes to its place.
    fn result(
        &mut self,
        machine: &Machine,
        atomic: Atomic,
        result: GlobalAddress,
        fetched: u64,
    ) -> Result<Launched, Cause> {
        let bytes: [u8; WORD] = fetched.to_le_bytes();
        self.put(machine, 0, &bytes[..atomic.width.bytes() as usize], result)
    }

    /// Both arrays here, combined, and back.
    fn reduce(
        &mut self,
        machine: &Machine,
        step: u32,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        how: Reduction,
    ) -> Result<Option<Launched>, Cause> {
        let size = len as usize;
        if len > REDUCE_BYTES_MAX || !len.is_multiple_of(how.bytes()) {
            let text = format!("a reduction of {len} bytes: at most {REDUCE_BYTES_MAX}, of whole values");
            return Err(Cause::Argument(text));
        }
        let mut place = |at: usize| self.buffers[at].get_or_insert_with(|| Loan::scratch(size)).clone();
        if step == 0 && machine.reduce_at_once(from, to, len, how) {
            return Ok(None);
        }
        match step {
            0 => machine.launch_get(from, &place(0).enter()?, 0..size).map(Some),
            1 => machine.launch_get(to, &place(1).enter()?, 0..size).map(Some),
            2 => {
                let ours = place(1);
                // Once, however often this step is tried.
                if let Some(theirs) = self.buffers[0].take() {
                    let (mut from, mut into) = (vec![0; size], vec![0; size]);
                    theirs.enter()?.view().read(0, &mut from);
                    ours.enter()?.view().read(0, &mut into);
                    if !machine.combine(how, &mut into, &mut from) {
                        return Err(machine.why_not_combined(how));
                    }
                    ours.enter()?.view().write(0, &into);
                }
                machine.launch_put(to, &ours.enter()?, 0..size).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Machine {
    /// Carries out a command that was taken for this rank, or begins to.
    pub(super) fn begin_flight(&self, named: &Named<'_>, flight: u64) {
        self.note_flight(named, flight, false, What::Began);
        let Some(command) = named.queue.flights().command(flight) else {
            let cause = Cause::Bug("a command under way that nobody can have posted".into());
            return self.end_flight(named, flight, Some(Poison::of(&cause, self.rank())));
        };
        if command.calls().is_some() || self.travels_to(&command).is_some() {
            return self.hand_on_later(named, flight);
        }
        if !self.share_flight(named, flight, &command) {
            self.begin_course(named, flight, &command);
        }
    }

    /// Takes the first steps of a command.
    pub(super) fn begin_course(&self, named: &Named<'_>, flight: u64, command: &Command) {
        let course = Course::new(command.deed);
        let one = UnderWay { place: named.place(flight), course, operation: None };
        if let Some(one) = self.advance(named, one, command, 0) {
            self.commands().under_way.push(one);
        }
    }

    /// Takes as many steps as end at once. What is left of the command, if anything.
    fn advance(
        &self,
        named: &Named<'_>,
        mut one: UnderWay,
        command: &Command,
        fetched: u64,
    ) -> Option<UnderWay> {
        let mut fetched = fetched;
        loop {
            let failure = match one.course.step(self, fetched) {
                Ok(Some(Launched::Done(value))) => {
                    (fetched, one.course.taken) = (value, one.course.taken + 1);
                    continue;
                }
                Ok(Some(Launched::UnderWay(operation))) => {
                    one.operation = Some(operation);
                    return Some(one);
                }
                Ok(Some(Launched::Later)) => {
                    one.operation = None;
                    return Some(one);
                }
                Ok(None) => None,
                Err(cause) => Some(self.failed(command, &cause)),
            };
            self.end_flight(named, one.place.number, failure);
            return None;
        }
    }

    /// A command has failed on this rank.
    pub(super) fn failed(&self, command: &Command, cause: &Cause) -> Poison {
        self.log().say(crate::base::log::Level::Info, format_args!("{command} failed: {cause}"));
        Poison::of(cause, self.rank())
    }

    pub(super) fn end_flight(&self, named: &Named<'_>, flight: u64, failure: Failure) {
        self.note_flight(named, flight, failure.is_some(), What::Ended);
        // Of another rank that ran it, a signal told.
        named.queue.flights().end(flight, failure.map(|poison| poison.first_hand().words()));
    }

    /// Takes the next steps of commands that this rank carries out.
    pub(super) fn advance_flights(&self) {
        for mut one in self.commands().under_way.take_all() {
            let mut outcome = Ok(0);
            if let Some(operation) = one.operation {
                match self.landed(operation) {
                    None => {
                        self.commands().under_way.push(one);
                        continue;
                    }
                    Some(landed) => outcome = landed,
                }
                one.course.taken += 1;
            }
            self.step_landed(one, outcome);
        }
    }

    /// The step of a command has ended, or may be tried again.
    fn step_landed(&self, one: UnderWay, outcome: Result<u64, Cause>) {
        let Some(named) = self.find_named(one.place.queue) else { return };
        let Some(command) = named.queue.flights().command(one.place.number) else { return };
        let left = match outcome {
            Ok(fetched) => self.advance(&named, one, &command, fetched),
            Err(cause) => {
                self.end_flight(&named, one.place.number, Some(self.failed(&command, &cause)));
                None
            }
        };
        match left {
            Some(one) => self.commands().under_way.push(one),
            None => {
                self.attend_with_all_that_follows(&named);
            }
        }
    }

    /// Whether this rank carries commands out.
    pub(super) fn has_flights(&self) -> bool {
        !self.commands().under_way.is_empty()
    }

    /// Enters an operation whose outcome nobody asks for; a failure of it waits for `complete`.
    pub(super) fn hold_unclaimed(&self, action: Action) {
        self.operations().enter(Draft { action, order: Order::Free, keep: None, claimed: false }, None);
    }
}
