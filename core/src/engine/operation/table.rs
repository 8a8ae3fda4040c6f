//! The operations that are not finished: held back by their order, ready for a step, or under way.
//!
//! ```text
//! enter --> Held --predecessors ended--> Ready --next_step--> ActionInFlight --step_ended--> Ending --end--> gone
//!   |        |                           ^   ^                  |  |
//!   +--------|---------------------------+   +----put_back------+--+ more steps
//!            +--a predecessor failed--> gone
//! ```
//!
//! What an operation waits for is looked up when something ends, so that a poll costs nothing for those held back.

use crate::base::{Cause, Error, Rank};
use crate::engine::operation::failures::Failures;
use crate::engine::operation::kind::{FabricStep, Operation, OperationProgress};
use crate::engine::operation::order::Order;
use crate::fabric::Limits;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Keeps a buffer alive until its operation has ended.
pub(in crate::engine) type KeepAlive = Option<Arc<dyn Any + Send + Sync>>;

/// An operation that nobody has issued yet.
pub(in crate::engine) struct NewOperation {
    pub(in crate::engine) action: Operation,
    pub(in crate::engine) order: Order,
    pub(in crate::engine) keep: KeepAlive,
    /// Somebody will take the outcome by [`OperationTable::take`]; otherwise a failure waits for `complete`.
    pub(in crate::engine) claimed: bool,
}

/// What to do after a step has ended.
pub(in crate::engine) enum Next {
    /// The operation is still in the table.
    More,
    /// It ended well; `action` says where its old value goes. The entry waits for [`OperationTable::end`].
    Finished { number: u64, action: Operation, fetched: u64 },
    /// It had ended already.
    Gone,
}

#[derive(Debug)]
pub(in crate::engine) struct OperationTable {
    rank: Rank,
    entries: BTreeMap<u64, OperationEntry>,
    /// Those that may take their next step, in the order of trying: one that its fabric refused goes to the end.
    ready: VecDeque<u64>,
    /// Those held back by one operation: that one's number, and their own.
    after_one: BTreeSet<(u64, u64)>,
    /// Those held back by all operations up to one: that one's number, and their own.
    after_all: BTreeSet<(u64, u64)>,
    outcomes: BTreeMap<u64, Result<u64, Error>>,
    pub(in crate::engine) failures: Failures,
}

#[derive(Debug)]
struct OperationEntry {
    course: OperationProgress,
    state: State,
    claimed: bool,
    /// What the last fetching step brought.
    fetched: u64,
    _keep: KeepAlive,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Its number is in `after_one` or `after_all`.
    Held,
    /// Its number is in `ready`.
    Ready,
    /// The fabric has this step.
    ActionInFlight(FabricStep),
    /// All steps have ended; its result is being stored.
    Ending,
}

impl OperationTable {
    pub(in crate::engine) fn new(rank: Rank) -> OperationTable {
        OperationTable {
            rank,
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            after_one: BTreeSet::new(),
            after_all: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            failures: Failures::default(),
        }
    }

    /// How many operations are unfinished.
    pub(in crate::engine) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Enters an operation; with the step that its fabric is about to have, if there is one.
    pub(in crate::engine) fn enter(&mut self, number: u64, draft: NewOperation, step: Option<FabricStep>) {
        let NewOperation { action, order, keep, claimed } = draft;
        let report = if step.is_none() { self.failures.stops(order).map(Error::headline) } else { None };
        let state = match step {
            Some(step) => State::ActionInFlight(step),
            None if report.is_some() || self.is_met(order) => State::Ready,
            None => State::Held,
        };
        let entry = OperationEntry {
            course: OperationProgress::new(action),
            state,
            claimed,
            fetched: 0,
            _keep: keep,
        };
        self.entries.insert(number, entry);
        match (state, order, report) {
            (_, _, Some(report)) => self.end(number, Err(Cause::Predecessor { report })),
            (State::Ready, _, None) => self.ready.push_back(number),
            (State::Held, Order::Exact(before), _) => {
                self.after_one.insert((before, number));
            }
            (State::Held, Order::Prefix(last) | Order::All(last), _) => {
                self.after_all.insert((last, number));
            }
            _ => {}
        }
    }

    /// Whether that operation has ended.
    pub(in crate::engine) fn is_finished(&self, number: u64) -> bool {
        !self.entries.contains_key(&number)
    }

    /// Whether all operations up to that number have ended.
    pub(in crate::engine) fn is_finished_through(&self, number: u64) -> bool {
        self.entries.first_key_value().is_none_or(|(&first, _)| first > number)
    }

    fn is_met(&self, order: Order) -> bool {
        match order {
            Order::Free => true,
            Order::Exact(before) => self.is_finished(before),
            Order::Prefix(last) | Order::All(last) => self.is_finished_through(last),
        }
    }

    /// The outcome of a claimed operation that has ended.
    pub(in crate::engine) fn take(&mut self, number: u64) -> Option<Result<u64, Error>> {
        self.outcomes.remove(&number)
    }

    /// An operation that may take its next step now, with that step.
    pub(in crate::engine) fn next_step(
        &mut self,
        limits: &Limits,
        remote_completion: bool,
    ) -> Option<(u64, FabricStep)> {
        while let Some(number) = self.ready.pop_front() {
            let entry = self.entries.get_mut(&number).expect("what is ready is in the table");
            match entry.course.step(limits, remote_completion) {
                Some(step) => {
                    entry.state = State::ActionInFlight(step);
                    return Some((number, step));
                }
                None => self.end(number, Ok(0)),
            }
        }
        None
    }

    /// The fabric did not take the step: later.
    pub(in crate::engine) fn put_back(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.state = State::Ready;
            self.ready.push_back(number);
        }
    }

    /// The fabric wants that copy as a get and a put.
    pub(in crate::engine) fn relay(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.course.by_relay = true;
        }
        self.put_back(number);
    }

    /// The fabric's step of that operation has ended.
    pub(in crate::engine) fn step_ended(
        &mut self,
        number: u64,
        outcome: Result<u64, Cause>,
        limits: &Limits,
        remote_completion: bool,
    ) -> Next {
        let Some(entry) = self.entries.get_mut(&number) else { return Next::Gone };
        let State::ActionInFlight(step) = entry.state else { return Next::Gone };
        let value = match outcome {
            Ok(value) => value,
            Err(cause) => {
                self.end(number, Err(cause));
                return Next::Gone;
            }
        };
        entry.course.advance(&step);
        if matches!(step, FabricStep::Atomic { .. } | FabricStep::Raise { .. } | FabricStep::PutSignal { .. })
        {
            entry.fetched = value;
        }
        if entry.course.step(limits, remote_completion).is_some() {
            self.put_back(number);
            return Next::More;
        }
        entry.state = State::Ending;
        Next::Finished { number, action: entry.course.action, fetched: entry.fetched }
    }

    /// Everything that the fabric does not have ends with `cause`.
    pub(in crate::engine) fn fail_idle(&mut self, cause: &Cause) {
        self.ready.clear();
        self.after_one.clear();
        self.after_all.clear();
        let is_idle = |entry: &OperationEntry| !matches!(entry.state, State::ActionInFlight(_));
        let idle: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| is_idle(entry)).map(|(&number, _)| number).collect();
        idle.into_iter().for_each(|number| self.end(number, Err(cause.clone())));
    }

    /// The operation, which is in no queue, has ended; those that it held back become ready, or end too.
    pub(in crate::engine) fn end(&mut self, number: u64, outcome: Result<u64, Cause>) {
        let mut ended = vec![(number, outcome)];
        while let Some((number, outcome)) = ended.pop() {
            let Some(report) = self.remove(number, outcome) else { continue };
            let poisoned =
                report.map(|report| self.poisoned_by(number).into_iter().map(move |n| (n, report.clone())));
            let poisoned = poisoned.into_iter().flatten();
            ended.extend(poisoned.map(|(number, report)| (number, Err(Cause::Predecessor { report }))));
            self.release_after(number);
        }
    }

    /// Takes an entry out and keeps its outcome for who is to know. `Some` if it was there, with its failure in a
    /// line if it failed.
    fn remove(&mut self, number: u64, outcome: Result<u64, Cause>) -> Option<Option<String>> {
        let entry = self.entries.remove(&number)?;
        let action = entry.course.action;
        let outcome =
            outcome.map_err(|cause| Error::new(cause).in_call(|| action.to_string()).on_rank(self.rank));
        let report = outcome.as_ref().err().map(Error::headline);
        if let Err(error) = &outcome {
            // An effect on a rank that has left: there is nobody any more who could miss it.
            let is_effect =
                !entry.claimed && matches!(action, Operation::Raise { .. } | Operation::Poison { .. });
            let is_vain = is_effect && matches!(error.cause(), Cause::PeerLeft { .. });
            self.failures.record(number, error.clone(), entry.claimed || is_vain);
        }
        if entry.claimed {
            self.outcomes.insert(number, outcome);
        }
        Some(report)
    }

    /// Takes those out of their queues that the failure of `number` keeps from starting.
    fn poisoned_by(&mut self, number: u64) -> Vec<u64> {
        let one = (number, 0)..=(number, u64::MAX);
        let mut poisoned: Vec<(u64, u64)> = self.after_one.range(one).copied().collect();
        for pair in &poisoned {
            self.after_one.remove(pair);
        }
        let behind = self.after_all.split_off(&(number, 0));
        poisoned.extend(behind);
        poisoned.into_iter().map(|(_, held)| held).collect()
    }

    /// Makes those ready that waited for nothing but `number`, which has ended.
    fn release_after(&mut self, number: u64) {
        while let Some(&pair) = self.after_one.range((number, 0)..=(number, u64::MAX)).next() {
            self.after_one.remove(&pair);
            self.put_back(pair.1);
        }
        while let Some(&(last, held)) = self.after_all.first()
            && self.is_finished_through(last)
        {
            self.after_all.pop_first();
            self.put_back(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::GlobalAddress;

    const LIMITS: Limits = Limits { transfer_bytes_max: 100, outstanding_max: 1 };

    /// A table with operations 1, 2, ... of those orders, each one raise of a signal.
    fn table(orders: &[Order]) -> OperationTable {
        let mut table = OperationTable::new(Rank(0));
        for (number, &order) in (1..).zip(orders) {
            let action = Operation::Raise { signal: GlobalAddress::NULL, amount: 1 };
            table.enter(number, NewOperation { action, order, keep: None, claimed: false }, None);
        }
        table
    }

    fn startable(table: &mut OperationTable) -> Vec<u64> {
        std::iter::from_fn(|| table.next_step(&LIMITS, true)).map(|(number, _)| number).collect()
    }

    fn ended(table: &mut OperationTable, number: u64, outcome: Result<u64, Cause>) {
        if let Next::Finished { number, .. } = table.step_ended(number, outcome, &LIMITS, true) {
            table.end(number, Ok(0));
        }
    }

    fn cause() -> Cause {
        Cause::Argument("planted".into())
    }

    #[test]
    fn an_operation_starts_when_what_it_waits_for_has_ended_and_no_sooner() {
        let mut table = table(&[
            Order::Free,
            Order::Free,
            Order::Exact(2),
            Order::Prefix(2),
            Order::All(4),
            Order::Exact(3),
        ]);
        assert_eq!(startable(&mut table), [1, 2]);
        ended(&mut table, 2, Ok(0));
        assert_eq!(startable(&mut table), [3]);
        ended(&mut table, 1, Ok(0));
        assert_eq!(startable(&mut table), [4]);
        ended(&mut table, 3, Ok(0));
        assert_eq!(startable(&mut table), [6]);
        ended(&mut table, 4, Ok(0));
        assert_eq!(startable(&mut table), [5]);
        assert!(!table.is_finished_through(5) && table.is_finished_through(4));
        ended(&mut table, 6, Ok(0));
        ended(&mut table, 5, Ok(0));
        assert_eq!((table.len(), table.failures.untold()), (0, 0));
    }

    #[test]
    fn a_failure_ends_all_that_hang_on_it_and_nothing_else() {
        let mut table = table(&[Order::Free, Order::Free, Order::Exact(1), Order::Exact(3), Order::All(4)]);
        assert_eq!(startable(&mut table), [1, 2]);
        ended(&mut table, 1, Err(cause()));
        assert_eq!((table.len(), table.failures.untold()), (1, 4));
        ended(&mut table, 2, Ok(0));
        let first = table.failures.tell(5).unwrap();
        assert_eq!(*first.cause(), cause());
    }

    #[test]
    fn a_chain_as_long_as_the_table_fails_as_one() {
        let orders: Vec<Order> =
            (0..4096).map(|n| if n == 0 { Order::Free } else { Order::Exact(n) }).collect();
        let mut table = table(&orders);
        table.fail_idle(&cause());
        assert_eq!((table.len(), table.failures.untold()), (0, 4096));
        assert!(startable(&mut table).is_empty());
    }

    #[test]
    fn what_was_refused_goes_to_the_end() {
        let mut table = table(&[Order::Free, Order::Free, Order::Free]);
        let (first, _) = table.next_step(&LIMITS, true).unwrap();
        table.put_back(first);
        assert_eq!(startable(&mut table), [2, 3, 1]);
        // What the fabric has is not failed here, the fabric ends it.
        table.fail_idle(&cause());
        assert_eq!(table.len(), 3);
    }
}
