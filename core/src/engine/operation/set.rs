//! A rank's operations: their numbers, how many are unfinished, and the table of those.
//!
//! An operation that ends at once never comes to the table; the table costs nothing until something is unfinished.
//!
//! Numbers and counts are read without the lock. A thread that learned of an operation from the thread that issued
//! it finds it counted; of others it may learn late, as if it had asked a moment sooner.

use crate::base::{Cause, Error, Rank};
use crate::engine::operation::kind::FabricStep;
use crate::engine::operation::table::{NewOperation, Next, OperationTable};
use crate::fabric::{Capabilities, Limits};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many operations of a rank may be unfinished; the next one waits for room.
pub const OPERATIONS_MAX: usize = 4096;

/// How many failures may be untold; the next operation is refused until somebody asks.
pub const FAILURES_MAX: usize = 4096;

#[derive(Debug)]
pub(in crate::engine) struct OperationSet {
    issued: AtomicU64,
    unfinished: AtomicUsize,
    /// Failures that nobody was told of.
    untold: AtomicUsize,
    /// Whether anything ever failed in the table.
    failed: AtomicBool,
    table: Mutex<OperationTable>,
}

impl OperationSet {
    pub(in crate::engine) fn new(rank: Rank) -> OperationSet {
        OperationSet {
            issued: AtomicU64::new(0),
            unfinished: AtomicUsize::new(0),
            untold: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            table: Mutex::new(OperationTable::new(rank)),
        }
    }

    /// Number of the operation issued last.
    #[inline]
    pub(in crate::engine) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// How many are unfinished.
    #[inline]
    pub(in crate::engine) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Whether nothing is unfinished and nothing has failed: any order is met then.
    #[inline]
    pub(in crate::engine) fn is_quiet(&self) -> bool {
        self.unfinished() == 0 && !self.failed.load(Ordering::Relaxed)
    }

    /// Whether so many failures are untold that no operation may be issued that could add one.
    #[inline]
    pub(in crate::engine) fn is_clogged(&self) -> bool {
        self.untold.load(Ordering::Relaxed) >= FAILURES_MAX
    }

    /// The number of an operation that ended at once. One of its own: no other operation's failure, and no other
    /// operation's end, is taken for this one's.
    #[inline]
    pub(in crate::engine) fn number_done(&self) -> u64 {
        self.issued.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether another operation may be entered.
    pub(in crate::engine) fn has_room(&self) -> bool {
        self.unfinished() < OPERATIONS_MAX
    }

    /// Enters an operation; with the step that its fabric is about to have, if there is one. Its number.
    pub(in crate::engine) fn enter(&self, draft: NewOperation, step: Option<FabricStep>) -> u64 {
        self.with(|table| {
            let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
            table.enter(number, draft, step);
            number
        })
    }

    /// Whether that operation has ended.
    pub(in crate::engine) fn is_finished(&self, number: u64) -> bool {
        self.unfinished() == 0 || self.with(|table| table.is_finished(number))
    }

    /// Whether all operations up to that number have ended.
    pub(in crate::engine) fn is_finished_through(&self, number: u64) -> bool {
        self.unfinished() == 0 || self.with(|table| table.is_finished_through(number))
    }

    /// The outcome of a claimed operation that has ended.
    pub(in crate::engine) fn take(&self, number: u64) -> Option<Result<u64, Error>> {
        self.with(|table| table.take(number))
    }

    /// Tells the failure of that one operation, if nobody was told.
    pub(in crate::engine) fn report_exactly(&self, number: u64) -> Result<(), Error> {
        if self.untold.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.with(|table| table.failures.tell_exactly(number)).map_or(Ok(()), Err)
    }

    /// Tells the first failure up to that number that nobody was told of; the others there count as told.
    pub(in crate::engine) fn report(&self, through: u64) -> Result<(), Error> {
        if self.untold.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.with(|table| table.failures.tell(through)).map_or(Ok(()), Err)
    }

    /// An operation that may take its next step now, with that step.
    pub(in crate::engine) fn next_step(
        &self,
        can: &Capabilities,
        limits: &Limits,
    ) -> Option<(u64, FabricStep)> {
        self.with(|table| table.next_step(limits, can.remote_completion))
    }

    /// The fabric did not take the step: later.
    pub(in crate::engine) fn put_back(&self, number: u64) {
        self.with(|table| table.put_back(number));
    }

    /// The fabric wants that copy as a get and a put.
    pub(in crate::engine) fn relay(&self, number: u64) {
        self.with(|table| table.relay(number));
    }

    /// The fabric's step of that operation has ended. `Finished` leaves the entry to [`OperationSet::finish`].
    pub(in crate::engine) fn step_ended(
        &self,
        number: u64,
        outcome: Result<u64, Cause>,
        can: &Capabilities,
        limits: &Limits,
    ) -> Next {
        self.with(|table| table.step_ended(number, outcome, limits, can.remote_completion))
    }

    /// The operation has ended.
    pub(in crate::engine) fn finish(&self, number: u64, outcome: Result<u64, Cause>) {
        self.with(|table| table.end(number, outcome));
    }

    /// Everything that the fabric does not have ends with `cause`.
    pub(in crate::engine) fn fail_idle(&self, cause: &Cause) {
        self.with(|table| table.fail_idle(cause));
    }

    /// Uses the table, and publishes its counts for those who look without the lock.
    fn with<R>(&self, work: impl FnOnce(&mut OperationTable) -> R) -> R {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut table);
        // Failures first: who sees that nothing is unfinished sees what failed.
        self.untold.store(table.failures.untold(), Ordering::Relaxed);
        self.failed.store(!table.failures.is_empty(), Ordering::Relaxed);
        self.unfinished.store(table.len(), Ordering::Release);
        result
    }
}
