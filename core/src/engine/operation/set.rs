//! A rank's operations: their numbers, the count of unfinished ones, and the table of those.
//!
//! An operation that the fabric completes within the call never enters the table; the table costs nothing until an
//! operation is unfinished.
//!
//! Numbers and counts are read without the lock. A thread that learned of an operation from the issuing thread finds it
//! counted. It may learn of others late, as if it had read the counts a moment sooner.

use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::{Cause, Error, Rank};
use crate::engine::operation::fabric_step::FabricStep;
use crate::engine::operation::kind::Operation;
use crate::engine::operation::order::Order;
use crate::engine::operation::table::{KeepAlive, NewOperation, OperationTable, StepResult};
use crate::fabric::{Capabilities, Limits};
use std::sync::{Mutex, PoisonError};

/// Most operations of a rank that may be unfinished; the next one waits for room.
pub const OPERATIONS_MAX: usize = 4096;

/// Most failures that may be unreported; the next operation is refused until the program calls `complete`.
pub const FAILURES_MAX: usize = 4096;

#[derive(Debug)]
pub(in crate::engine) struct OperationSet {
    issued: AtomicU64,
    unfinished: AtomicUsize,
    /// Number of failures that were not reported.
    unreported: AtomicUsize,
    /// True while the table remembers a failure.
    failed: AtomicBool,
    table: Mutex<OperationTable>,
}

impl OperationSet {
    pub(in crate::engine) fn new(rank: Rank) -> OperationSet {
        OperationSet {
            issued: AtomicU64::new(0),
            unfinished: AtomicUsize::new(0),
            unreported: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            table: Mutex::new(OperationTable::new(rank)),
        }
    }

    /// Returns the number of the operation issued last.
    #[inline]
    pub(in crate::engine) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// Returns the number of unfinished operations.
    #[inline]
    pub(in crate::engine) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Returns true if nothing is unfinished and no failure is remembered: then every order is met.
    #[inline]
    pub(in crate::engine) fn is_all_well(&self) -> bool {
        self.unfinished() == 0 && !self.failed.load(Ordering::Relaxed)
    }

    /// Returns true if there are so many unreported failures that no further operation may be issued.
    #[inline]
    pub(in crate::engine) fn has_too_many_failures(&self) -> bool {
        self.unreported.load(Ordering::Relaxed) >= FAILURES_MAX
    }

    /// Returns a new number for an operation that completed within the call, so that no other
    /// operation's failure or end is taken for its own.
    #[inline]
    pub(in crate::engine) fn next_number(&self) -> u64 {
        self.issued.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns true if another operation may be entered.
    pub(in crate::engine) fn has_room(&self) -> bool {
        self.unfinished() < OPERATIONS_MAX
    }

    /// Enters an operation, with the step that its fabric has just accepted, if any. Returns its number.
    pub(in crate::engine) fn enter(&self, new: NewOperation, step: Option<FabricStep>) -> u64 {
        self.with(|table| {
            let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
            table.enter(number, new, step);
            number
        })
    }

    /// Enters an operation that its fabric has just accepted. Returns its number.
    #[cold]
    pub(in crate::engine) fn enter_in_flight(
        &self,
        action: Operation,
        keep: KeepAlive,
        caller_takes_outcome: bool,
    ) -> u64 {
        let new = NewOperation { action, order: Order::Free, keep, caller_takes_outcome };
        self.enter(new, Some(FabricStep::of(action)))
    }

    /// Enters an operation whose outcome no caller waits for. `complete` reports its failure.
    pub(in crate::engine) fn enter_unattended(&self, action: Operation) {
        self.enter(
            NewOperation { action, order: Order::Free, keep: None, caller_takes_outcome: false },
            None,
        );
    }

    /// Returns true if that operation has ended.
    pub(in crate::engine) fn is_finished(&self, number: u64) -> bool {
        self.unfinished() == 0 || self.with(|table| table.is_finished(number))
    }

    /// Returns true if all operations up to that number have ended.
    pub(in crate::engine) fn is_finished_through(&self, number: u64) -> bool {
        self.unfinished() == 0 || self.with(|table| table.is_finished_through(number))
    }

    /// Takes the outcome of an operation that has ended and whose caller takes it.
    pub(in crate::engine) fn take(&self, number: u64) -> Option<Result<u64, Error>> {
        self.with(|table| table.take(number))
    }

    /// Reports the failure of that operation if it was not reported.
    pub(in crate::engine) fn report_exactly(&self, number: u64) -> Result<(), Error> {
        if self.unreported.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.with(|table| table.failures.report_exactly(number)).map_or(Ok(()), Err)
    }

    /// Reports the first unreported failure up to that number; the others up to it count as reported.
    pub(in crate::engine) fn report(&self, through: u64) -> Result<(), Error> {
        if self.unreported.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.with(|table| table.failures.report(through)).map_or(Ok(()), Err)
    }

    /// Returns an operation that may take its next step now, and the step.
    pub(in crate::engine) fn next_step(
        &self,
        can: &Capabilities,
        limits: &Limits,
    ) -> Option<(u64, FabricStep)> {
        self.with(|table| table.next_step(limits, can.remote_completion))
    }

    /// Makes an operation ready again because the fabric refused its step.
    pub(in crate::engine) fn put_back(&self, number: u64) {
        self.with(|table| table.put_back(number));
    }

    /// Marks a copy to be done as a get and a put, and makes it ready again.
    pub(in crate::engine) fn relay(&self, number: u64) {
        self.with(|table| table.relay(number));
    }

    /// Records the end of an operation's step. `Finished` leaves the entry to [`OperationSet::finish`].
    pub(in crate::engine) fn step_ended(
        &self,
        number: u64,
        outcome: Result<u64, Cause>,
        can: &Capabilities,
        limits: &Limits,
    ) -> StepResult {
        self.with(|table| table.step_ended(number, outcome, limits, can.remote_completion))
    }

    /// Ends an operation.
    pub(in crate::engine) fn finish(&self, number: u64, outcome: Result<u64, Cause>) {
        self.with(|table| table.finish(number, outcome));
    }

    /// Ends all operations that are not in flight with `cause`.
    pub(in crate::engine) fn fail_idle(&self, cause: &Cause) {
        self.with(|table| table.fail_idle(cause));
    }

    /// Uses the table, and publishes its counts for threads that read them without the lock.
    fn with<R>(&self, work: impl FnOnce(&mut OperationTable) -> R) -> R {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut table);
        // Failures first: a thread that sees that nothing is unfinished sees the failures.
        self.unreported.store(table.failures.unreported(), Ordering::Relaxed);
        self.failed.store(!table.failures.is_empty(), Ordering::Relaxed);
        self.unfinished.store(table.len(), Ordering::Release);
        result
    }
}
