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
//! (`SYNC baton`: each store of a state that others go by releases, each load acquires).

use crate::base::sync::{Arc, AtomicU32, Ordering};
use crate::base::{planted, relaxed_if_planted};
use std::cell::UnsafeCell;
use std::fmt;

const KEPT: u32 = 0;
const FREE: u32 = 1;
const TAKEN: u32 = 2;
const BROKEN: u32 = 3;

struct Baton<T> {
    state: AtomicU32,
    thing: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets at the thing, or several that look at it with its one owner.
unsafe impl<T: Send + Sync> Sync for Baton<T> {}

/// Who keeps it, and may let it go.
pub struct Owner<T>(Arc<Baton<T>>);

/// Who may take it while it is let go.
pub struct Hand<T>(Arc<Baton<T>>);

/// It, as long as this hand has it. It is free again afterwards, unless it is [`done`](Grip::done).
pub struct Grip<'b, T> {
    baton: &'b Baton<T>,
    then: u32,
}

/// It cannot be had now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Away {
    /// Its owner keeps it.
    Kept,
    /// Another one has it for a moment.
    Taken,
    /// Who had it panicked.
    Broken,
}

/// The owner of a thing, and a hand that may take it.
pub fn baton<T>(thing: T) -> (Owner<T>, Hand<T>) {
    let baton = Arc::new(Baton { state: AtomicU32::new(KEPT), thing: UnsafeCell::new(thing) });
    (Owner(baton.clone()), Hand(baton))
}

impl<T> Baton<T> {
    #[inline(always)]
    fn is_kept(&self) -> bool {
        self.state.load(Ordering::Acquire) == KEPT // SYNC baton
    }

    #[inline]
    fn take(&self) -> Result<Grip<'_, T>, Away> {
        if planted("baton_taken_twice") {
            self.state.store(TAKEN, Ordering::Relaxed);
            return Ok(Grip { baton: self, then: FREE });
        }
        let order = relaxed_if_planted("baton_take_relaxed", Ordering::Acquire); // SYNC baton
        match self.state.compare_exchange(FREE, TAKEN, order, Ordering::Acquire) {
            Ok(_) => Ok(Grip { baton: self, then: FREE }),
            Err(KEPT) => Err(Away::Kept),
            Err(BROKEN) => Err(Away::Broken),
            Err(_) => Err(Away::Taken),
        }
    }
}

impl<T> Owner<T> {
    /// It, if it is kept.
    #[inline(always)]
    pub fn kept(&self) -> Option<&T> {
        // SAFETY: only this owner lets it go, which borrows it changeably.
        self.0.is_kept().then(|| unsafe { &*self.0.thing.get() })
    }

    /// The same to be changed.
    #[inline(always)]
    pub fn kept_mut(&mut self) -> Option<&mut T> {
        // SAFETY: nobody takes what is kept, and nobody else is its owner.
        self.0.is_kept().then(|| unsafe { &mut *self.0.thing.get() })
    }

    /// Others may go on with it from now on. Only what is kept.
    #[inline(always)]
    pub fn let_go(&mut self) {
        debug_assert!(self.0.is_kept(), "it is let go once");
        let order = relaxed_if_planted("baton_let_go_relaxed", Ordering::Release); // SYNC baton
        self.0.state.store(FREE, order);
    }
}

impl<T> Clone for Hand<T> {
    fn clone(&self) -> Hand<T> {
        Hand(self.0.clone())
    }
}

impl<T> Hand<T> {
    /// Takes it, if it is free.
    #[inline]
    pub fn take(&self) -> Result<Grip<'_, T>, Away> {
        self.0.take()
    }

    /// Whether one that had it panicked: nobody has it any more.
    pub fn is_broken(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == BROKEN
    }

    /// Whether its owner keeps it.
    #[inline(always)]
    pub fn is_kept(&self) -> bool {
        self.0.is_kept()
    }
}

impl<T> Grip<'_, T> {
    /// It.
    #[inline(always)]
    pub fn thing(&mut self) -> &mut T {
        // SAFETY: one hand has it at a time.
        unsafe { &mut *self.baton.thing.get() }
    }

    /// Nobody needs to go on with it: its owner keeps it from now on.
    #[inline(always)]
    pub fn done(mut self) {
        self.then = KEPT;
    }
}

impl<T> Drop for Grip<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let then = if std::thread::panicking() { BROKEN } else { self.then };
        let order = relaxed_if_planted("baton_put_down_relaxed", Ordering::Release); // SYNC baton
        self.baton.state.store(then, order);
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner(kept: {})", self.0.is_kept())
    }
}

impl<T> fmt::Debug for Hand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hand(kept: {})", self.0.is_kept())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn it_goes_from_its_owner_to_a_hand_and_back() {
        let (mut owner, hand) = baton(1);
        assert_eq!((owner.kept(), hand.take().err()), (Some(&1), Some(Away::Kept)));
        owner.let_go();
        let mut grip = hand.take().expect("it is free");
        *grip.thing() += 1;
        assert_eq!((owner.kept(), hand.take().err()), (None, Some(Away::Taken)));
        drop(grip);
        let mut grip = hand.take().expect("it was not done");
        *grip.thing() += 1;
        grip.done();
        assert_eq!((owner.kept_mut(), hand.is_kept()), (Some(&mut 3), true));
    }

    #[test]
    fn what_broke_nobody_has() {
        let (mut owner, hand) = baton(1);
        owner.let_go();
        let broken = catch_unwind(AssertUnwindSafe(|| {
            let _grip = hand.take().expect("it is free");
            panic!("on purpose");
        }));
        assert!(broken.is_err());
        assert_eq!((owner.kept(), hand.take().err(), hand.is_broken()), (None, Some(Away::Broken), true));
    }
}
