//! A queue of items that are in progress or wait for room, with a length that is read without the lock.

use crate::base::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::base::{planted, relaxed_if_planted};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Items in the order in which they were pushed.
#[derive(Debug)]
pub struct WorkQueue<T> {
    items: Mutex<VecDeque<T>>,
    count: AtomicUsize,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> WorkQueue<T> {
        WorkQueue { items: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }
}

impl<T> WorkQueue<T> {
    /// Returns the length. The effects of items that were processed and removed are visible.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) // SYNC work-queue-count
    }

    /// Returns true if the queue is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn change<R>(&self, change: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        let mut items = self.items();
        let result = change(&mut items);
        let order = relaxed_if_planted("work_queue_count_relaxed", Ordering::Release); // SYNC work-queue-count
        self.count.store(items.len(), order);
        result
    }

    fn items(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an item.
    pub fn push(&self, item: T) {
        self.change(|items| items.push_back(item));
    }

    /// Removes and returns all items.
    pub fn take_all(&self) -> VecDeque<T> {
        self.change(std::mem::take)
    }

    /// Removes and returns the first item.
    pub fn pop(&self) -> Option<T> {
        self.change(VecDeque::pop_front)
    }

    /// Removes the items for which `stays` is false.
    pub fn retain(&self, stays: impl FnMut(&T) -> bool) {
        self.change(|items| items.retain(stays));
    }

    /// Moves the first item to the end.
    pub fn defer_first(&self) {
        self.change(|items| {
            if !items.is_empty() {
                items.rotate_left(1);
            }
        });
    }
}

impl<T: Copy> WorkQueue<T> {
    fn first(&self) -> Option<T> {
        if self.is_empty() { None } else { self.items().front().copied() }
    }

    /// Processes items in order while `is_done` returns true; the first item that is not done stays
    /// first. An item is removed only after it was processed, so an empty queue has no unfinished
    /// work. Returns true if any was processed.
    ///
    /// One thread at a time processes a queue.
    pub fn process(&self, mut is_done: impl FnMut(T) -> bool) -> bool {
        let mut any_done = false;
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
            any_done = true;
        }
        any_done
    }

    /// Returns a copy of all items. Made under the lock, so the fabric is not called meanwhile.
    pub fn snapshot(&self) -> VecDeque<T> {
        self.items().clone()
    }
}
