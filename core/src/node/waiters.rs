//! The waiting threads of one rank, of which one at a time sleeps on the rank's park line.
//!
//! That one is the *parker*: it alone writes the park line, and before it sleeps and after it woke it looks at the
//! conditions of all threads in the room. The others sleep on a word of their own. A parker that leaves wakes every
//! thread whose condition is met, and one more to take the role.
//!
//! Why no thread sleeps on though its condition is met: it enters the list, then asks for the role, then looks at
//! its condition once more. A signal raised before that look is seen by it. One raised later finds the parker either
//! not yet lying down, and then the parker's look, which includes the list, sees it; or lying down, and then the
//! raiser wakes the parker; or getting up, and then the parker's last look includes the list.

use crate::base::planted;
use crate::base::sync::{Arc, AtomicBool, AtomicU32, Mutex, MutexGuard, Ordering};

/// The waiting threads of a rank, each with its condition.
#[derive(Debug)]
pub struct Waiters<C> {
    taken: AtomicBool,
    waiters: Mutex<Vec<Arc<Waiter<C>>>>,
}

/// A thread in the room.
#[derive(Debug)]
pub struct Waiter<C> {
    /// What it waits for.
    pub condition: C,
    /// 0 asleep; 1 woken by the parker: its condition is met, or the role is free.
    woken: AtomicU32,
}

/// What a thread became when it entered.
#[derive(Debug)]
pub enum WaiterRole<C> {
    /// It sleeps on the park line, for all.
    Parker(Arc<Waiter<C>>),
    /// It sleeps on its own word.
    Follower(Arc<Waiter<C>>),
}

impl<C> Default for Waiters<C> {
    fn default() -> Waiters<C> {
        Waiters { taken: AtomicBool::new(false), waiters: Mutex::new(Vec::new()) }
    }
}

impl<C> Waiter<C> {
    /// The word that a guest sleeps on while it is 0.
    pub fn word(&self) -> &AtomicU32 {
        &self.woken
    }
}

impl<C> Waiters<C> {
    /// A thread enters. A guest must look at its condition once more before it sleeps on its word.
    pub fn enter(&self, condition: C) -> WaiterRole<C> {
        let waiter = Arc::new(Waiter { condition, woken: AtomicU32::new(0) });
        let too_soon = planted("waiters_role_first") && self.taken.swap(true, Ordering::AcqRel);
        self.waiters().push(waiter.clone());
        let taken =
            if planted("waiters_role_first") { too_soon } else { self.taken.swap(true, Ordering::AcqRel) };
        if taken { WaiterRole::Follower(waiter) } else { WaiterRole::Parker(waiter) }
    }

    /// Whether any thread in the room has its condition met.
    pub fn any(&self, met: impl Fn(&C) -> bool) -> bool {
        let all: Vec<_> = self.waiters().iter().cloned().collect();
        all.iter().any(|waiter| met(&waiter.condition))
    }

    /// A guest leaves. If it was woken to take the role and does not need it, the next one is.
    pub fn leave(&self, waiter: &Arc<Waiter<C>>, met: impl Fn(&C) -> bool, wake: impl Fn(&AtomicU32)) {
        self.remove(waiter);
        if !self.taken.load(Ordering::Acquire) {
            self.wake_others(met, wake);
        }
    }

    /// The parker leaves: the role is free.
    pub fn hand_on(&self, waiter: &Arc<Waiter<C>>, met: impl Fn(&C) -> bool, wake: impl Fn(&AtomicU32)) {
        self.taken.store(false, Ordering::Release);
        self.remove(waiter);
        if !planted("waiters_not_handed_on") {
            self.wake_others(met, wake);
        }
    }

    /// Wakes every thread whose condition is met, and one more to take the role.
    fn wake_others(&self, met: impl Fn(&C) -> bool, wake: impl Fn(&AtomicU32)) {
        let all: Vec<_> = self.waiters().iter().cloned().collect();
        let mut role_free = true;
        for waiter in all {
            if met(&waiter.condition) || std::mem::take(&mut role_free) {
                waiter.woken.store(1, Ordering::Release);
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
