//! Running long actions: without the lease, step by step if the fabric does not complete them at once.

use crate::base::Cause;
use crate::engine::command_queue::lookup::{Failure, ResolvedQueue};
use crate::engine::command_queue::run::long_action::LongAction;
use crate::engine::command_queue::run::short_action::WORD;
use crate::engine::trace::EventKind;
use crate::engine::worker::Worker;
use crate::engine::{RevocableBuffer, Started};
use crate::fabric::{Atomic, Poison};
use crate::queue::command::{Action, Command, REDUCE_BYTES_MAX};
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;

impl Worker {
    /// Runs a command that was taken for this rank, or begins to.
    pub(in crate::engine::command_queue) fn run_taken_command(
        &self,
        resolved: &ResolvedQueue<'_>,
        command_number: u64,
    ) {
        self.record_in_flight(resolved, command_number, false, EventKind::Began);
        let Some(command) = resolved.queue.in_flight().command(command_number) else {
            let cause = Cause::Bug("an in-flight command with an invalid encoding".into());
            return self.end_in_flight(resolved, command_number, Some(Poison::of(&cause, self.rank())));
        };
        if command.as_call().is_some() || self.commands().offload_target(&command).is_some() {
            return self.commands().forward_later(resolved, command_number);
        }
        if !self.share_copy(resolved, command_number, &command) {
            self.begin_steps(resolved, command_number, &command);
        }
    }

    /// Takes the first steps of a command.
    pub(in crate::engine::command_queue) fn begin_steps(
        &self,
        resolved: &ResolvedQueue<'_>,
        command_number: u64,
        command: &Command,
    ) {
        let one = LongAction::new(resolved.place(command_number), command.action);
        if let Some(one) = self.advance(resolved, one, command, 0) {
            self.commands().in_flight.push(one);
        }
    }

    /// Takes steps as long as they complete at once. Returns the command if it has not ended.
    fn advance(
        &self,
        resolved: &ResolvedQueue<'_>,
        mut one: LongAction,
        command: &Command,
        fetched: u64,
    ) -> Option<LongAction> {
        let mut fetched = fetched;
        loop {
            let failure = match self.start_step(&mut one, fetched) {
                Ok(Some(Started::Done(value))) => {
                    (fetched, one.step) = (value, one.step + 1);
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
            self.end_in_flight(resolved, one.place.number, failure);
            return None;
        }
    }

    /// Starts the next step; `None` if there are no more. `fetched` is the value that the last step fetched.
    fn start_step(&self, long: &mut LongAction, fetched: u64) -> Result<Option<Started>, Cause> {
        match (long.action, long.step) {
            (Action::Copy { from, to, len }, 0) => self.start_copy(from, to, len).map(Some),
            (Action::Put { to, bytes }, 0) => self.start_put_of(long, bytes.bytes(), to).map(Some),
            (Action::Atomic { at, atomic, .. }, 0) => self.start_atomic(at, atomic).map(Some),
            (Action::Atomic { atomic, result, .. }, 1) if !result.is_null() => {
                self.start_result(long, atomic, result, fetched).map(Some)
            }
            (Action::Reduce { from, to, len, how }, step) => {
                self.start_reduction(long, step, from, to, len, how)
            }
            _ => Ok(None),
        }
    }

    /// Puts bytes from the first buffer.
    fn start_put_of(&self, long: &mut LongAction, bytes: &[u8], to: GlobalAddress) -> Result<Started, Cause> {
        let lendable = long.buffers[0].get_or_insert_with(|| RevocableBuffer::from_vec(bytes.to_vec()));
        self.start_put(to, &lendable.enter()?, 0..bytes.len())
    }

    /// Writes the old value of a word to its destination.
    fn start_result(
        &self,
        long: &mut LongAction,
        atomic: Atomic,
        result: GlobalAddress,
        fetched: u64,
    ) -> Result<Started, Cause> {
        let bytes: [u8; WORD] = fetched.to_le_bytes();
        self.start_put_of(long, &bytes[..atomic.width.bytes() as usize], result)
    }

    /// Fetches both arrays, combines them, and writes the result back.
    fn start_reduction(
        &self,
        long: &mut LongAction,
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
            |at: usize| long.buffers[at].get_or_insert_with(|| RevocableBuffer::zeroed(size)).clone();
        if step == 0 && self.reduce_inline(from, to, len, how) {
            return Ok(None);
        }
        match step {
            0 => self.start_get(from, &place(0).enter()?, 0..size).map(Some),
            1 => self.start_get(to, &place(1).enter()?, 0..size).map(Some),
            2 => {
                let ours = place(1);
                // Combined once, however often this step is tried.
                if let Some(theirs) = long.buffers[0].take() {
                    let (mut from, mut into) = (vec![0; size], vec![0; size]);
                    theirs.enter()?.view().read(0, &mut from);
                    ours.enter()?.view().read(0, &mut into);
                    if !self.operators().combine(how, &mut into, &mut from, self.log()) {
                        return Err(self.operators().why_not_combined(how, self.rank()));
                    }
                    ours.enter()?.view().write(0, &into);
                }
                self.start_put(to, &ours.enter()?, 0..size).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Logs that a command has failed on this rank, and makes its poison.
    pub(in crate::engine::command_queue) fn failed(&self, command: &Command, cause: &Cause) -> Poison {
        self.log().say(crate::base::log::Level::Info, format_args!("{command} failed: {cause}"));
        Poison::of(cause, self.rank())
    }

    pub(in crate::engine::command_queue) fn end_in_flight(
        &self,
        resolved: &ResolvedQueue<'_>,
        command_number: u64,
        failure: Failure,
    ) {
        self.record_in_flight(resolved, command_number, failure.is_some(), EventKind::Ended);
        // If another rank ran it, its poison came by a signal; here it is the cause itself.
        resolved.queue.in_flight().end(command_number, failure.map(|poison| poison.as_own_failure().words()));
    }

    /// Takes the next steps of the commands that this rank runs.
    pub(in crate::engine::command_queue) fn advance_in_flight(&self) {
        for mut one in self.commands().in_flight.take_all() {
            let mut outcome = Ok(0);
            if let Some(operation) = one.operation {
                match self.take_outcome(operation) {
                    None => {
                        self.commands().in_flight.push(one);
                        continue;
                    }
                    Some(taken) => outcome = taken,
                }
                one.step += 1;
            }
            self.step_finished(one, outcome);
        }
    }

    /// Continues a command whose step has ended or can be tried again.
    fn step_finished(&self, one: LongAction, outcome: Result<u64, Cause>) {
        let Some(resolved) = self.commands().find_by_id(one.place.queue) else { return };
        let Some(command) = resolved.queue.in_flight().command(one.place.number) else { return };
        let left = match outcome {
            Ok(fetched) => self.advance(&resolved, one, &command, fetched),
            Err(cause) => {
                self.end_in_flight(&resolved, one.place.number, Some(self.failed(&command, &cause)));
                None
            }
        };
        match left {
            Some(one) => self.commands().in_flight.push(one),
            None => {
                self.run_queue_and_ready(&resolved);
            }
        }
    }
}
