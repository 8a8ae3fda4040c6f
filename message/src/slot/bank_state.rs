//! The state of a bank at this rank: whether the bank is open, and where its memory is. The state changes when the bank
//! is opened and closed.
//!
//! The structure of a closed bank stays allocated, because fast paths borrow banks without counting references. All
//! slot states of the bank are closed, so every use of a slot takes the slow path, which reopens the bank. If both
//! ranks had closed the bank, it gets other units.

use crate::buffered::order::BufferedOrder;
use crate::slot::directory::OpenedBank;
use std::sync::Arc;
use tasuki_core::base::Result;
use tasuki_core::base::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use tasuki_core::engine::Worker;

/// What the banks of a rank share, over all its contexts.
#[derive(Debug, Default)]
pub(crate) struct BanksOfRank {
    /// Banks that exist, closed ones included.
    pub(crate) made: AtomicUsize,
    /// Banks that are open.
    pub(crate) open: AtomicUsize,
    buffered_order: BufferedOrder,
}

/// The state of a bank. Changed only by the thread that has claimed the bank's pair.
#[derive(Debug)]
pub(crate) struct BankState {
    all: Arc<BanksOfRank>,
    entry: AtomicU32,
    generation: AtomicU32,
    ours: AtomicU32,
    theirs: AtomicU32,
    is_open: AtomicBool,
    /// In a pair's first bank: true while a thread opens or closes banks of the pair.
    is_claimed: AtomicBool,
}

/// The right to open and close the banks of a pair, until this value is dropped. It is no lock, because its holder
/// calls the fabric, and on some platforms another thread of the rank that wants the claim runs inside such a call.
#[derive(Debug)]
pub(crate) struct BankClaim<'h>(&'h BankState);

impl Drop for BankClaim<'_> {
    fn drop(&mut self) {
        self.0.is_claimed.store(false, Ordering::Release);
    }
}

impl BankState {
    /// Makes the state of a bank that has never been open.
    pub(crate) fn new_closed(all: &Arc<BanksOfRank>) -> BankState {
        all.made.fetch_add(1, Ordering::Relaxed);
        BankState {
            all: all.clone(),
            entry: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            theirs: AtomicU32::new(0),
            is_open: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
        }
    }

    /// Claims the pair. Waits while another thread has it.
    pub(crate) fn claim(&self, worker: &Worker, call: &str) -> Result<BankClaim<'_>> {
        while self.is_claimed.swap(true, Ordering::Acquire) {
            worker.relax(call)?;
        }
        Ok(BankClaim(self))
    }

    /// Returns the order of the rank's buffered messages.
    pub(crate) fn buffered_order(&self) -> &BufferedOrder {
        &self.all.buffered_order
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns the generation of the bank, which changes whenever both ranks have closed it.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Returns the number of the bank's directory entry.
    pub(crate) fn entry(&self) -> u32 {
        self.entry.load(Ordering::Relaxed)
    }

    /// Returns the units: this rank's, and the peer's.
    pub(crate) fn units(&self) -> (u32, u32) {
        (self.ours.load(Ordering::Relaxed), self.theirs.load(Ordering::Relaxed))
    }

    /// Stores the location of the bank. Returns true if the slots are new. Then the caller must reset all slot states.
    pub(crate) fn update(&self, opened: &OpenedBank) -> bool {
        self.entry.store(opened.entry, Ordering::Relaxed);
        self.ours.store(opened.ours, Ordering::Relaxed);
        self.theirs.store(opened.theirs, Ordering::Relaxed);
        self.generation.swap(opened.generation, Ordering::Relaxed) != opened.generation
    }

    /// Marks the bank open or closed.
    pub(crate) fn set_open(&self, open: bool) {
        let was = self.is_open.swap(open, Ordering::AcqRel);
        match (was, open) {
            (false, true) => drop(self.all.open.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.all.open.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

impl Drop for BankState {
    fn drop(&mut self) {
        // A bank that is dropped while it is open stays in the count of open banks, because its units are not freed.
        self.all.made.fetch_sub(1, Ordering::Relaxed);
    }
}
