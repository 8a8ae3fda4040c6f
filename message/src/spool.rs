//! The spool: messages that were copied because no receive stood there in time, and whose senders have gone on.
//!
//! It lies at the sender. A message leaves it when its receive is posted; messages of one slot leave it in order, and
//! a later one on the slot follows them.

use super::operation::Operation;
use super::page::State;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasuki_core::base::Cause;

/// How the spool is used, and how full it is.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    capacity: u64,
    used: u64,
    after: Option<Duration>,
}

impl Spool {
    /// Takes messages of up to `capacity` bytes in all, each when it has waited for so long; never, if that is none.
    pub(crate) fn set(&self, capacity: u64, after: Option<Duration>) {
        let mut books = self.books();
        (books.capacity, books.after) = (capacity, after.filter(|_| capacity > 0));
    }

    /// After how long a message that waits goes into the spool.
    pub(crate) fn after(&self) -> Option<Duration> {
        self.books().after
    }

    /// Takes room for a message on a slot, and counts it there.
    pub(crate) fn take(&self, bytes: u64, state: &State) -> Result<(), Cause> {
        let mut books = self.books();
        let free = books.capacity.saturating_sub(books.used); // it may have been made smaller meanwhile
        if bytes > free {
            return Err(Cause::SpoolFull { bytes, free, capacity: books.capacity });
        }
        if state.spooled.load(Ordering::Relaxed) == u16::MAX {
            return Err(Cause::Full { what: "the spool of one slot", capacity: usize::from(u16::MAX) });
        }
        books.used += bytes;
        state.spooled.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A message has ended: gives its room back, if it had some.
    pub(crate) fn give_back(&self, operation: &Operation) {
        if let Some(bytes) = operation.spool_bytes() {
            self.books().used -= bytes;
            // SYNC unspooled
            operation.page.state(operation.block).spooled.fetch_sub(1, Ordering::Release);
        }
    }

    /// Bytes in it.
    pub(crate) fn used(&self) -> u64 {
        self.books().used
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
