//! Something that one thread has, and lets others go on with while it does something else.
#![allow(unsafe_code)]
//! Unsafe: what passes from hand to hand lies in a cell; a word beside it says who has it.
//!
//! ```text
//! kept --let go--> free --take--> taken --done--> kept
//!                   ^---not done yet--'  '--a panic--> broken
//! ```
//!
//! As long as it is kept its owner alone gets at it, and needs no locked instruction for that. Only the owner lets it
//! go. Once it is free whoever takes it has it. Who has it sees all that those before it did
//! (`SYNC owner_lock`: each store of a state that others go by releases, each load acquires).

use crate::base::sync::{Arc, AtomicU32, Ordering};
use crate::base::{planted, relaxed_if_planted};
use std::cell::UnsafeCell;
use std::fmt;

const KEPT: u32 = 0;
const FREE: u32 = 1;
const TAKEN: u32 = 2;
const BROKEN: u32 = 3;

struct OwnerLock<T> {
    state: AtomicU32,
    thing: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets at the thing, or several that look at it with its one owner.
unsafe impl<T: Send + Sync> Sync for OwnerLock<T> {}

/// Who keeps it, and may let it go.
pub struct Owner<T>(Arc<OwnerLock<T>>);

/// Who may take it while it is let go.
pub struct Borrower<T>(Arc<OwnerLock<T>>);

/// It, as long as this hand has it. It is free again afterwards, unless it is [`give_back`](OwnerLockGuard::done).
pub struct OwnerLockGuard<'b, T> {
    owner_lock: &'b OwnerLock<T>,
    then: u32,
}

/// It cannot be had now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// Its owner keeps it.
    Kept,
    /// Another one has it for a moment.
    Taken,
    /// Who had it panicked.
    Broken,
}

/// The owner of a thing, and a hand that may take it.
pub fn owner_lock<T>(thing: T) -> (Owner<T>, Borrower<T>) {
    let owner_lock = Arc::new(OwnerLock { state: AtomicU32::new(KEPT), thing: UnsafeCell::new(thing) });
    (Owner(owner_lock.clone()), Borrower(owner_lock))
}

impl<T> OwnerLock<T> {
    #[inline(always)]
    fn is_owned(&self) -> bool {
        self.state.load(Ordering::Acquire) == KEPT // SYNC owner_lock
    }

    #[inline]
    fn try_lock(&self) -> Result<OwnerLockGuard<'_, T>, Unavailable> {
        if planted("owner_lock_taken_twice") {
            self.state.store(TAKEN, Ordering::Relaxed);
            return Ok(OwnerLockGuard { owner_lock: self, then: FREE });
        }
        let order = relaxed_if_planted("owner_lock_take_relaxed", Ordering::Acquire); // SYNC owner_lock
        match self.state.compare_exchange(FREE, TAKEN, order, Ordering::Acquire) {
            Ok(_) => Ok(OwnerLockGuard { owner_lock: self, then: FREE }),
            Err(KEPT) => Err(Unavailable::Kept),
            Err(BROKEN) => Err(Unavailable::Broken),
            Err(_) => Err(Unavailable::Taken),
        }
    }
}

impl<T> Owner<T> {
    /// It, if it is kept.
    #[inline(always)]
    pub fn owned(&self) -> Option<&T> {
        // SAFETY: only this owner lets it go, which borrows it changeably.
        self.0.is_owned().then(|| unsafe { &*self.0.thing.get() })
    }

    /// The same to be changed.
    #[inline(always)]
    pub fn owned_mut(&mut self) -> Option<&mut T> {
        // SAFETY: nobody takes what is kept, and nobody else is its owner.
        self.0.is_owned().then(|| unsafe { &mut *self.0.thing.get() })
    }

    /// Others may go on with it from now on. Only what is kept.
    #[inline(always)]
    pub fn release(&mut self) {
        debug_assert!(self.0.is_owned(), "it is let go once");
        let order = relaxed_if_planted("owner_lock_release_relaxed", Ordering::Release); // SYNC owner_lock
        self.0.state.store(FREE, order);
    }
}

impl<T> Clone for Borrower<T> {
    fn clone(&self) -> Borrower<T> {
        Borrower(self.0.clone())
    }
}

impl<T> Borrower<T> {
    /// Takes it, if it is free.
    #[inline]
    pub fn try_lock(&self) -> Result<OwnerLockGuard<'_, T>, Unavailable> {
        self.0.try_lock()
    }

    /// Whether one that had it panicked: nobody has it any more.
    pub fn is_broken(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == BROKEN
    }

    /// Whether its owner keeps it.
    #[inline(always)]
    pub fn is_owned(&self) -> bool {
        self.0.is_owned()
    }
}

impl<T> OwnerLockGuard<'_, T> {
    /// It.
    #[inline(always)]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: one hand has it at a time.
        unsafe { &mut *self.owner_lock.thing.get() }
    }

    /// Nobody needs to go on with it: its owner keeps it from now on.
    #[inline(always)]
    pub fn give_back(mut self) {
        self.then = KEPT;
    }
}

impl<T> Drop for OwnerLockGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let then = if std::thread::panicking() { BROKEN } else { self.then };
        let order = relaxed_if_planted("owner_lock_give_back_relaxed", Ordering::Release); // SYNC owner_lock
        self.owner_lock.state.store(then, order);
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner(kept: {})", self.0.is_owned())
    }
}

impl<T> fmt::Debug for Borrower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Borrower(kept: {})", self.0.is_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn it_goes_from_its_owner_to_a_hand_and_back() {
        let (mut owner, hand) = owner_lock(1);
        assert_eq!((owner.owned(), hand.try_lock().err()), (Some(&1), Some(Unavailable::Kept)));
        owner.release();
        let mut grip = hand.try_lock().expect("it is free");
        *grip.value() += 1;
        assert_eq!((owner.owned(), hand.try_lock().err()), (None, Some(Unavailable::Taken)));
        drop(grip);
        let mut grip = hand.try_lock().expect("it was not done");
        *grip.value() += 1;
        grip.give_back();
        assert_eq!((owner.owned_mut(), hand.is_owned()), (Some(&mut 3), true));
    }

    #[test]
    fn what_broke_nobody_has() {
        let (mut owner, hand) = owner_lock(1);
        owner.release();
        let broken = catch_unwind(AssertUnwindSafe(|| {
            let _grip = hand.try_lock().expect("it is free");
            panic!("on purpose");
        }));
        assert!(broken.is_err());
        assert_eq!(
            (owner.owned(), hand.try_lock().err(), hand.is_broken()),
            (None, Some(Unavailable::Broken), true)
        );
    }
}
