//! Directory entries of contexts that have ended. A rank frees the entries in its own directory. An entry can be freed
//! only when the peer has closed the bank, too. So the rank checks all entries again whenever a context ends.

use crate::slot::directory;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::base::sync::{AtomicBool, Ordering};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::Worker;

/// An entry in this rank's directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RetiredEntry {
    pub(crate) peer: Rank,
    pub(crate) entry: u32,
}

/// The entries of a rank that are not free yet.
#[derive(Debug, Default)]
pub(crate) struct RetiredEntries {
    entries: Mutex<Vec<RetiredEntry>>,
    /// True while a thread frees entries. It is no lock, because the thread calls the fabric.
    is_retiring: AtomicBool,
}

impl RetiredEntries {
    fn entries(&self) -> MutexGuard<'_, Vec<RetiredEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds entries. Ignores entry 0, which belongs to a bank that was never opened.
    pub(crate) fn add(&self, entries: impl Iterator<Item = RetiredEntry>) {
        self.entries().extend(entries.filter(|retired| retired.entry != 0));
    }

    /// Frees the entries whose banks both ranks have closed.
    pub(crate) fn retire(&self, worker: &Worker) -> Result<()> {
        if self.is_retiring.swap(true, Ordering::Acquire) {
            return Ok(()); // the next call checks the entries again
        }
        let all = std::mem::take(&mut *self.entries());
        let retired = all.into_iter().try_for_each(|retired| {
            if !directory::retire(worker, retired.peer, retired.entry)? {
                self.entries().push(retired);
            }
            Ok(())
        });
        self.is_retiring.store(false, Ordering::Release);
        retired
    }
}
