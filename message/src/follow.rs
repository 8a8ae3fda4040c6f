//! What goes on when signals of the rank's own have come far enough, in whichever call of the rank waits.

use super::pump::Pump;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Something that waits for signals of the rank's own, and has something to do then.
pub trait Follower: Send + Sync + Debug {
    /// Whether they have come far enough. Only looks.
    fn may_go_on(&self) -> bool;

    /// Does it. Nothing of the rank's is being moved on then; one of a rank goes on at a time. Threads that may sleep
    /// are told afterwards.
    fn go_on(&self);
}

/// Those of a rank.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// How many there are, for who looks without the lock.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<dyn Follower>>>,
    /// Whether one goes on: it may wait for copies of its own, in which no other can.
    is_going: Arc<AtomicBool>,
}

struct Call {
    follower: Arc<dyn Follower>,
    is_going: Arc<AtomicBool>,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        if !self.is_going.swap(true, Ordering::Acquire) {
            let _going = Going(&self.is_going);
            self.follower.go_on();
        }
    }
}

/// One goes on: no longer when it panics.
struct Going<'c>(&'c AtomicBool);

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Followers {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Follower>>)) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        self.count.store(all.len(), Ordering::Release);
    }

    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Those that may go on.
    pub(super) fn ready(&self) -> Vec<Waker> {
        if !self.is_any() || self.is_going.load(Ordering::Acquire) {
            return Vec::new();
        }
        // No lock is held while they look: on a simulator that takes time, in which other threads run.
        let mut all = Vec::new();
        self.change(|followers| all.clone_from(followers));
        let ready = all.into_iter().filter(|one| one.may_go_on());
        let call = |follower| Waker::from(Arc::new(Call { follower, is_going: self.is_going.clone() }));
        ready.map(call).collect()
    }

    pub(super) fn may_go_on(&self) -> bool {
        self.is_any() && !self.ready().is_empty()
    }
}

impl Pump {
    /// Sees to it in waiting calls from now on.
    pub fn follow(&self, follower: Arc<dyn Follower>) {
        self.followers.change(|all| all.push(follower));
    }

    /// The rank has left: nothing goes on any more.
    pub(super) fn forget_followers(&self) {
        self.followers.change(Vec::clear);
    }

    /// No longer.
    pub fn forget_follower(&self, follower: &dyn Follower) {
        let is_it = |one: &Arc<dyn Follower>| std::ptr::addr_eq(Arc::as_ptr(one), follower);
        self.followers.change(|all| all.retain(|one| !is_it(one)));
    }
}
