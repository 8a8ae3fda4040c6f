//! A lock that is only tried: a thread that does not get it goes on with something else.

use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// The lock.
#[derive(Debug)]
pub struct TryLock {
    locked: AtomicBool,
}

impl Default for TryLock {
    fn default() -> TryLock {
        TryLock { locked: AtomicBool::new(false) }
    }
}

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct TryLockGuard<'t>(&'t TryLock);

impl TryLock {
    /// Takes the lock; `None` if another thread holds it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<TryLockGuard<'_>> {
        if planted("work_queue_locked_twice") {
            let is_free = !self.locked.load(Ordering::Acquire);
            self.locked.store(true, Ordering::Relaxed);
            return is_free.then(|| TryLockGuard(self));
        }
        let taken = self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed); // SYNC try-lock
        taken.is_ok().then(|| TryLockGuard(self)) // if another thread holds it, no guard is made or dropped
    }

    /// Returns true if a thread holds the lock. If not, everything that the last holder did is visible.
    #[inline(always)]
    pub fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Acquire) // SYNC try-lock
    }
}

impl Drop for TryLockGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let order = relaxed_if_planted("work_queue_lock_relaxed", Ordering::Release); // SYNC try-lock
        self.0.locked.store(false, order);
    }
}
