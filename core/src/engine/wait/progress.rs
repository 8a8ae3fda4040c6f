//! Progress: what every waiting call does between two checks of its condition.

use crate::base::Cause;
use crate::engine::operation::kind::Operation;
use crate::engine::operation::set::OperationSet;
use crate::engine::operation::table::StepResult;
use crate::engine::wait::deadline::apart_from_call;
use crate::engine::worker::{Effort, Worker};
use crate::fabric::{Accepted, Refused};

/// Completions expected in one poll of the fabric.
const BATCH: usize = 64;

/// Refusals after which no further operation is tried in one call. Operations for other peers may be accepted.
const REFUSALS_MAX: usize = 16;

/// Operations whose steps the fabric has refused: they are put back when this is dropped. Also if
/// the call of the fabric unwinds, as in a simulated rank that is killed, because threads wait for
/// the buffers of these operations.
struct RefusedSteps<'o> {
    operations: &'o OperationSet,
    numbers: [u64; REFUSALS_MAX],
    count: usize,
}

impl Drop for RefusedSteps<'_> {
    fn drop(&mut self) {
        self.numbers[..self.count].iter().for_each(|&number| self.operations.put_back(number));
    }
}

impl Worker {
    /// Takes completions, handles requests of peers, and starts operations that may start now.
    pub fn progress(&self) {
        self.progress_with(Effort::Full);
    }

    /// Like [`Worker::progress`], for a call that does not wait: what other work of the agent costs it is bounded.
    pub fn progress_briefly(&self) {
        self.progress_with(Effort::Brief);
    }

    /// Like [`Worker::progress`]. Returns true if a handler has run.
    pub(in crate::engine) fn progress_and_run(&self) -> bool {
        self.progress_with(Effort::Full)
    }

    /// Returns true if a handler has run.
    fn progress_with(&self, effort: Effort) -> bool {
        let Some(guard) = self.polling().try_lock() else {
            return false; // another thread of this rank polls
        };
        let has_callbacks = self.poll(effort);
        drop(guard);
        let calls = self.run_calls();
        self.forward_taken();
        if has_callbacks && let Some(agent) = self.agent() {
            let _apart = apart_from_call(); // a step of a collective call must not end by the limit of a receive
            agent.run_callbacks();
        }
        calls.ran > 0
    }

    /// Polls for the last time: keeps the lock, so that no thread polls after it.
    pub(in crate::engine) fn progress_last(&self) {
        loop {
            if let Some(guard) = self.polling().try_lock() {
                self.poll(Effort::Full);
                return std::mem::forget(guard);
            }
            self.pause_briefly();
        }
    }

    /// Polls once. Returns true if the agent has callbacks to run afterwards.
    fn poll(&self, effort: Effort) -> bool {
        let mut ended = Vec::new();
        self.fabric().poll(&mut |token, outcome| {
            if ended.capacity() == 0 {
                ended.reserve(BATCH);
            }
            ended.push((token, outcome));
        });
        for (number, outcome) in ended {
            self.step_ended(number, outcome);
        }
        if self.operations().unfinished() > 0 {
            self.start_ready();
        }
        if self.commands().are_used()
            || self.commands().has_remote_note()
            || self.commands().inbox_has_commands()
        {
            self.poll_queues();
        }
        self.agent().is_some_and(|agent| agent.advance(self, effort))
    }

    pub(in crate::engine) fn start_ready(&self) {
        let (can, limits) = (self.fabric().capabilities(), self.fabric().limits());
        let mut refused =
            RefusedSteps { operations: self.operations(), numbers: [0; REFUSALS_MAX], count: 0 };
        while refused.count < REFUSALS_MAX
            && let Some((number, step)) = self.operations().next_step(&can, &limits)
        {
            refused.numbers[refused.count] = number;
            refused.count += 1;
            let taken = step.post(self.fabric(), &|| number);
            if matches!(taken, Err(Refused::Again)) {
                continue;
            }
            refused.count -= 1;
            match taken {
                Ok(Accepted::Done(value)) => self.step_ended(number, Ok(value)),
                Ok(Accepted::Started) | Err(Refused::Again) => {}
                Err(Refused::Relay) => self.operations().relay(number),
                Err(Refused::Never(cause)) => self.step_ended(number, Err(*cause)),
            }
        }
    }

    pub(in crate::engine) fn step_ended(&self, number: u64, outcome: Result<u64, Cause>) {
        let (can, limits) = (self.fabric().capabilities(), self.fabric().limits());
        match self.operations().step_ended(number, outcome, &can, &limits) {
            StepResult::Finished { number, action: Operation::Atomic { atomic, result, .. }, fetched } => {
                let stored = self.store_result(result, atomic.width, fetched).map(|()| fetched);
                self.operations().finish(number, stored);
            }
            StepResult::Finished { number, action, fetched } => {
                self.note_arrived(number); // before any thread knows, so that the event precedes what follows
                self.operations().finish(number, Ok(fetched));
                if let Operation::Raise { signal, .. } | Operation::PutSignal { signal, .. } = action {
                    self.notify_waiting_queues(signal, fetched);
                }
            }
            StepResult::More | StepResult::Gone => {}
        }
    }

    /// Fails all operations after a death: the fabric fails those in flight, the table the others.
    pub(in crate::engine) fn fail_operations(&self, cause: &Cause) {
        self.fabric().fail_all(cause);
        self.operations().fail_idle(cause);
    }
}
