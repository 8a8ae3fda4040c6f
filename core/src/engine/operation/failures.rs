//! Failed operations: each is reported once, and remembered for operations that are ordered after it.

use crate::base::Error;
use crate::engine::operation::order::Order;
use std::collections::BTreeMap;

/// Most reported failures that are remembered. After a failure was forgotten, an operation that is
/// ordered after the failed one starts.
const REPORTED_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(in crate::engine) struct Failures {
    records: BTreeMap<u64, Record>,
    unreported: usize,
}

#[derive(Debug)]
struct Record {
    error: Error,
    reported: bool,
}

impl Failures {
    /// Returns the number of failures that were not reported.
    pub(in crate::engine) fn unreported(&self) -> usize {
        self.unreported
    }

    /// Returns true if no failure is remembered.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Remembers a failure. `reported`: the issuer of the operation learns of it by other means.
    pub(in crate::engine) fn record(&mut self, number: u64, error: Error, reported: bool) {
        self.unreported += usize::from(!reported);
        self.records.insert(number, Record { error, reported });
        if self.records.len() - self.unreported > REPORTED_MAX {
            let oldest = self.records.iter().find(|(_, record)| record.reported).map(|(&number, _)| number);
            oldest.and_then(|number| self.records.remove(&number));
        }
    }

    /// Returns the failure that prevents an operation of that order from starting: the failure of
    /// the operation that the order names, reported or not, or an unreported failure of an earlier
    /// one.
    pub(in crate::engine) fn blocking_failure(&self, order: Order) -> Option<&Error> {
        let through = |last: u64| {
            self.records.range(..=last).find(|(_, record)| !record.reported).map(|(_, record)| record)
        };
        let record = match order {
            Order::Free => None,
            Order::Exact(number) => self.records.get(&number),
            Order::Prefix(last) => self.records.get(&last).or_else(|| through(last)),
            Order::All(last) => through(last),
        };
        record.map(|record| &record.error)
    }

    /// Reports the failure of that operation.
    pub(in crate::engine) fn report_exactly(&mut self, number: u64) -> Option<Error> {
        let record = self.records.get_mut(&number).filter(|record| !record.reported)?;
        record.reported = true;
        self.unreported -= 1;
        Some(record.error.clone())
    }

    /// Reports the first unreported failure up to that number, with the count of the others; they count as reported.
    pub(in crate::engine) fn report(&mut self, through: u64) -> Option<Error> {
        let mut unreported = self.records.range_mut(..=through).filter(|(_, record)| !record.reported);
        let (_, first) = unreported.next()?;
        first.reported = true;
        let error = first.error.clone();
        let others = unreported.map(|(_, record)| record.reported = true).count();
        self.unreported -= 1 + others;
        Some(if others == 0 { error } else { error.note(format!("{others} more operations failed")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Cause;

    fn failure(number: u64) -> Error {
        Error::new(Cause::Argument(format!("failure {number}")))
    }

    #[test]
    fn a_failure_is_reported_once_and_blocks_its_successors_for_ever() {
        let mut failures = Failures::default();
        failures.record(5, failure(5), false);
        let stopped = |failures: &Failures| {
            [
                Order::Exact(5),
                Order::Prefix(5),
                Order::Prefix(9),
                Order::All(9),
                Order::Exact(6),
                Order::All(4),
            ]
            .map(|order| failures.blocking_failure(order).is_some())
        };
        assert_eq!(stopped(&failures), [true, true, true, true, false, false]);
        assert!(
            failures.report(9).is_some()
                && failures.report(9).is_none()
                && failures.report_exactly(5).is_none()
        );
        assert_eq!(stopped(&failures), [true, true, false, false, false, false]);
    }

    #[test]
    fn all_unreported_failures_are_kept_and_reported_ones_up_to_a_bound() {
        let mut failures = Failures::default();
        let many = 3 * REPORTED_MAX as u64;
        (0..many).for_each(|number| failures.record(number, failure(number), false));
        assert_eq!(failures.unreported() as u64, many);
        let first = failures.report(many).unwrap().to_string();
        assert!(first.contains("failure 0") && first.contains(&format!("{} more", many - 1)), "{first}");
        (many..2 * many).for_each(|number| failures.record(number, failure(number), true));
        assert!(failures.records.len() as u64 <= many + 1 && failures.unreported() == 0);
    }
}
