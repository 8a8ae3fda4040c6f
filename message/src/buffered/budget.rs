//! The send buffer: messages that were copied because no receive was posted in time, so that their sends could
//! return.
//!
//! It belongs to the sender. A message leaves it when its receive is posted. Messages of one slot leave it in order,
//! and later sends on the slot follow them.

use crate::progress::operation::MessageOp;
use crate::slot::bank::LocalSlot;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasuki_core::base::Cause;

/// The settings and the fill level of the send buffer.
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
    /// Sets the capacity in bytes of all buffered messages, and how long a send waits before it is buffered; `None`:
    /// never.
    pub(crate) fn set(&self, capacity: u64, after: Option<Duration>) {
        let mut usage = self.usage();
        (usage.capacity, usage.after) = (capacity, after.filter(|_| capacity > 0));
    }

    /// Returns how long a send waits before it is buffered.
    pub(crate) fn after(&self) -> Option<Duration> {
        self.usage().after
    }

    /// Reserves bytes for a message and counts the message at its slot.
    pub(crate) fn take(&self, bytes: u64, state: &LocalSlot) -> Result<(), Cause> {
        let mut usage = self.usage();
        let free = usage.capacity.saturating_sub(usage.used); // the capacity may have been reduced
        if bytes > free {
            return Err(Cause::SendBufferFull { bytes, free, capacity: usage.capacity });
        }
        if state.buffered.load(Ordering::Relaxed) == u16::MAX {
            return Err(Cause::Full { what: "the send buffer of one slot", capacity: usize::from(u16::MAX) });
        }
        usage.used += bytes;
        state.buffered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Frees the bytes of a message that has ended, if it was buffered.
    pub(crate) fn give_back(&self, operation: &MessageOp) {
        if let Some(bytes) = operation.buffered_bytes() {
            self.usage().used -= bytes;
            // SYNC unbuffered
            operation.bank.state(operation.index).buffered.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.usage().used
    }

    fn usage(&self) -> MutexGuard<'_, BufferedUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
