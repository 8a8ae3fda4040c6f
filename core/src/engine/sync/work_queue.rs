//! What a rank has under way, or waits for room, with a count that is looked at without a lock.

use crate::base::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::base::{planted, relaxed_if_planted};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Things in the order in which they were put there.
#[derive(Debug)]
pub struct WorkQueue<T> {
    things: Mutex<VecDeque<T>>,
    count: AtomicUsize,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> WorkQueue<T> {
        WorkQueue { things: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }
}

impl<T> WorkQueue<T> {
    /// How many there are. Of those that were worked off and are gone, what was done about them is seen.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) // SYNC shelf-count
    }

    /// Whether nothing is there.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn change<R>(&self, change: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        let mut things = self.things();
        let result = change(&mut things);
        let order = relaxed_if_planted("work_queue_count_relaxed", Ordering::Release); // SYNC shelf-count
        self.count.store(things.len(), order);
        result
    }

    fn things(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub fn push(&self, thing: T) {
        self.change(|things| things.push_back(thing));
    }

    /// All of them are taken, by one thread.
    pub fn take_all(&self) -> VecDeque<T> {
        self.change(std::mem::take)
    }

    /// The first one is taken.
    pub fn pop(&self) -> Option<T> {
        self.change(VecDeque::pop_front)
    }

    /// The first one goes behind the others.
    pub fn defer_first(&self) {
        self.change(|things| {
            if !things.is_empty() {
                things.rotate_left(1);
            }
        });
    }
}

impl<T: Copy> WorkQueue<T> {
    fn first(&self) -> Option<T> {
        if self.is_empty() { None } else { self.things().front().copied() }
    }

    /// Takes things in their order, as long as `is_done` with them; one that it is not done with stays, first. A thing
    /// is there until it is done with, so a shelf that is empty owes nothing. Whether it was done with any.
    ///
    /// One thread at a time takes things from a shelf that is worked off.
    pub fn work_off(&self, mut is_done: impl FnMut(T) -> bool) -> bool {
        let mut of_use = false;
        while let Some(first) = self.first() {
            if planted("work_queue_taken_first") {
                self.pop();
            }
            if !is_done(first) {
                break;
            }
            if !planted("work_queue_taken_first") {
                self.pop();
            }
            of_use = true;
        }
        of_use
    }

    /// What is there, to be looked at. Nobody else gets at it meanwhile: the fabric is not called.
    pub fn copied(&self) -> VecDeque<T> {
        self.things().clone()
    }
}
