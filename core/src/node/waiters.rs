//! The waiting threads of one rank. One of them at a time sleeps on the rank's park line.
//!
//! This thread is the *parker*. Only the parker writes the park line. Before and after its sleep it
//! checks the conditions of all waiting threads. The other threads are *followers*: each sleeps on
//! a word of its own. A parker that leaves wakes every thread whose condition is met, and one more
//! that becomes the parker.
//!
//! No thread sleeps on if its condition is met: it enters the list, then tries to become the
//! parker, then checks its condition once more. It sees each signal raised before this check. For a
//! signal raised later there are three cases. If the parker has not begun to sleep, its check,
//! which includes the whole list, sees the signal. If the parker sleeps, the writer wakes it. If
//! the parker is ending its sleep, its last check includes the whole list.

use crate::base::planted;
use crate::base::sync::{Arc, AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering};

/// The waiting threads of a rank, each with its condition.
#[derive(Debug)]
pub struct Waiters<C> {
    /// True if a thread is the parker.
    has_parker: AtomicBool,
    waiters: Mutex<Vec<Arc<Waiter<C>>>>,
}

/// One waiting thread.
#[derive(Debug)]
pub struct Waiter<C> {
    /// What the thread waits for.
    pub condition: C,
    /// 0: asleep. 1: woken, because its condition is met or there is no parker.
    woken: AtomicU32,
}

/// The role of a thread that entered.
#[derive(Debug)]
pub enum WaiterRole<C> {
    /// The thread sleeps on the park line, on behalf of all threads.
    Parker(Arc<Waiter<C>>),
    /// The thread sleeps on its own word.
    Follower(Arc<Waiter<C>>),
}

impl<C> Default for Waiters<C> {
    fn default() -> Waiters<C> {
        Waiters { has_parker: AtomicBool::new(false), waiters: Mutex::new(Vec::new()) }
    }
}

impl<C> Waiter<C> {
    /// Returns the word that a follower sleeps on while it is 0.
    pub fn word(&self) -> &AtomicU32 {
        &self.woken
    }
}

impl<C> Waiters<C> {
    /// Adds a thread. A follower must check its condition once more before it sleeps on its word.
    pub fn enter(&self, condition: C) -> WaiterRole<C> {
        let waiter = Arc::new(Waiter { condition, woken: AtomicU32::new(0) });
        let too_soon = planted("waiters_role_first") && self.has_parker.swap(true, Ordering::AcqRel);
        self.waiters().push(waiter.clone());
        let had_parker = if planted("waiters_role_first") {
            too_soon
        } else {
            self.has_parker.swap(true, Ordering::AcqRel) // SYNC waiters
        };
        if had_parker { WaiterRole::Follower(waiter) } else { WaiterRole::Parker(waiter) }
    }

    /// Returns true if the condition of any waiting thread is met.
    pub fn any(&self, met: impl Fn(&C) -> bool) -> bool {
        let all: Vec<_> = self.waiters().iter().cloned().collect();
        all.iter().any(|waiter| met(&waiter.condition))
    }

    /// Removes a follower. If it was woken to become the parker and leaves instead, the next one is woken.
    pub fn leave(&self, waiter: &Arc<Waiter<C>>, met: impl Fn(&C) -> bool, wake: impl Fn(&AtomicU32)) {
        self.remove(waiter);
        let has_parker = self.has_parker.load(Ordering::Acquire); // SYNC waiters
        if !has_parker {
            self.wake_others(met, wake);
        }
    }

    /// Removes the parker, and wakes a follower to become the next one.
    pub fn leave_as_parker(
        &self,
        waiter: &Arc<Waiter<C>>,
        met: impl Fn(&C) -> bool,
        wake: impl Fn(&AtomicU32),
    ) {
        self.has_parker.store(false, Ordering::Release); // SYNC waiters
        self.remove(waiter);
        if !planted("waiters_not_handed_on") {
            self.wake_others(met, wake);
        }
    }

    /// Wakes every thread whose condition is met, and one more to become the parker.
    fn wake_others(&self, met: impl Fn(&C) -> bool, wake: impl Fn(&AtomicU32)) {
        let all: Vec<_> = self.waiters().iter().cloned().collect();
        let mut role_free = true;
        for waiter in all {
            if met(&waiter.condition) || std::mem::take(&mut role_free) {
                waiter.woken.store(1, Ordering::Release); // SYNC waiters
                wake(&waiter.woken);
            }
        }
    }

    fn remove(&self, waiter: &Arc<Waiter<C>>) {
        self.waiters().retain(|other| !Arc::ptr_eq(other, waiter));
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Arc<Waiter<C>>>> {
        self.waiters.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
