//! The conditions that tasks of a rank await, besides messages: signals, replies, transfers, plans, barriers. Any call
//! of the rank that makes progress looks at some of them, and wakes the tasks of those that are decided. While there
//! are any, the waker thread waits for them.
//!
//! Conditions are looked at without the lock, because that may call the fabric.

use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tasuki_core::base::sync::{AtomicUsize, Ordering};
use tasuki_core::engine::{Awaited, Condition, Worker};

/// A list that is on the stack if it is short: most ranks await few conditions at a time.
type Few<T> = SmallVec<[T; 8]>;

/// The awaited conditions of a rank.
#[derive(Debug, Default)]
pub(crate) struct AwaitedConditions {
    /// How many there are, for readers without the lock.
    count: AtomicUsize,
    list: Mutex<AwaitedList>,
}

#[derive(Debug, Default)]
struct AwaitedList {
    /// Ordered by number.
    entries: Vec<Entry>,
    /// How many numbers were given.
    given: u64,
    /// The number of the entry that is looked at next.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    awaited: Awaited,
    waker: Waker,
}

impl AwaitedConditions {
    /// Adds a condition, and returns its number.
    pub(crate) fn add(&self, awaited: Awaited, waker: Waker) -> u64 {
        self.change(|list| {
            list.given += 1;
            list.entries.push(Entry { number: list.given, awaited, waker });
            list.given
        })
    }

    /// Removes the condition of that number, and returns its waker.
    pub(crate) fn remove(&self, number: u64) -> Option<Waker> {
        let entry = self.change(|list| {
            let at = list.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
            Some(list.entries.remove(at))
        });
        Some(entry?.waker) // the condition is dropped without the lock: it may run code of the program
    }

    /// Returns true if there are none. For the waker thread before it ends: the lock orders this look with a task that
    /// has added a condition and found the thread running.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Returns true if there are any, without the lock; a look that is too early is followed by another one.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Looks at the next conditions in turn, at most `looks`. Removes those that are decided, and returns their wakers.
    pub(crate) fn take_decided(&self, worker: &Worker, looks: usize) -> Few<Waker> {
        let looked_at = self.change(|list| {
            let first = list.entries.partition_point(|entry| entry.number < list.next);
            let rest = list.entries[first..].iter().chain(&list.entries[..first]);
            let looked_at: Few<_> = rest.take(looks).map(Entry::condition).collect();
            list.next = looked_at.last().map_or(0, |(number, _)| number + 1);
            looked_at
        });
        let decided = looked_at.into_iter().filter(|(_, condition)| worker.is_decided(condition));
        decided.filter_map(|(number, _)| self.remove(number)).collect()
    }

    /// Returns true if one of them is decided.
    pub(crate) fn any_decided(&self, worker: &Worker) -> bool {
        if !self.is_any() {
            return false;
        }
        let all: Few<_> = self.lock().entries.iter().map(Entry::condition).collect();
        all.iter().any(|(_, condition)| worker.is_decided(condition))
    }

    /// Returns when the first task wants to be woken although nothing has happened.
    pub(crate) fn first_due_ns(&self) -> u64 {
        self.lock().entries.iter().map(|entry| entry.awaited.again_at_ns).min().unwrap_or(u64::MAX)
    }

    /// Removes the conditions whose tasks want to be woken by `now_ns`, or all if the rank can wait for nothing any
    /// more. Returns their wakers.
    pub(crate) fn take_due(&self, now_ns: u64, is_over: bool) -> Vec<Waker> {
        let due: Vec<u64> = {
            let list = self.lock();
            let is_due = |entry: &&Entry| is_over || entry.awaited.again_at_ns <= now_ns;
            list.entries.iter().filter(is_due).map(|entry| entry.number).collect()
        };
        due.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Names the calls that are awaited.
    pub(crate) fn calls(&self) -> Vec<String> {
        let all: Vec<_> = self.lock().entries.iter().map(Entry::condition).collect();
        all.iter().map(|(_, condition)| condition.call()).collect()
    }

    fn change<R>(&self, change: impl FnOnce(&mut AwaitedList) -> R) -> R {
        let mut list = self.lock();
        let result = change(&mut list);
        self.count.store(list.entries.len(), Ordering::Release);
        result
    }

    fn lock(&self) -> MutexGuard<'_, AwaitedList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn condition(&self) -> (u64, Condition) {
        (self.number, self.awaited.condition.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_numbers() {
        let all = AwaitedConditions::default();
        let add = |again_at_ns| {
            let awaited = Awaited { again_at_ns, ..Awaited::only(Condition::Never) };
            all.add(awaited, Waker::noop().clone())
        };
        let numbers: Vec<u64> = [u64::MAX, 30, 20].into_iter().map(add).collect();
        assert_eq!((all.first_due_ns(), all.is_any()), (20, true));
        assert!(all.remove(numbers[0]).is_some() && all.remove(numbers[0]).is_none());
        assert_eq!(all.take_due(25, false).len(), 1);
        assert_eq!(all.first_due_ns(), 30);
        assert_eq!((all.take_due(0, true).len(), all.is_any()), (1, false));
    }
}
