//! The table of unfinished operations: held by their order, ready for a step, or in flight.
//!
//! ```text
//! enter --> Held --predecessors ended--> Ready --next_step--> InFlight --step_ended--> Ending --finish--> removed
//!   |        |                           ^   ^                  |  |
//!   +--------|---------------------------+   +----put_back------+--+ more steps
//!            +--a predecessor failed--> removed
//! ```
//!
//! The end of an operation releases those that wait for it, so a poll costs nothing for operations that are held.

use crate::base::{Cause, Error, Rank};
use crate::engine::operation::fabric_step::FabricStep;
use crate::engine::operation::failures::Failures;
use crate::engine::operation::kind::{Operation, OperationProgress};
use crate::engine::operation::order::Order;
use crate::fabric::Limits;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Keeps a buffer alive until its operation has ended.
pub(in crate::engine) type KeepAlive = Option<Arc<dyn Any + Send + Sync>>;

/// An operation to be entered.
pub(in crate::engine) struct NewOperation {
    pub(in crate::engine) action: Operation,
    pub(in crate::engine) order: Order,
    pub(in crate::engine) keep: KeepAlive,
    /// The caller will take the outcome by [`OperationTable::take`]; otherwise a failure is kept for `complete`.
    pub(in crate::engine) caller_takes_outcome: bool,
}

/// What to do after a step has ended.
pub(in crate::engine) enum StepResult {
    /// The operation is still in the table.
    More,
    /// All steps succeeded; `action` names the place for the old value. The entry stays until
    /// [`OperationTable::finish`].
    Finished { number: u64, action: Operation, fetched: u64 },
    /// The operation had ended already.
    Gone,
}

#[derive(Debug)]
pub(in crate::engine) struct OperationTable {
    rank: Rank,
    entries: BTreeMap<u64, OperationEntry>,
    /// Operations that may take their next step, in the order of trying; a refused one goes to the end.
    ready: VecDeque<u64>,
    /// Operations held by one operation: (number of that one, own number).
    after_one: BTreeSet<(u64, u64)>,
    /// Operations held by all operations up to one: (number of that one, own number).
    after_all: BTreeSet<(u64, u64)>,
    outcomes: BTreeMap<u64, Result<u64, Error>>,
    pub(in crate::engine) failures: Failures,
}

#[derive(Debug)]
struct OperationEntry {
    progress: OperationProgress,
    state: State,
    caller_takes_outcome: bool,
    /// The value of the last fetching step.
    fetched: u64,
    _keep_alive: KeepAlive,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Its number is in `after_one` or `after_all`.
    Held,
    /// Its number is in `ready`.
    Ready,
    /// The fabric has this step.
    InFlight(FabricStep),
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

    /// Returns the number of unfinished operations.
    pub(in crate::engine) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Enters an operation, with the step that its fabric has just accepted, if any.
    pub(in crate::engine) fn enter(&mut self, number: u64, new: NewOperation, step: Option<FabricStep>) {
        let NewOperation { action, order, keep, caller_takes_outcome } = new;
        let report =
            if step.is_none() { self.failures.blocking_failure(order).map(Error::headline) } else { None };
        let state = match step {
            Some(step) => State::InFlight(step),
            None if report.is_some() || self.is_met(order) => State::Ready,
            None => State::Held,
        };
        let entry = OperationEntry {
            progress: OperationProgress::new(action),
            state,
            caller_takes_outcome,
            fetched: 0,
            _keep_alive: keep,
        };
        self.entries.insert(number, entry);
        match (state, order, report) {
            (_, _, Some(report)) => self.finish(number, Err(Cause::Predecessor { report })),
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

    /// Returns true if that operation has ended.
    pub(in crate::engine) fn is_finished(&self, number: u64) -> bool {
        !self.entries.contains_key(&number)
    }

    /// Returns true if all operations up to that number have ended.
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

    /// Takes the outcome of an operation that has ended and whose caller takes it.
    pub(in crate::engine) fn take(&mut self, number: u64) -> Option<Result<u64, Error>> {
        self.outcomes.remove(&number)
    }

    /// Returns an operation that may take its next step now, and the step.
    pub(in crate::engine) fn next_step(
        &mut self,
        limits: &Limits,
        remote_completion: bool,
    ) -> Option<(u64, FabricStep)> {
        while let Some(number) = self.ready.pop_front() {
            let entry = self.entries.get_mut(&number).expect("what is ready is in the table");
            match entry.progress.step(limits, remote_completion) {
                Some(step) => {
                    entry.state = State::InFlight(step);
                    return Some((number, step));
                }
                None => self.finish(number, Ok(0)),
            }
        }
        None
    }

    /// Makes an operation ready again because the fabric refused its step.
    pub(in crate::engine) fn put_back(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.state = State::Ready;
            self.ready.push_back(number);
        }
    }

    /// Marks a copy to be done as a get and a put, and makes it ready again.
    pub(in crate::engine) fn relay(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.progress.by_relay = true;
        }
        self.put_back(number);
    }

    /// Records the end of the step that the fabric has taken.
    pub(in crate::engine) fn step_ended(
        &mut self,
        number: u64,
        outcome: Result<u64, Cause>,
        limits: &Limits,
        remote_completion: bool,
    ) -> StepResult {
        let Some(entry) = self.entries.get_mut(&number) else { return StepResult::Gone };
        let State::InFlight(step) = entry.state else { return StepResult::Gone };
        let value = match outcome {
            Ok(value) => value,
            Err(cause) => {
                self.finish(number, Err(cause));
                return StepResult::Gone;
            }
        };
        entry.progress.advance(&step);
        if matches!(step, FabricStep::Atomic { .. } | FabricStep::Raise { .. } | FabricStep::PutSignal { .. })
        {
            entry.fetched = value;
        }
        if entry.progress.step(limits, remote_completion).is_some() {
            self.put_back(number);
            return StepResult::More;
        }
        entry.state = State::Ending;
        StepResult::Finished { number, action: entry.progress.action, fetched: entry.fetched }
    }

    /// Ends all operations that are not in flight with `cause`.
    pub(in crate::engine) fn fail_idle(&mut self, cause: &Cause) {
        self.ready.clear();
        self.after_one.clear();
        self.after_all.clear();
        let is_idle = |entry: &OperationEntry| !matches!(entry.state, State::InFlight(_));
        let idle: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| is_idle(entry)).map(|(&number, _)| number).collect();
        idle.into_iter().for_each(|number| self.finish(number, Err(cause.clone())));
    }

    /// Ends an operation that is in no queue. Operations that it held become ready, or end too if it failed.
    pub(in crate::engine) fn finish(&mut self, number: u64, outcome: Result<u64, Cause>) {
        let mut ended = vec![(number, outcome)];
        while let Some((number, outcome)) = ended.pop() {
            let Some(report) = self.remove(number, outcome) else { continue };
            let failed =
                report.map(|report| self.take_held_by(number).into_iter().map(move |n| (n, report.clone())));
            let failed = failed.into_iter().flatten();
            ended.extend(failed.map(|(number, report)| (number, Err(Cause::Predecessor { report }))));
            self.release_after(number);
        }
    }

    /// Removes an entry and keeps its outcome for the caller that will take it or for `complete`.
    /// Returns `None` if there was no entry, otherwise the headline of its failure if it failed.
    fn remove(&mut self, number: u64, outcome: Result<u64, Cause>) -> Option<Option<String>> {
        let entry = self.entries.remove(&number)?;
        let action = entry.progress.action;
        let outcome =
            outcome.map_err(|cause| Error::new(cause).in_call(|| action.to_string()).on_rank(self.rank));
        let report = outcome.as_ref().err().map(Error::headline);
        if let Err(error) = &outcome {
            // An effect on a rank that has left: no rank can miss it.
            let is_effect = !entry.caller_takes_outcome
                && matches!(action, Operation::Raise { .. } | Operation::Poison { .. });
            let is_pointless = is_effect && matches!(error.cause(), Cause::PeerLeft { .. });
            self.failures.record(number, error.clone(), entry.caller_takes_outcome || is_pointless);
        }
        if entry.caller_takes_outcome {
            self.outcomes.insert(number, outcome);
        }
        Some(report)
    }

    /// Removes from their queues the operations that cannot start because `number` has failed.
    fn take_held_by(&mut self, number: u64) -> Vec<u64> {
        let one = (number, 0)..=(number, u64::MAX);
        let mut failed: Vec<(u64, u64)> = self.after_one.range(one).copied().collect();
        for pair in &failed {
            self.after_one.remove(pair);
        }
        let after = self.after_all.split_off(&(number, 0));
        failed.extend(after);
        failed.into_iter().map(|(_, held)| held).collect()
    }

    /// Makes those operations ready that waited only for `number`, which has ended.
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

    /// Returns a table with operations 1, 2, ... of those orders, each a raise of a signal.
    fn table(orders: &[Order]) -> OperationTable {
        let mut table = OperationTable::new(Rank(0));
        for (number, &order) in (1..).zip(orders) {
            let action = Operation::Raise { signal: GlobalAddress::NULL, amount: 1 };
            table.enter(
                number,
                NewOperation { action, order, keep: None, caller_takes_outcome: false },
                None,
            );
        }
        table
    }

    fn startable(table: &mut OperationTable) -> Vec<u64> {
        std::iter::from_fn(|| table.next_step(&LIMITS, true)).map(|(number, _)| number).collect()
    }

    fn ended(table: &mut OperationTable, number: u64, outcome: Result<u64, Cause>) {
        if let StepResult::Finished { number, .. } = table.step_ended(number, outcome, &LIMITS, true) {
            table.finish(number, Ok(0));
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
        assert_eq!((table.len(), table.failures.unreported()), (0, 0));
    }

    #[test]
    fn a_failure_ends_all_that_hang_on_it_and_nothing_else() {
        let mut table = table(&[Order::Free, Order::Free, Order::Exact(1), Order::Exact(3), Order::All(4)]);
        assert_eq!(startable(&mut table), [1, 2]);
        ended(&mut table, 1, Err(cause()));
        assert_eq!((table.len(), table.failures.unreported()), (1, 4));
        ended(&mut table, 2, Ok(0));
        let first = table.failures.report(5).unwrap();
        assert_eq!(*first.cause(), cause());
    }

    #[test]
    fn a_chain_as_long_as_the_table_fails_as_one() {
        let orders: Vec<Order> =
            (0..4096).map(|n| if n == 0 { Order::Free } else { Order::Exact(n) }).collect();
        let mut table = table(&orders);
        table.fail_idle(&cause());
        assert_eq!((table.len(), table.failures.unreported()), (0, 4096));
        assert!(startable(&mut table).is_empty());
    }

    #[test]
    fn what_was_refused_goes_to_the_end() {
        let mut table = table(&[Order::Free, Order::Free, Order::Free]);
        let (first, _) = table.next_step(&LIMITS, true).unwrap();
        table.put_back(first);
        assert_eq!(startable(&mut table), [2, 3, 1]);
        // The fabric ends what is in flight; `fail_idle` must not.
        table.fail_idle(&cause());
        assert_eq!(table.len(), 3);
    }
}
