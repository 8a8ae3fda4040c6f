//! The lease of a queue. One rank at a time holds it and runs the queue, and no event that happens meanwhile is missed.
//!
//! A rank that has posted a command or raised a signal either takes the lease, if it is free, or marks it. A holder
//! that finds the mark when it releases the lease keeps it and runs the queue again. So if two ranks try at the same
//! time, one of them runs the queue after both have posted or raised. The whole lease is one word.

use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Another rank tried to take the lease while it was held.
const MARKED: u64 = 1;
/// First bit of the holder: one more than its rank; 0 if the lease is free.
const HOLDER: u32 = 1;
const HOLDER_MASK: u64 = (1 << 31) - 1;
/// First bit of the number of times that the lease was taken.
const COUNT: u32 = 32;

/// The lease of a queue.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Lease {
    /// Bit 0: marked; 1-31: holder; 32-63: how often it was taken. Written by all ranks that may run the queue.
    word: AtomicU64,
}

/// The state of a lease at some moment. If two snapshots are equal, no rank took or released the lease in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseSnapshot(u64);

impl Default for Lease {
    fn default() -> Lease {
        Lease { word: AtomicU64::new(0) }
    }
}

impl Lease {
    /// Takes the lease for `rank` and returns true; or, if it is held, marks it so that its holder runs the queue
    /// again.
    #[inline]
    pub fn acquire_or_mark(&self, rank: u32) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let free = word >> HOLDER & HOLDER_MASK == 0;
            let next = if free { taken(word, rank) } else { word | MARKED };
            let order = relaxed_if_planted("lease_call_relaxed", Ordering::AcqRel); // SYNC lease
            match self.word.compare_exchange_weak(word, next, order, Ordering::Relaxed) {
                Ok(_) => return free,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the lease for `rank` if it is free. Leaves no mark. Returns true if it was taken.
    #[inline]
    pub fn try_acquire(&self, rank: u32) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let order = Ordering::AcqRel; // SYNC lease
        LeaseSnapshot(word).is_free()
            && self.word.compare_exchange(word, taken(word, rank), order, Ordering::Relaxed).is_ok()
    }

    /// Releases the lease and returns true. If it was marked meanwhile, the caller keeps it and gets false; then it
    /// sees what the ranks that marked it did before.
    #[inline]
    pub fn release(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if word & MARKED == 0 || planted("lease_call_forgotten") {
            let next = word & !(HOLDER_MASK << HOLDER | MARKED);
            let order = relaxed_if_planted("lease_back_relaxed", Ordering::AcqRel); // SYNC lease
            if planted("lease_call_forgotten") {
                self.word.store(next, order);
                return true;
            }
            if self.word.compare_exchange(word, next, order, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        self.word.fetch_and(!MARKED, Ordering::AcqRel); // SYNC lease
        false
    }

    /// The state of the lease now.
    #[inline(always)]
    pub fn snapshot(&self) -> LeaseSnapshot {
        LeaseSnapshot(self.word.load(Ordering::Acquire)) // SYNC lease
    }
}

fn taken(word: u64, rank: u32) -> u64 {
    let count = (word >> COUNT).wrapping_add(1) & u64::from(u32::MAX);
    count << COUNT | u64::from(rank + 1) << HOLDER
}

impl LeaseSnapshot {
    /// The rank that held the lease.
    pub fn holder(self) -> Option<u32> {
        (self.0 >> HOLDER & HOLDER_MASK).checked_sub(1).map(|rank| rank as u32)
    }

    /// Returns true if no rank held the lease.
    #[inline(always)]
    pub fn is_free(self) -> bool {
        self.0 >> HOLDER & HOLDER_MASK == 0
    }
}
