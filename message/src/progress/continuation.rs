//! What goes on when signals of the rank's own have come far enough, in whichever call of the rank waits.

use crate::progress::engine::ProgressEngine;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Something that waits for signals of the rank's own, and has something to do then.
pub trait Continuation: Send + Sync + Debug {
    /// Whether they have come far enough. Only looks.
    fn may_go_on(&self) -> bool;

    /// Whether something of it is under way that no thread waits for.
    fn is_under_way(&self) -> bool;

    /// Does it. Nothing of the rank's is being moved on then; one of a rank goes on at a time. Threads that may sleep
    /// are told afterwards.
    fn resume(&self);
}

/// Those of a rank.
#[derive(Debug, Default)]
pub(crate) struct Continuations {
    /// How many there are, for who looks without the lock.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<dyn Continuation>>>,
    /// Whether one goes on: it may wait for copies of its own, in which no other can.
    is_going: Arc<AtomicBool>,
}

struct ContinuationWaker {
    continuation: Arc<dyn Continuation>,
    is_going: Arc<AtomicBool>,
}

impl Wake for ContinuationWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_going.swap(true, Ordering::Acquire) {
            let _going = RunGuard(&self.is_going);
            self.continuation.resume();
        }
    }
}

/// One goes on: no longer when it panics.
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

    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Those that may go on.
    pub(crate) fn ready(&self) -> Vec<Waker> {
        if !self.is_any() || self.is_going.load(Ordering::Acquire) {
            return Vec::new();
        }
        // No lock is held while they look: on a simulator that takes time, in which other threads run.
        let mut all = Vec::new();
        self.change(|continuations| all.clone_from(continuations));
        let ready = all.into_iter().filter(|one| one.may_go_on());
        let call = |continuation| {
            Waker::from(Arc::new(ContinuationWaker { continuation, is_going: self.is_going.clone() }))
        };
        ready.map(call).collect()
    }

    pub(crate) fn are_under_way(&self) -> bool {
        let mut all = Vec::new();
        self.change(|continuations| all.clone_from(continuations));
        all.iter().any(|one| one.is_under_way())
    }

    pub(crate) fn may_go_on(&self) -> bool {
        self.is_any() && !self.ready().is_empty()
    }
}

impl ProgressEngine {
    /// Sees to it in waiting calls from now on.
    pub fn add_continuation(&self, continuation: Arc<dyn Continuation>) {
        self.continuations.change(|all| all.push(continuation));
    }

    /// The rank has left: nothing goes on any more.
    pub(crate) fn remove_continuations(&self) {
        self.continuations.change(Vec::clear);
    }

    /// No longer.
    pub fn remove_continuation(&self, continuation: &dyn Continuation) {
        let is_it = |one: &Arc<dyn Continuation>| std::ptr::addr_eq(Arc::as_ptr(one), continuation);
        self.continuations.change(|all| all.retain(|one| !is_it(one)));
    }
}
