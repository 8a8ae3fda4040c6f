//! What one thread of a rank does at a time, while others go on with something else.

use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Whether a thread is at it.
#[derive(Debug)]
pub struct Turn {
    taken: AtomicBool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { taken: AtomicBool::new(false) }
    }
}

/// A thread is at it, until this is dropped.
#[derive(Debug)]
pub struct Taken<'t>(&'t Turn);

impl Turn {
    /// This thread begins; `None` if another is at it.
    #[inline(always)]
    pub fn take(&self) -> Option<Taken<'_>> {
        if planted("shelf_turn_taken_twice") {
            let is_free = !self.taken.load(Ordering::Acquire);
            self.taken.store(true, Ordering::Relaxed);
            return is_free.then(|| Taken(self));
        }
        let taken = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed); // SYNC turn
        taken.is_ok().then(|| Taken(self)) // not made, and so not dropped, if another is at it
    }

    /// Whether a thread is at it. If none is, what the last one did is seen.
    #[inline(always)]
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire) // SYNC turn
    }
}

impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let order = relaxed_if_planted("shelf_turn_relaxed", Ordering::Release); // SYNC turn
        self.0.taken.store(false, order);
    }
}
