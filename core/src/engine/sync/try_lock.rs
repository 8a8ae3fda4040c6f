//! What one thread of a rank does at a time, while others go on with something else.

use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Whether a thread is at it.
#[derive(Debug)]
pub struct TryLock {
    taken: AtomicBool,
}

impl Default for TryLock {
    fn default() -> TryLock {
        TryLock { taken: AtomicBool::new(false) }
    }
}

/// A thread is at it, until this is dropped.
#[derive(Debug)]
pub struct TryLockGuard<'t>(&'t TryLock);

impl TryLock {
    /// This thread begins; `None` if another is at it.
    #[inline(always)]
    pub fn take(&self) -> Option<TryLockGuard<'_>> {
        if planted("work_queue_locked_twice") {
            let is_free = !self.taken.load(Ordering::Acquire);
            self.taken.store(true, Ordering::Relaxed);
            return is_free.then(|| TryLockGuard(self));
        }
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed); // SYNC turn
        taken.is_ok().then(|| TryLockGuard(self)) // not made, and so not dropped, if another is at it
    }

    /// Whether a thread is at it. If none is, what the last one did is seen.
    #[inline(always)]
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire) // SYNC turn
    }
}

impl Drop for TryLockGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let order = relaxed_if_planted("work_queue_lock_relaxed", Ordering::Release); // SYNC turn
        self.0.taken.store(false, order);
    }
}
