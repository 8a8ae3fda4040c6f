//! Continuations: work that any waiting call of the rank does when certain signals of the rank have reached a value.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use tasuki_core::base::sync::{AtomicBool, AtomicUsize, Ordering};

/// Work to do when certain signals of this rank have reached a value.
pub trait Continuation: Send + Sync + Debug {
    /// Returns true if the signals have reached it. Has no effects.
    fn can_resume(&self) -> bool;

    /// Returns true if some of its work is unfinished and no thread waits for it.
    fn is_under_way(&self) -> bool;

    /// Returns when it can resume although no signal is raised, in ns of the platform's clock.
    fn again_at_ns(&self) -> u64 {
        u64::MAX
    }

    /// Ends its work if that can never be complete. Called now and then while a task awaits it.
    fn end_if_impossible(&self) {}

    /// Returns true if a task awaits it.
    fn is_awaited(&self) -> bool {
        false
    }

    /// Does the work. The progress engine steps no message of this rank meanwhile, and at most one continuation of a
    /// rank runs at a time. Sleeping threads are notified afterwards.
    fn resume(&self);
}

/// The continuations of a rank.
#[derive(Debug, Default)]
pub(crate) struct Continuations {
    /// How many there are, for readers without the lock.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<dyn Continuation>>>,
    /// True while one runs. It may wait for copies of its own, in which no other continuation may run.
    is_running: Arc<AtomicBool>,
}

struct ContinuationWaker {
    continuation: Arc<dyn Continuation>,
    is_running: Arc<AtomicBool>,
}

impl Wake for ContinuationWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_running.swap(true, Ordering::Acquire) {
            let _running = RunGuard(&self.is_running);
            self.continuation.resume();
        }
    }
}

/// Clears the flag when the continuation returns or panics.
struct RunGuard<'c>(&'c AtomicBool);

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Continuations {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Continuation>>)) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        self.count.store(all.len(), Ordering::Release);
    }

    pub(crate) fn add(&self, continuation: Arc<dyn Continuation>) {
        self.change(|all| all.push(continuation));
    }

    pub(crate) fn remove(&self, continuation: &dyn Continuation) {
        let is_it = |one: &Arc<dyn Continuation>| std::ptr::addr_eq(Arc::as_ptr(one), continuation);
        self.change(|all| all.retain(|one| !is_it(one)));
    }

    /// Removes all, because the rank has left or failed.
    pub(crate) fn clear(&self) {
        let mut all = Vec::new();
        self.change(|continuations| std::mem::swap(continuations, &mut all));
        drop(all); // not under the lock
    }

    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Returns wakers that run the continuations that can resume.
    pub(crate) fn ready(&self) -> Vec<Waker> {
        if !self.is_any() || self.is_running.load(Ordering::Acquire) {
            return Vec::new();
        }
        // `can_resume` is called without the lock: in the simulator it takes time, in which other threads run.
        let mut all = Vec::new();
        self.change(|continuations| all.clone_from(continuations));
        let ready = all.into_iter().filter(|one| one.can_resume());
        let call = |continuation| {
            Waker::from(Arc::new(ContinuationWaker { continuation, is_running: self.is_running.clone() }))
        };
        ready.map(call).collect()
    }

    /// Returns when the first of them can resume although no signal is raised.
    pub(crate) fn again_at_ns(&self) -> u64 {
        let mut first = u64::MAX;
        if self.is_any() {
            self.change(|all| first = all.iter().map(|one| one.again_at_ns()).min().unwrap_or(first));
        }
        first
    }

    pub(crate) fn any_under_way(&self) -> bool {
        let mut all = Vec::new();
        self.change(|continuations| all.clone_from(continuations));
        all.iter().any(|one| one.is_under_way())
    }

    /// Ends the work of those that can never be complete.
    pub(crate) fn end_impossible(&self) {
        let mut all = Vec::new();
        self.change(|continuations| all.clone_from(continuations));
        all.iter().for_each(|one| one.end_if_impossible());
    }

    /// Returns true if a task awaits one of them.
    pub(crate) fn are_awaited(&self) -> bool {
        let mut all = Vec::new();
        if self.is_any() {
            self.change(|continuations| all.clone_from(continuations));
        }
        all.iter().any(|one| one.is_awaited())
    }

    pub(crate) fn can_resume(&self) -> bool {
        self.is_any() && !self.ready().is_empty()
    }
}
