//! The spool: messages that were copied because no receive stood there in time, and whose senders have gone on.
//!
//! It lies at the sender. A message leaves it when its receive is posted; messages of one slot leave it in order, and
//! a later one on the slot follows them.

use crate::progress::operation::MessageOp;
use crate::slot::bank::LocalSlot;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasuki_core::base::Cause;

/// How the spool is used, and how full it is.
#[derive(Debug, Default)]
pub(crate) struct BufferedSends {
    usage: Mutex<BufferedUsage>,
}

#[derive(Debug, Default)]
struct BufferedUsage {
    capacity: u64,
    used: u64,
    after: Option<Duration>,
}

impl BufferedSends {
    /// Takes messages of up to `capacity` bytes in all, each when it has waited for so long; never, if that is none.
    pub(crate) fn set(&self, capacity: u64, after: Option<Duration>) {
        let mut usage = self.usage();
        (usage.capacity, usage.after) = (capacity, after.filter(|_| capacity > 0));
    }

    /// After how long a message that waits goes into the spool.
    pub(crate) fn after(&self) -> Option<Duration> {
        self.usage().after
    }

    /// Takes room for a message on a slot, and counts it there.
    pub(crate) fn take(&self, bytes: u64, state: &LocalSlot) -> Result<(), Cause> {
        let mut usage = self.usage();
        let free = usage.capacity.saturating_sub(usage.used); // it may have been made smaller meanwhile
        if bytes > free {
            return Err(Cause::SpoolFull { bytes, free, capacity: usage.capacity });
        }
        if state.buffered.load(Ordering::Relaxed) == u16::MAX {
            return Err(Cause::Full { what: "the spool of one slot", capacity: usize::from(u16::MAX) });
        }
        usage.used += bytes;
        state.buffered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A message has ended: gives its room back, if it had some.
    pub(crate) fn give_back(&self, operation: &MessageOp) {
        if let Some(bytes) = operation.buffered_bytes() {
            self.usage().used -= bytes;
            // SYNC unbuffered
            operation.bank.state(operation.block).buffered.fetch_sub(1, Ordering::Release);
        }
    }

    /// Bytes in it.
    pub(crate) fn used(&self) -> u64 {
        self.usage().used
    }

    fn usage(&self) -> MutexGuard<'_, BufferedUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
