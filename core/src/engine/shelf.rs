//! What a rank has under way, or waits for room, with a count that is looked at without a lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Things in the order in which they were put there.
#[derive(Debug)]
pub(in crate::engine) struct Shelf<T> {
    things: Mutex<VecDeque<T>>,
    count: AtomicUsize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { things: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<T> Shelf<T> {
    /// How many there are.
    #[inline(always)]
    pub(in crate::engine) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nothing is there.
    #[inline(always)]
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn things(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(in crate::engine) fn push(&self, thing: T) {
        let mut things = self.things();
        things.push_back(thing);
        self.count.store(things.len(), Ordering::Relaxed);
    }

    /// All of them are taken, by one thread.
    pub(in crate::engine) fn take_all(&self) -> VecDeque<T> {
        let mut things = self.things();
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *things)
    }

    /// The first one is taken.
    pub(in crate::engine) fn pop(&self) -> Option<T> {
        let mut things = self.things();
        let first = things.pop_front();
        self.count.store(things.len(), Ordering::Relaxed);
        first
    }
}

impl<T: Copy> Shelf<T> {
    /// The first one, which stays.
    pub(in crate::engine) fn first(&self) -> Option<T> {
        if self.is_empty() { None } else { self.things().front().copied() }
    }

    /// What is there, to be looked at. Nobody else gets at it meanwhile: the fabric is not called.
    pub(in crate::engine) fn copied(&self) -> VecDeque<T> {
        self.things().clone()
    }
}
