//! Queues of scheduled events and of threads' turns, in the order of virtual time.

use crate::network::in_flight::InFlightId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::Width;
use tasuki_core::segment::GlobalAddress;

/// When something happens. At the same time, the smaller random number comes first, then the smaller rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    pub(crate) at_ns: u64,
    pub(crate) tie: u64,
    pub(crate) rank: u32,
    /// Orders moments that are equal in all other fields.
    pub(crate) number: u64,
}

/// Kinds of events.
#[derive(Clone, Debug)]
pub(crate) enum EventKind {
    /// A piece of an operation's source is read.
    Read { operation: InFlightId, piece: usize },
    /// A piece arrives at its destination.
    Land { operation: InFlightId, piece: usize },
    /// The atomic, the signal or the line of an operation takes effect.
    Apply { operation: InFlightId },
    /// A network card writes a word back that it kept for a while.
    WriteBack { operation: InFlightId, at: GlobalAddress, width: Width, value: u64, old: u64 },
    /// The issuer learns that its operation has ended.
    End { operation: InFlightId, outcome: Result<u64, Cause> },
    /// The issuer learns that its buffer is free.
    EndEarly { operation: InFlightId },
    /// A member of a group arrives at a barrier.
    BarrierArrival { key: u64, member: usize },
    /// A member of a group is notified that a barrier has ended.
    BarrierEnd { key: u64, member: usize },
    /// A rank whose operation was refused may try again.
    Retry { rank: Rank },
    /// A rank dies.
    Die { rank: Rank, silent: bool },
    /// The node state reports a death.
    DeathReported { rank: Rank },
}

#[derive(Debug)]
struct Entry<T> {
    moment: Moment,
    what: T,
}

/// Entries, ordered by their moments.
#[derive(Debug)]
pub(crate) struct EventQueue<T>(BinaryHeap<Entry<T>>);

impl<T> Default for EventQueue<T> {
    fn default() -> EventQueue<T> {
        EventQueue(BinaryHeap::new())
    }
}

impl<T> EventQueue<T> {
    pub(crate) fn push(&mut self, moment: Moment, what: T) {
        self.0.push(Entry { moment, what });
    }

    /// Returns the earliest entry.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Moment, &T)> {
        self.0.peek().map(|entry| (entry.moment, &entry.what))
    }

    pub(crate) fn pop(&mut self) -> Option<(Moment, T)> {
        self.0.pop().map(|entry| (entry.moment, entry.what))
    }
}

// The heap returns the largest entry first, so the earliest moment compares as the largest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        other.moment.cmp(&self.moment)
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.moment == other.moment
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_ordered_by_time_then_random_number_then_rank() {
        let moments = [(5, 1, 0), (4, 9, 2), (4, 9, 1), (4, 3, 7)];
        let mut queue = EventQueue::default();
        for (number, (at_ns, tie, rank)) in moments.into_iter().enumerate() {
            let moment = Moment { at_ns, tie, rank, number: number as u64 };
            queue.push(moment, rank);
        }
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|(_, rank)| rank).collect();
        assert_eq!(order, [7, 1, 2, 0]);
    }
}
