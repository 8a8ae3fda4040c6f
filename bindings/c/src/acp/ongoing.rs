//! What goes on without a call of the program: transfers of channels, collectives.
//!
//! [`Ongoing`] is the waker of all that its items wait for: whichever thread of the rank finds that something has
//! happened advances them. A call that waits for an item waits for a signal, which each end of an item raises, so it holds
//! no lock.

use crate::status::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use tasuki::{Job, Signal};

/// Items that can be advanced.
pub(super) trait Advance {
    /// Does what can be done without waiting, and lets `waker` be woken when more can be done. Returns true if an item has
    /// ended.
    fn advance(&mut self, waker: &Waker) -> bool;
}

/// Items under a lock, and the waker that advances them.
pub(super) struct Ongoing<T> {
    items: Mutex<T>,
    /// A wake has come since the items were advanced last.
    is_woken: AtomicBool,
    /// Raised when an item has ended.
    ended: Signal<'static>,
    job: &'static Job,
}

impl<T: Advance + Send + 'static> Ongoing<T> {
    pub(super) fn new(job: &'static Job, items: T) -> Result<Arc<Ongoing<T>>, Failure> {
        let (items, is_woken) = (Mutex::new(items), AtomicBool::new(false));
        Ok(Arc::new(Ongoing { items, is_woken, ended: job.signal()?, job }))
    }

    fn items(&self) -> MutexGuard<'_, T> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `call` with the items, and then advances them. `call` does not wait.
    pub(super) fn with<R>(self: &Arc<Self>, call: impl FnOnce(&mut T) -> R) -> R {
        let result = call(&mut self.items());
        self.wake_by_ref(); // a wake that came meanwhile has left its work to this thread
        result
    }

    /// Waits until `find` finds what it looks for. It is called again when an item has ended.
    pub(super) fn wait<R>(
        self: &Arc<Self>,
        mut find: impl FnMut(&mut T) -> Option<Result<R, Failure>>,
    ) -> Result<R, Failure> {
        loop {
            let seen = self.ended.value(); // an end after this is not missed
            self.wake_by_ref();
            if let Some(found) = self.with(&mut find) {
                return found;
            }
            self.ended.wait_at_least(seen + 1)?;
        }
    }
}

impl<T: Advance + Send + 'static> Wake for Ongoing<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        while self.is_woken.load(Ordering::SeqCst) {
            // Whoever has the lock looks once more. It may be this thread, which advances an item.
            let Ok(mut items) = self.items.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            let has_ended = items.advance(&Waker::from(self.clone()));
            drop(items);
            if has_ended {
                let _ = self.job.raise(self.ended.on(self.job.rank()), 1); // fails after the job's end
            }
        }
    }
}
