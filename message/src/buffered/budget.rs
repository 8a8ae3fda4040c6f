//! The send buffer: messages that were copied because no receive was posted in time, so that their sends could
//! return.
//!
//! It belongs to the sender. A message leaves it when its receive is posted. Messages of one slot leave it in order,
//! and later sends on the slot follow them.

use crate::progress::operation::{BufferedMessage, MessageOp};
use crate::slot::bank::LocalSlot;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasuki_core::base::Cause;
use tasuki_core::base::error_hint::SEND_BUFFER_OF_SLOT;
use tasuki_core::base::sync::Ordering;

/// The longest message that is buffered, in bytes, if only the capacity was set.
const LONGEST: u64 = 64 << 10;
/// How long a send waits before it is buffered, if only the capacity was set. A receive that comes in this time costs
/// less than a copy and a wake-up of the thread that sends the copy.
const SOON: Duration = Duration::from_micros(30);
/// What a message counts besides its bytes: it takes memory even if it is empty.
const OVERHEAD: u64 = 256;

/// The settings and the fill level of the send buffer.
#[derive(Debug, Default)]
pub(crate) struct BufferedSends {
    usage: Mutex<BufferedUsage>,
}

#[derive(Debug, Default)]
struct BufferedUsage {
    rules: BufferRules,
    used: u64,
}

/// Which messages are buffered, and when.
#[derive(Clone, Copy, Debug)]
struct BufferRules {
    /// Bytes of all buffered messages.
    capacity: u64,
    /// Longer messages wait for their receives.
    longest: u64,
    /// How long a send waits before it is buffered.
    after: Option<Duration>,
    /// True if a send that finds no room fails; otherwise it waits for its receive.
    refuses: bool,
}

impl Default for BufferRules {
    fn default() -> BufferRules {
        BufferRules { capacity: 0, longest: LONGEST, after: None, refuses: false }
    }
}

impl BufferedSends {
    /// Sets the capacity in bytes of all buffered messages, and how long a send waits before it is buffered; `None`:
    /// never. From now on messages of all lengths are buffered, and a send that finds no room fails.
    pub(crate) fn set(&self, capacity: u64, after: Option<Duration>) {
        let after = after.filter(|_| capacity > 0);
        self.usage().rules = BufferRules { capacity, longest: u64::MAX, after, refuses: true };
    }

    /// Sets the capacity. Short messages are buffered soon, and longer ones, and those that find no room, wait.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        let after = Some(SOON).filter(|_| capacity > 0);
        self.usage().rules = BufferRules { capacity, after, ..BufferRules::default() };
    }

    /// Returns how long a send of so many bytes waits before it is buffered.
    pub(crate) fn after(&self, bytes: u64) -> Option<Duration> {
        let BufferRules { after, longest, .. } = self.usage().rules;
        after.filter(|_| bytes <= longest)
    }

    /// Reserves room for a message and counts the message at its slot. Returns the bytes to give back. None: there is
    /// no room, and the send is to wait for its receive.
    pub(crate) fn take(&self, bytes: u64, state: &LocalSlot) -> Result<Option<u64>, Cause> {
        let mut usage = self.usage();
        let rules = usage.rules;
        let bytes = if rules.refuses { bytes } else { bytes + OVERHEAD };
        let free = rules.capacity.saturating_sub(usage.used); // the capacity may have been reduced
        let is_slot_full = state.buffered.load(Ordering::Relaxed) == u16::MAX;
        if (bytes > free || is_slot_full) && !rules.refuses {
            return Ok(None);
        }
        if bytes > free {
            return Err(Cause::SendBufferFull { bytes, free, capacity: rules.capacity });
        }
        if is_slot_full {
            return Err(Cause::Full { what: SEND_BUFFER_OF_SLOT, capacity: usize::from(u16::MAX) });
        }
        usage.used += bytes;
        state.buffered.fetch_add(1, Ordering::Relaxed);
        Ok(Some(bytes))
    }

    /// Frees the bytes of a message that has ended, if it was buffered.
    pub(crate) fn give_back(&self, operation: &MessageOp) {
        if let Some(BufferedMessage { room, number }) = operation.buffered_message() {
            let (order, pair) = operation.bank.buffered_order();
            order.leave(pair, number);
            self.free(room, operation.bank.state(operation.index));
        }
    }

    /// Frees the room of a message of that slot.
    pub(crate) fn free(&self, room: u64, state: &LocalSlot) {
        self.usage().used -= room;
        state.buffered.fetch_sub(1, Ordering::Release); // SYNC unbuffered
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.usage().used
    }

    fn usage(&self) -> MutexGuard<'_, BufferedUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
