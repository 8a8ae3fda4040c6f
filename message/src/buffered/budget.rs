//! The send buffer: messages that were copied because no receive was posted in time, so that their sends could
//! return.
//!
//! It belongs to the sender. A message leaves it when its receive is posted. Messages of one slot leave it in order,
//! and later sends on the slot follow them.
//!
//! The node state shows how many messages there are, and which is the oldest, since no rank waits in a call for them:
//! a message that nobody receives is seen nowhere else.

use crate::progress::operation::{BufferedMessage, MessageOp};
use crate::slot::bank::LocalSlot;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tasuki_core::base::error_hint::SEND_BUFFER_OF_SLOT;
use tasuki_core::base::sync::Ordering;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Worker;
use tasuki_core::node::node_state::SendBuffer;

/// The longest message that is buffered, in bytes, if only the capacity was set.
const LONGEST: u64 = 64 << 10;
/// How long a send waits before it is buffered, if only the capacity was set. A receive that comes in this time costs
/// less than a copy and a wake-up of the thread that sends the copy.
const SOON: Duration = Duration::from_micros(30);
/// Bytes that a buffered message counts beside its own: a little more than the memory of an empty one.
pub const BUFFERED_OVERHEAD: u64 = 1024;

/// The settings and the fill level of the send buffer.
#[derive(Debug, Default)]
pub(crate) struct BufferedSends {
    usage: Mutex<BufferedUsage>,
    /// Whose node state shows the messages.
    worker: OnceLock<Weak<Worker>>,
}

/// The room of a message in the send buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferRoom {
    bytes: u64,
    /// How many messages had got room before.
    number: u64,
}

/// Receiver, slot and bytes of a message.
type Address = (Rank, u32, u64);

#[derive(Debug, Default)]
struct BufferedUsage {
    rules: BufferRules,
    used: u64,
    /// The number of the next message.
    next: u64,
    /// The messages, by their numbers.
    messages: BTreeMap<u64, Address>,
}

/// Which messages are buffered, and when.
#[derive(Clone, Copy, Debug)]
struct BufferRules {
    /// Bytes of all buffered messages, each with [`BUFFERED_OVERHEAD`].
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
    /// Sets the capacity in bytes, and how long a send waits before it is buffered; `None`: never. From now on messages of all lengths are buffered, and a send that finds no room fails.
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

    /// Sets whose node state shows the messages.
    pub(crate) fn show_at(&self, worker: Weak<Worker>) {
        let _ = self.worker.set(worker);
    }

    /// Reserves room for a message to that member of the job, on that slot, and counts the message at the slot. Returns
    /// what to give back. None: there is no room, and the send is to wait for its receive.
    pub(crate) fn take(
        &self,
        (to, slot, len): Address,
        state: &LocalSlot,
    ) -> Result<Option<BufferRoom>, Cause> {
        let mut usage = self.usage();
        let rules = usage.rules;
        let bytes = len.saturating_add(BUFFERED_OVERHEAD);
        let free = rules.capacity.saturating_sub(usage.used); // the capacity may have been reduced
        let is_slot_full = state.buffered.load(Ordering::Relaxed) == u16::MAX;
        if (bytes > free || is_slot_full) && !rules.refuses {
            return Ok(None);
        }
        if bytes > free {
            let (overhead, capacity) = (BUFFERED_OVERHEAD, rules.capacity);
            return Err(Cause::SendBufferFull { bytes: len, overhead, free, capacity });
        }
        if is_slot_full {
            return Err(Cause::Full { what: SEND_BUFFER_OF_SLOT, capacity: usize::from(u16::MAX) });
        }
        let number = usage.next;
        usage.used += bytes;
        usage.next += 1;
        usage.messages.insert(number, (to, slot, len));
        self.show(&usage);
        state.buffered.fetch_add(1, Ordering::Relaxed);
        Ok(Some(BufferRoom { bytes, number }))
    }

    /// Shows the messages in the node state.
    fn show(&self, usage: &BufferedUsage) {
        let Some(worker) = self.worker.get().and_then(Weak::upgrade) else { return };
        let oldest = usage.messages.first_key_value();
        let messages = u32::try_from(usage.messages.len()).unwrap_or(u32::MAX);
        let shown = oldest.map(|(_, &(to, slot, bytes))| SendBuffer { messages, to, slot, bytes });
        worker.rank_state().set_send_buffer(shown);
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
    pub(crate) fn free(&self, room: BufferRoom, state: &LocalSlot) {
        let mut usage = self.usage();
        usage.used -= room.bytes;
        usage.messages.remove(&room.number);
        self.show(&usage);
        drop(usage);
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
