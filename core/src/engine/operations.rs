//! The table of operations that are not finished: held back by their order, or under way.
//!
//! An operation that ends at once never comes here; the table costs nothing until something is unfinished.

use super::action::{Action, Course, Step};
use super::order::Order;
use crate::base::{Cause, Error, Rank};
use crate::fabric::{Capabilities, Limits};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// How many operations of a rank may be unfinished; the next one waits for room.
pub const OPERATIONS_MAX: usize = 4096;

/// Failures that are remembered for operations ordered after them.
const FAILURES_MAX: usize = 256;

/// Keeps a buffer alive until its operation has ended.
pub(super) type Keep = Option<Arc<dyn Any + Send + Sync>>;

/// An operation that nobody has issued yet.
pub(super) struct Draft {
    pub(super) action: Action,
    pub(super) order: Order,
    pub(super) keep: Keep,
    /// Somebody will take the outcome by [`Operations::take`]; otherwise a failure waits for `complete`.
    pub(super) claimed: bool,
}

#[derive(Debug)]
pub(super) struct Operations {
    rank: Rank,
    issued: AtomicU64,
    unfinished: AtomicUsize,
    /// Whether some failure has not been reported yet.
    failed: AtomicBool,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    /// How many entries are neither under way nor finished.
    idle: usize,
    outcomes: BTreeMap<u64, Result<u64, Error>>,
    failures: VecDeque<Failure>,
}

#[derive(Debug)]
struct Entry {
    course: Course,
    order: Order,
    /// The step that the fabric has, if it has one.
    under_way: Option<Step>,
    claimed: bool,
    /// What the last fetching step brought.
    fetched: u64,
    _keep: Keep,
}

#[derive(Debug)]
struct Failure {
    number: u64,
    error: Error,
    reported: bool,
}

/// What to do after a step has ended.
pub(super) enum Next {
    /// The operation is still in the table.
    More,
    /// It ended well; `result` is where its old value goes.
    Finished { number: u64, action: Action, fetched: u64 },
    /// It had ended already.
    Gone,
}

impl Operations {
    pub(super) fn new(rank: Rank) -> Operations {
        Operations {
            rank,
            issued: AtomicU64::new(0),
            unfinished: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            table: Mutex::default(),
        }
    }

    /// Number of the operation issued last.
    #[inline]
    pub(super) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// How many are unfinished.
    #[inline]
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Whether nothing is unfinished and no failure is unreported: any order is met then.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.unfinished() == 0 && !self.failed.load(Ordering::Relaxed)
    }

    /// The number of an operation that ended at once. While others are unfinished it gets one of its own, so that
    /// what is ordered after exactly this one does not wait for them.
    #[inline]
    pub(super) fn number_done(&self) -> u64 {
        if self.unfinished() == 0 { self.issued() } else { self.issued.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    /// Enters an operation; with the step that its fabric is about to have, if there is one. `None` if the table
    /// is full and it may not be overfilled.
    pub(super) fn enter(&self, operation: Draft, step: Option<Step>) -> u64 {
        let mut table = self.table();
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        let Draft { action, order, keep, claimed } = operation;
        table.idle += usize::from(step.is_none());
        let course = Course::new(action);
        table
            .entries
            .insert(number, Entry { course, order, under_way: step, claimed, fetched: 0, _keep: keep });
        self.unfinished.fetch_add(1, Ordering::Release);
        number
    }

    /// Whether another operation may be entered.
    pub(super) fn has_room(&self) -> bool {
        self.unfinished() < OPERATIONS_MAX
    }

    /// Whether that operation has ended.
    pub(super) fn is_finished(&self, number: u64) -> bool {
        self.unfinished() == 0 || !self.table().entries.contains_key(&number)
    }

    /// Whether all operations up to that number have ended.
    pub(super) fn is_finished_through(&self, number: u64) -> bool {
        self.unfinished() == 0 || self.table().is_finished_through(number)
    }

    /// The outcome of a claimed operation that has ended.
    pub(super) fn take(&self, number: u64) -> Option<Result<u64, Error>> {
        self.table().outcomes.remove(&number)
    }

    /// The failure of that one operation, if nobody was told, marking it as told.
    pub(super) fn report_exactly(&self, number: u64) -> Result<(), Error> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut table = self.table();
        let told = table.failures.iter_mut().find(|failure| !failure.reported && failure.number == number);
        let error = told.map(|failure| {
            failure.reported = true;
            failure.error.clone()
        });
        let open = table.failures.iter().any(|failure| !failure.reported);
        self.failed.store(open, Ordering::Relaxed);
        error.map_or(Ok(()), Err)
    }

    /// The first failure up to that number that nobody was told, marking all of them as told.
    pub(super) fn report(&self, through: u64) -> Result<(), Error> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut table = self.table();
        let mut told =
            table.failures.iter_mut().filter(|failure| !failure.reported && failure.number <= through);
        let first = told.next().map(|failure| {
            failure.reported = true;
            failure.error.clone()
        });
        let others = told.map(|failure| failure.reported = true).count();
        let open = table.failures.iter().any(|failure| !failure.reported);
        self.failed.store(open, Ordering::Relaxed);
        match first {
            None => Ok(()),
            Some(error) if others == 0 => Err(error),
            Some(error) => Err(error.note(format!("{others} more operations failed"))),
        }
    }

    /// An operation that may take its next step now, with that step; failed predecessors are dealt with on the way.
    pub(super) fn next_step(&self, can: &Capabilities, limits: &Limits) -> Option<(u64, Step)> {
        let mut table = self.table();
        if table.idle == 0 {
            return None;
        }
        let idle: Vec<u64> =
            table.entries.iter().filter(|(_, e)| e.under_way.is_none()).map(|(&n, _)| n).collect();
        for number in idle {
            let order = table.entries[&number].order;
            if let Some(error) = table.failed_before(order) {
                self.end(&mut table, number, Err(Cause::Predecessor { report: error }));
                continue;
            }
            if !table.is_met(order, number) {
                continue;
            }
            let entry = table.entries.get_mut(&number).expect("listed above");
            match entry.course.step(can, limits) {
                Some(step) => {
                    entry.under_way = Some(step);
                    table.idle -= 1;
                    return Some((number, step));
                }
                None => self.end(&mut table, number, Ok(0)),
            }
        }
        None
    }

    /// The fabric did not take the step: later.
    pub(super) fn put_back(&self, number: u64) {
        let mut table = self.table();
        if let Some(entry) = table.entries.get_mut(&number) {
            entry.under_way = None;
            table.idle += 1;
        }
    }

    /// The fabric wants that copy as a get and a put.
    pub(super) fn relay(&self, number: u64) {
        if let Some(entry) = self.table().entries.get_mut(&number) {
            entry.course.by_relay = true;
        }
        self.put_back(number);
    }

    /// The fabric's step of that operation has ended. `Finished` leaves the entry to [`Operations::finish`].
    pub(super) fn step_ended(
        &self,
        number: u64,
        outcome: Result<u64, Cause>,
        can: &Capabilities,
        limits: &Limits,
    ) -> Next {
        let mut table = self.table();
        let Some(entry) = table.entries.get_mut(&number) else { return Next::Gone };
        let Some(step) = entry.under_way.take() else { return Next::Gone };
        table.idle += 1;
        match outcome {
            Err(cause) => {
                self.end(&mut table, number, Err(cause));
                Next::Gone
            }
            Ok(value) => {
                let entry = table.entries.get_mut(&number).expect("found above");
                entry.course.advance(&step);
                if matches!(step, Step::Atomic { .. }) {
                    entry.fetched = value;
                }
                match entry.course.step(can, limits) {
                    Some(_) => Next::More,
                    None => Next::Finished { number, action: entry.course.action, fetched: entry.fetched },
                }
            }
        }
    }

    /// The operation has ended.
    pub(super) fn finish(&self, number: u64, outcome: Result<u64, Cause>) {
        let mut table = self.table();
        self.end(&mut table, number, outcome);
    }

    /// Everything that the fabric does not have ends with `cause`.
    pub(super) fn fail_idle(&self, cause: &Cause) {
        let mut table = self.table();
        let idle: Vec<u64> =
            table.entries.iter().filter(|(_, e)| e.under_way.is_none()).map(|(&n, _)| n).collect();
        for number in idle {
            self.end(&mut table, number, Err(cause.clone()));
        }
    }

    fn end(&self, table: &mut Table, number: u64, outcome: Result<u64, Cause>) {
        let Some(entry) = table.entries.remove(&number) else { return };
        table.idle -= usize::from(entry.under_way.is_none());
        let action = entry.course.action;
        let outcome =
            outcome.map_err(|cause| Error::new(cause).in_call(|| action.to_string()).on_rank(self.rank));
        match outcome {
            outcome if entry.claimed => {
                if let Err(error) = &outcome {
                    self.remember(table, number, error.clone());
                    // Whoever claimed it is told; only those ordered after it still need the record.
                    table.failures.back_mut().expect("just pushed").reported = true;
                    let open = table.failures.iter().any(|failure| !failure.reported);
                    self.failed.store(open, Ordering::Relaxed);
                }
                table.outcomes.insert(number, outcome);
            }
            Err(error) => self.remember(table, number, error),
            Ok(_) => {}
        }
        self.unfinished.fetch_sub(1, Ordering::Release);
    }

    fn remember(&self, table: &mut Table, number: u64, error: Error) {
        if table.failures.len() == FAILURES_MAX {
            table.failures.pop_front();
        }
        table.failures.push_back(Failure { number, error, reported: false });
        self.failed.store(true, Ordering::Relaxed);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Table {
    fn is_finished_through(&self, number: u64) -> bool {
        self.entries.first_key_value().is_none_or(|(&first, _)| first > number)
    }

    fn is_met(&self, order: Order, number: u64) -> bool {
        match order {
            Order::Free => true,
            Order::Exact(before) => !self.entries.contains_key(&before),
            Order::Through(last) => self.is_finished_through(last.min(number - 1)),
        }
    }

    /// The report of a failed operation that `order` names.
    fn failed_before(&self, order: Order) -> Option<String> {
        let named = |failure: &&Failure| match order {
            Order::Free => false,
            Order::Exact(number) => failure.number == number,
            Order::Through(last) => failure.number <= last && !failure.reported,
        };
        self.failures.iter().find(named).map(|failure| failure.error.headline())
    }
}
