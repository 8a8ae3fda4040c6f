//! Whether this rank has a bank open, and where it lies: what stands beside the slots of a bank and changes when it is
//! opened and let go.
//!
//! A bank that was let go stays where it is, as a new_closed: fast paths borrow banks without counting. All marks of a new_closed
//! say closed, so whoever wants one of its slots comes to the slow path, which opens it again, at other units if both
//! ranks had let go.

use crate::slot::directory::OpenedBank;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use tasuki_core::base::Result;
use tasuki_core::engine::Worker;

/// Pages of a rank, in all its contexts.
#[derive(Debug, Default)]
pub(crate) struct BankCounts {
    /// Those that it has made, husks too.
    pub(crate) made: AtomicUsize,
    /// Those that it has open.
    pub(crate) open: AtomicUsize,
}

/// What a rank has of a bank. Changed only by who has claimed the bank's pair.
#[derive(Debug)]
pub(crate) struct BankState {
    counts: Arc<BankCounts>,
    entry: AtomicU32,
    generation: AtomicU32,
    ours: AtomicU32,
    theirs: AtomicU32,
    is_open: AtomicBool,
    /// Of a pair's first bank: whether a thread opens or closes banks of the pair.
    is_claimed: AtomicBool,
}

/// That banks of a pair are opened and closed by this thread alone, until it is dropped. No lock: whoever has it makes
/// calls of the fabric, in which another thread of the rank may run and want it.
#[derive(Debug)]
pub(crate) struct BankClaim<'h>(&'h BankState);

impl Drop for BankClaim<'_> {
    fn drop(&mut self) {
        self.0.is_claimed.store(false, Ordering::Release);
    }
}

impl BankState {
    /// Of a bank that was never open.
    pub(crate) fn none(counts: &Arc<BankCounts>) -> BankState {
        counts.made.fetch_add(1, Ordering::Relaxed);
        BankState {
            counts: counts.clone(),
            entry: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            theirs: AtomicU32::new(0),
            is_open: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
        }
    }

    /// Claims the pair, waiting for another thread that has it.
    pub(crate) fn claim(&self, worker: &Worker, call: &str) -> Result<BankClaim<'_>> {
        while self.is_claimed.swap(true, Ordering::Acquire) {
            worker.relax(call)?;
        }
        Ok(BankClaim(self))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Which opening of the bank by this rank it is, or was, as far as both ranks have let go between.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The number of the bank's entry.
    pub(crate) fn entry(&self) -> u32 {
        self.entry.load(Ordering::Relaxed)
    }

    /// The units: this rank's, and the peer's.
    pub(crate) fn units(&self) -> (u32, u32) {
        (self.ours.load(Ordering::Relaxed), self.theirs.load(Ordering::Relaxed))
    }

    /// Notes where it lies. Whether nothing that was known of its slots holds any more.
    pub(crate) fn note(&self, opened: &OpenedBank) -> bool {
        self.entry.store(opened.entry, Ordering::Relaxed);
        self.ours.store(opened.ours, Ordering::Relaxed);
        self.theirs.store(opened.theirs, Ordering::Relaxed);
        self.generation.swap(opened.generation, Ordering::Relaxed) != opened.generation
    }

    /// It can be used, or can no more.
    pub(crate) fn set_open(&self, open: bool) {
        let was = self.is_open.swap(open, Ordering::AcqRel);
        match (was, open) {
            (false, true) => drop(self.counts.open.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.counts.open.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

impl Drop for BankState {
    fn drop(&mut self) {
        // One that is still open stays so: its slots are not given back.
        self.counts.made.fetch_sub(1, Ordering::Relaxed);
    }
}
