//! An owner-biased lock: one thread owns a value and may release it for others to continue with.
#![allow(unsafe_code)]
//! Unsafe: the value lies in a cell; a state word beside it says which thread may access it.
//!
//! ```text
//! owned --release--> free --try_lock--> borrowed --give_back--> owned
//!                     ^-------drop--------'  '--panic, poison--> poisoned
//! ```
//!
//! While the state is `owned`, only the owner accesses the value, and needs no locked instruction
//! for that. Only the owner releases the value. While the value is free, any borrower may lock it.
//! A thread that gets the value sees everything that the threads before it did (`SYNC owner-lock`:
//! each store that publishes a state releases, each load acquires).

use crate::base::sync::{Arc, AtomicU32, Ordering};
use crate::base::{planted, relaxed_if_planted};
use std::cell::UnsafeCell;
use std::fmt;

const OWNED: u32 = 0;
const FREE: u32 = 1;
const LOCKED: u32 = 2;
const POISONED: u32 = 3;

struct OwnerLock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time changes the value; several may read it together with its only owner.
unsafe impl<T: Send + Sync> Sync for OwnerLock<T> {}

/// The owner of the value, which may release it.
pub struct Owner<T>(Arc<OwnerLock<T>>);

/// Access for a thread that may lock the value while it is released.
pub struct Borrower<T>(Arc<OwnerLock<T>>);

/// Exclusive access to the value. It is free again afterwards, unless it is [given back](OwnerLockGuard::give_back).
pub struct OwnerLockGuard<'b, T> {
    owner_lock: &'b OwnerLock<T>,
    then: u32,
}

/// Why the value cannot be locked now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// Its owner has not released it.
    Owned,
    /// Another borrower has locked it.
    Locked,
    /// A thread panicked while it had locked the value, or has [poisoned](OwnerLockGuard::poison) it.
    Poisoned,
}

/// Creates a value with its owner and a borrower.
pub fn owner_lock<T>(value: T) -> (Owner<T>, Borrower<T>) {
    let owner_lock = Arc::new(OwnerLock { state: AtomicU32::new(OWNED), value: UnsafeCell::new(value) });
    (Owner(owner_lock.clone()), Borrower(owner_lock))
}

impl<T> OwnerLock<T> {
    #[inline(always)]
    fn is_owned(&self) -> bool {
        self.state.load(Ordering::Acquire) == OWNED // SYNC owner-lock
    }

    #[inline]
    fn try_lock(&self) -> Result<OwnerLockGuard<'_, T>, Unavailable> {
        if planted("owner_lock_taken_twice") {
            self.state.store(LOCKED, Ordering::Relaxed);
            return Ok(OwnerLockGuard { owner_lock: self, then: FREE });
        }
        let order = relaxed_if_planted("owner_lock_take_relaxed", Ordering::Acquire); // SYNC owner-lock
        match self.state.compare_exchange(FREE, LOCKED, order, Ordering::Acquire) {
            Ok(_) => Ok(OwnerLockGuard { owner_lock: self, then: FREE }),
            Err(OWNED) => Err(Unavailable::Owned),
            Err(POISONED) => Err(Unavailable::Poisoned),
            Err(_) => Err(Unavailable::Locked),
        }
    }
}

impl<T> Owner<T> {
    /// Returns the value if the owner has it.
    #[inline(always)]
    pub fn owned(&self) -> Option<&T> {
        // SAFETY: only this owner releases it, and `release` needs `&mut self`.
        self.0.is_owned().then(|| unsafe { &*self.0.value.get() })
    }

    /// Returns the value for changes if the owner has it.
    #[inline(always)]
    pub fn owned_mut(&mut self) -> Option<&mut T> {
        // SAFETY: no borrower locks an owned value, and there is only one owner.
        self.0.is_owned().then(|| unsafe { &mut *self.0.value.get() })
    }

    /// Releases the value for borrowers. It must be owned.
    #[inline(always)]
    pub fn release(&mut self) {
        debug_assert!(self.0.is_owned(), "only an owned value is released");
        let order = relaxed_if_planted("owner_lock_release_relaxed", Ordering::Release); // SYNC owner-lock
        self.0.state.store(FREE, order);
    }
}

impl<T> Clone for Borrower<T> {
    fn clone(&self) -> Borrower<T> {
        Borrower(self.0.clone())
    }
}

impl<T> Borrower<T> {
    /// Locks the value if it is free.
    #[inline]
    pub fn try_lock(&self) -> Result<OwnerLockGuard<'_, T>, Unavailable> {
        self.0.try_lock()
    }

    /// Returns true if a thread panicked while it had locked the value: it is lost.
    pub fn is_poisoned(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == POISONED
    }

    /// Returns true if the owner has the value.
    #[inline(always)]
    pub fn is_owned(&self) -> bool {
        self.0.is_owned()
    }
}

impl<T> OwnerLockGuard<'_, T> {
    /// Returns the value.
    #[inline(always)]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: a guard exists only while the state is `LOCKED` by it, and then neither the owner nor another
        // borrower accesses the value.
        unsafe { &mut *self.owner_lock.value.get() }
    }

    /// Returns the value to its owner.
    #[inline(always)]
    pub fn give_back(mut self) {
        self.then = OWNED;
    }

    /// Lets nobody access the value any more, as after a panic.
    pub fn poison(mut self) {
        self.then = POISONED;
    }
}

impl<T> Drop for OwnerLockGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let then = if std::thread::panicking() { POISONED } else { self.then };
        let order = relaxed_if_planted("owner_lock_give_back_relaxed", Ordering::Release); // SYNC owner-lock
        self.owner_lock.state.store(then, order);
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner(owned: {})", self.0.is_owned())
    }
}

impl<T> fmt::Debug for Borrower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Borrower(owned: {})", self.0.is_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_value_goes_from_its_owner_to_a_borrower_and_back() {
        let (mut owner, borrower) = owner_lock(1);
        assert_eq!((owner.owned(), borrower.try_lock().err()), (Some(&1), Some(Unavailable::Owned)));
        owner.release();
        let mut guard = borrower.try_lock().expect("the value is free");
        *guard.value() += 1;
        assert_eq!((owner.owned(), borrower.try_lock().err()), (None, Some(Unavailable::Locked)));
        drop(guard);
        let mut guard = borrower.try_lock().expect("dropping the guard frees the value");
        *guard.value() += 1;
        guard.give_back();
        assert_eq!((owner.owned_mut(), borrower.is_owned()), (Some(&mut 3), true));
    }

    #[test]
    fn a_panic_poisons_the_lock() {
        let (mut owner, borrower) = owner_lock(1);
        owner.release();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = borrower.try_lock().expect("it is free");
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(
            (owner.owned(), borrower.try_lock().err(), borrower.is_poisoned()),
            (None, Some(Unavailable::Poisoned), true)
        );
    }
}
