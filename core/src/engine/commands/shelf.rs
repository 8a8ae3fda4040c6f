//! What a rank has under way and goes through from time to time, with a count that is looked at without a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Things in the order in which they were put there.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    things: Mutex<Vec<T>>,
    count: AtomicUsize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { things: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<T> Shelf<T> {
    /// Whether nothing is there.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn things(&self) -> MutexGuard<'_, Vec<T>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(super) fn push(&self, thing: T) {
        let mut things = self.things();
        things.push(thing);
        self.count.store(things.len(), Ordering::Relaxed);
    }

    /// All of them are taken, by one thread.
    pub(super) fn take_all(&self) -> Vec<T> {
        let mut things = self.things();
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *things)
    }

    /// The last one is taken.
    pub(super) fn pop(&self) -> Option<T> {
        let mut things = self.things();
        let last = things.pop();
        self.count.store(things.len(), Ordering::Relaxed);
        last
    }

    /// What is there, to be looked at. Nobody else gets at it meanwhile: the fabric is not called.
    pub(super) fn copied(&self) -> Vec<T>
    where
        T: Copy,
    {
        self.things().clone()
    }
}
