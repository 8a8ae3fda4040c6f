//! OperationSet that failed: told once to whoever asks, and remembered for what is ordered after them.

use crate::base::Error;
use crate::engine::operation::order::Order;
use std::collections::BTreeMap;

/// Failures that were told and are still remembered. What names an older one starts.
const TOLD_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(in crate::engine) struct Failures {
    records: BTreeMap<u64, Record>,
    untold: usize,
}

#[derive(Debug)]
struct Record {
    error: Error,
    told: bool,
}

impl Failures {
    /// How many nobody has been told of.
    pub(in crate::engine) fn untold(&self) -> usize {
        self.untold
    }

    /// Whether there never was one.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Remembers a failure. `told`: whoever issued the operation learns of it by other means.
    pub(in crate::engine) fn record(&mut self, number: u64, error: Error, told: bool) {
        self.untold += usize::from(!told);
        self.records.insert(number, Record { error, told });
        if self.records.len() - self.untold > TOLD_MAX {
            let oldest = self.records.iter().find(|(_, record)| record.told).map(|(&number, _)| number);
            oldest.and_then(|number| self.records.remove(&number));
        }
    }

    /// The failure that keeps an operation of that order from starting, told or not: of the operation that it names,
    /// or one among those before that nobody was told of.
    pub(in crate::engine) fn stops(&self, order: Order) -> Option<&Error> {
        let through = |last: u64| {
            self.records.range(..=last).find(|(_, record)| !record.told).map(|(_, record)| record)
        };
        let record = match order {
            Order::Free => None,
            Order::Exact(number) => self.records.get(&number),
            Order::Prefix(last) => self.records.get(&last).or_else(|| through(last)),
            Order::All(last) => through(last),
        };
        record.map(|record| &record.error)
    }

    /// Tells the failure of that one operation.
    pub(in crate::engine) fn tell_exactly(&mut self, number: u64) -> Option<Error> {
        let record = self.records.get_mut(&number).filter(|record| !record.told)?;
        record.told = true;
        self.untold -= 1;
        Some(record.error.clone())
    }

    /// Tells the first failure up to that number, and that there are others; they count as told.
    pub(in crate::engine) fn tell(&mut self, through: u64) -> Option<Error> {
        let mut untold = self.records.range_mut(..=through).filter(|(_, record)| !record.told);
        let (_, first) = untold.next()?;
        first.told = true;
        let error = first.error.clone();
        let others = untold.map(|(_, record)| record.told = true).count();
        self.untold -= 1 + others;
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
    fn a_failure_is_told_once_and_stops_what_names_it_for_ever() {
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
            .map(|order| failures.stops(order).is_some())
        };
        assert_eq!(stopped(&failures), [true, true, true, true, false, false]);
        assert!(
            failures.tell(9).is_some() && failures.tell(9).is_none() && failures.tell_exactly(5).is_none()
        );
        assert_eq!(stopped(&failures), [true, true, false, false, false, false]);
    }

    #[test]
    fn untold_failures_are_all_kept_told_ones_up_to_a_bound() {
        let mut failures = Failures::default();
        let many = 3 * TOLD_MAX as u64;
        (0..many).for_each(|number| failures.record(number, failure(number), false));
        assert_eq!(failures.untold() as u64, many);
        let first = failures.tell(many).unwrap().to_string();
        assert!(first.contains("failure 0") && first.contains(&format!("{} more", many - 1)), "{first}");
        (many..2 * many).for_each(|number| failures.record(number, failure(number), true));
        assert!(failures.records.len() as u64 <= many + 1 && failures.untold() == 0);
    }
}
