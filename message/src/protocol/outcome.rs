//! How a message has ended.

use std::sync::OnceLock;
use tasuki_core::base::sync::{AtomicU8, AtomicU64, Ordering};
use tasuki_core::base::{Cause, ValueKind};

/// The outcome of a message.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Outcome {
    Done(Done),
    Failed(Cause),
    /// A receive that was withdrawn before its message came.
    Withdrawn,
}

/// A message that succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) len: u64,
    pub(crate) slot: u32,
    /// The type of its values; that of the receive, if only the sender knows more.
    pub(crate) kind: ValueKind,
    /// True if it was a kept message. A later message may lie in the slot of its receive, whose posting was withdrawn.
    pub(crate) was_kept: bool,
}

/// The outcome of a message, for readers without the lock. The thread that holds the lock of the protocol state sets
/// it, once. The outcome is written word by word, for the reason given at `RecvNext` in `receiver/mod.rs`.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCell {
    /// The kind of outcome; 0: not ended. The other fields are valid once it is set.
    kind: AtomicU8,
    len: AtomicU64,
    /// The slot and the kind of the values.
    slot: AtomicU64,
    cause: OnceLock<Cause>,
}

const DONE: u8 = 1;
const DONE_KEPT: u8 = 4;
const WITHDRAWN: u8 = 2;
const FAILED: u8 = 3;

impl OutcomeCell {
    #[inline]
    pub(crate) fn set(&self, end: &Outcome) {
        let kind = match end {
            Outcome::Done(done) => {
                self.len.store(done.len, Ordering::Relaxed);
                let slot = u64::from(done.slot) << 32 | u64::from(done.kind.bits());
                self.slot.store(slot, Ordering::Relaxed);
                if done.was_kept { DONE_KEPT } else { DONE }
            }
            Outcome::Withdrawn => WITHDRAWN,
            Outcome::Failed(cause) => {
                let _ = self.cause.set(cause.clone());
                FAILED
            }
        };
        self.kind.store(kind, Ordering::Release); // SYNC message-end
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.kind.load(Ordering::Acquire) != 0 // SYNC message-end
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<Outcome> {
        match self.kind.load(Ordering::Acquire) {
            0 => None,
            kind @ (DONE | DONE_KEPT) => {
                let (len, slot) = (self.len.load(Ordering::Relaxed), self.slot.load(Ordering::Relaxed));
                let (of, was_kept) = (ValueKind::from_bits(slot as u32), kind == DONE_KEPT);
                Some(Outcome::Done(Done { len, slot: (slot >> 32) as u32, kind: of, was_kept }))
            }
            WITHDRAWN => Some(Outcome::Withdrawn),
            _ => self.cause.get().cloned().map(Outcome::Failed),
        }
    }
}
