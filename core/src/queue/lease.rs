//! Who may run a queue now: one at a time, and nothing is forgotten that came meanwhile.
//!
//! Whoever has something for a queue, a command posted or a signal raised, *calls* it: takes the lease if it is free,
//! and else leaves a mark with its holder. A holder that finds the mark when it gives the lease back goes on. So of two
//! that call at the same time one runs the queue, after both have done what they called for. All in one word.

use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Somebody called while the lease was held.
const CALLED: u64 = 1;
/// Who holds it: one more than its rank, above this bit; 0 for nobody.
const HOLDER: u32 = 1;
const HOLDER_MASK: u64 = (1 << 31) - 1;
/// How often it was taken, above this bit.
const TURN: u32 = 32;

/// The lease of a queue.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Lease {
    /// Bit 0: called; 1-31: holder; 32-63: turn. Written by all that may run the queue.
    word: AtomicU64,
}

/// What the lease was like at some moment: two that are alike say that nobody had it in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Glance(u64);

impl Default for Lease {
    fn default() -> Lease {
        Lease { word: AtomicU64::new(0) }
    }
}

impl Lease {
    /// Takes the lease for `rank`, or makes its holder look again before it gives it back. Whether it was taken.
    #[inline]
    pub fn call(&self, rank: u32) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let free = word >> HOLDER & HOLDER_MASK == 0;
            let next = if free { taken(word, rank) } else { word | CALLED };
            let order = relaxed_if_planted("lease_call_relaxed", Ordering::AcqRel); // SYNC lease
            match self.word.compare_exchange_weak(word, next, order, Ordering::Relaxed) {
                Ok(_) => return free,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the lease for `rank` if it is free. Nobody is called.
    #[inline]
    pub fn take_if_free(&self, rank: u32) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let order = Ordering::AcqRel; // SYNC lease
        Glance(word).is_free()
            && self.word.compare_exchange(word, taken(word, rank), order, Ordering::Relaxed).is_ok()
    }

    /// Gives the lease back, unless somebody has called meanwhile: then it stays taken, and false is the answer. What
    /// was called for is visible then.
    #[inline]
    pub fn give_back(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if word & CALLED == 0 || planted("lease_call_forgotten") {
            let next = word & !(HOLDER_MASK << HOLDER | CALLED);
            let order = relaxed_if_planted("lease_back_relaxed", Ordering::AcqRel); // SYNC lease
            if planted("lease_call_forgotten") {
                self.word.store(next, order);
                return true;
            }
            if self.word.compare_exchange(word, next, order, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        self.word.fetch_and(!CALLED, Ordering::AcqRel); // SYNC lease
        false
    }

    /// What the lease is like.
    #[inline(always)]
    pub fn glance(&self) -> Glance {
        Glance(self.word.load(Ordering::Acquire)) // SYNC lease
    }
}

fn taken(word: u64, rank: u32) -> u64 {
    let turn = (word >> TURN).wrapping_add(1) & u64::from(u32::MAX);
    turn << TURN | u64::from(rank + 1) << HOLDER
}

impl Glance {
    /// Who had it.
    pub fn holder(self) -> Option<u32> {
        (self.0 >> HOLDER & HOLDER_MASK).checked_sub(1).map(|rank| rank as u32)
    }

    /// Whether nobody had it.
    #[inline(always)]
    pub fn is_free(self) -> bool {
        self.0 >> HOLDER & HOLDER_MASK == 0
    }
}
