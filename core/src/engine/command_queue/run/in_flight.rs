//! Deeds that take longer: carried out by this rank without the lease, step by step where the fabric does not do
//! them at once.

use crate::base::Cause;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::Failure;
use crate::engine::command_queue::run::inline::WORD;
use crate::engine::operation::kind::Operation;
use crate::engine::operation::order::Order;
use crate::engine::operation::table::NewOperation;
use crate::engine::trace::{CommandId, EventKind};
use crate::engine::worker::Worker;
use crate::engine::{RevocableBuffer, Started};
use crate::fabric::{Atomic, Poison};
use crate::queue::command::{Action, Command, REDUCE_BYTES_MAX};
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use std::sync::Arc;

/// A command that this rank carries out.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct ActionInFlight {
    place: CommandId,
    course: ActionProgress,
    /// The operation that is under way now; none: its step found no room.
    operation: Option<u64>,
}

/// The steps of a command.
#[derive(Debug)]
struct ActionProgress {
    deed: Action,
    taken: u32,
    buffers: [Option<Arc<RevocableBuffer>>; 2],
}

impl ActionProgress {
    fn new(deed: Action) -> ActionProgress {
        ActionProgress { deed, taken: 0, buffers: [None, None] }
    }

    /// Begins the next step; `None` when there is no more. `fetched` is what the last one fetched.
    fn step(&mut self, worker: &Worker, fetched: u64) -> Result<Option<Started>, Cause> {
        match (self.deed, self.taken) {
            (Action::Copy { from, to, len }, 0) => worker.start_copy(from, to, len).map(Some),
            (Action::Put { to, bytes }, 0) => self.put(worker, 0, bytes.bytes(), to).map(Some),
            (Action::Atomic { at, atomic, .. }, 0) => worker.start_atomic(at, atomic).map(Some),
            (Action::Atomic { atomic, result, .. }, 1) if !result.is_null() => {
                self.result(worker, atomic, result, fetched).map(Some)
            }
            (Action::Reduce { from, to, len, how }, step) => self.reduce(worker, step, from, to, len, how),
            _ => Ok(None),
        }
    }

    fn put(
        &mut self,
        worker: &Worker,
        buffer: usize,
        bytes: &[u8],
        to: GlobalAddress,
    ) -> Result<Started, Cause> {
        let loan = self.buffers[buffer].get_or_insert_with(|| RevocableBuffer::from_vec(bytes.to_vec()));
        worker.start_put(to, &loan.enter()?, 0..bytes.len())
    }

    /// EventKind a word was goes to its place.
    fn result(
        &mut self,
        worker: &Worker,
        atomic: Atomic,
        result: GlobalAddress,
        fetched: u64,
    ) -> Result<Started, Cause> {
        let bytes: [u8; WORD] = fetched.to_le_bytes();
        self.put(worker, 0, &bytes[..atomic.width.bytes() as usize], result)
    }

    /// Both arrays here, combined, and back.
    fn reduce(
        &mut self,
        worker: &Worker,
        step: u32,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        how: Reduction,
    ) -> Result<Option<Started>, Cause> {
        let size = len as usize;
        if len > REDUCE_BYTES_MAX || !len.is_multiple_of(how.bytes()) {
            let text = format!("a reduction of {len} bytes: at most {REDUCE_BYTES_MAX}, of whole values");
            return Err(Cause::Argument(text));
        }
        let mut place =
            |at: usize| self.buffers[at].get_or_insert_with(|| RevocableBuffer::zeroed(size)).clone();
        if step == 0 && worker.reduce_inline(from, to, len, how) {
            return Ok(None);
        }
        match step {
            0 => worker.start_get(from, &place(0).enter()?, 0..size).map(Some),
            1 => worker.start_get(to, &place(1).enter()?, 0..size).map(Some),
            2 => {
                let ours = place(1);
                // Once, however often this step is tried.
                if let Some(theirs) = self.buffers[0].take() {
                    let (mut from, mut into) = (vec![0; size], vec![0; size]);
                    theirs.enter()?.view().read(0, &mut from);
                    ours.enter()?.view().read(0, &mut into);
                    if !worker.combine(how, &mut into, &mut from) {
                        return Err(worker.why_not_combined(how));
                    }
                    ours.enter()?.view().write(0, &into);
                }
                worker.start_put(to, &ours.enter()?, 0..size).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Worker {
    /// Carries out a command that was taken for this rank, or begins to.
    pub(in crate::engine::command_queue) fn begin_flight(&self, named: &ResolvedQueue<'_>, flight: u64) {
        self.record_in_flight(named, flight, false, EventKind::Began);
        let Some(command) = named.queue.flights().command(flight) else {
            let cause = Cause::Bug("a command under way that nobody can have posted".into());
            return self.end_flight(named, flight, Some(Poison::of(&cause, self.rank())));
        };
        if command.calls().is_some() || self.offload_target(&command).is_some() {
            return self.forward_later(named, flight);
        }
        if !self.share_copy(named, flight, &command) {
            self.begin_course(named, flight, &command);
        }
    }

    /// Takes the first steps of a command.
    pub(in crate::engine::command_queue) fn begin_course(
        &self,
        named: &ResolvedQueue<'_>,
        flight: u64,
        command: &Command,
    ) {
        let course = ActionProgress::new(command.deed);
        let one = ActionInFlight { place: named.place(flight), course, operation: None };
        if let Some(one) = self.advance(named, one, command, 0) {
            self.commands().under_way.push(one);
        }
    }

    /// Takes as many steps as end at once. EventKind is left of the command, if anything.
    fn advance(
        &self,
        named: &ResolvedQueue<'_>,
        mut one: ActionInFlight,
        command: &Command,
        fetched: u64,
    ) -> Option<ActionInFlight> {
        let mut fetched = fetched;
        loop {
            let failure = match one.course.step(self, fetched) {
                Ok(Some(Started::Done(value))) => {
                    (fetched, one.course.taken) = (value, one.course.taken + 1);
                    continue;
                }
                Ok(Some(Started::InFlight(operation))) => {
                    one.operation = Some(operation);
                    return Some(one);
                }
                Ok(Some(Started::Later)) => {
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
    pub(in crate::engine::command_queue) fn failed(&self, command: &Command, cause: &Cause) -> Poison {
        self.log().say(crate::base::log::Level::Info, format_args!("{command} failed: {cause}"));
        Poison::of(cause, self.rank())
    }

    pub(in crate::engine::command_queue) fn end_flight(
        &self,
        named: &ResolvedQueue<'_>,
        flight: u64,
        failure: Failure,
    ) {
        self.record_in_flight(named, flight, failure.is_some(), EventKind::Ended);
        // Of another rank that ran it, a signal told.
        named.queue.flights().end(flight, failure.map(|poison| poison.as_own_failure().words()));
    }

    /// Takes the next steps of commands that this rank carries out.
    pub(in crate::engine::command_queue) fn advance_in_flight(&self) {
        for mut one in self.commands().under_way.take_all() {
            let mut outcome = Ok(0);
            if let Some(operation) = one.operation {
                match self.take_outcome(operation) {
                    None => {
                        self.commands().under_way.push(one);
                        continue;
                    }
                    Some(take_outcome) => outcome = take_outcome,
                }
                one.course.taken += 1;
            }
            self.step_finished(one, outcome);
        }
    }

    /// The step of a command has ended, or may be tried again.
    fn step_finished(&self, one: ActionInFlight, outcome: Result<u64, Cause>) {
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
                self.run_queue_and_ready(&named);
            }
        }
    }

    /// Whether this rank carries commands out.
    pub(in crate::engine::command_queue) fn has_in_flight(&self) -> bool {
        !self.commands().under_way.is_empty()
    }

    /// Enters an operation whose outcome nobody asks for; a failure of it waits for `complete`.
    pub(in crate::engine::command_queue) fn hold_unclaimed(&self, action: Operation) {
        self.operations()
            .enter(NewOperation { action, order: Order::Free, keep: None, claimed: false }, None);
    }
}
