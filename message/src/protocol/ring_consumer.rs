//! The receiver's progress through a message in the sender's ring.

use crate::protocol::ring_span::RingSpan;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data};
use tasuki_core::base::Cause;
use tasuki_core::engine::{CachePolicy, Started};
use tasuki_core::segment::GlobalAddress;

/// A receive, named by its message's number and its posting's version, and the number of chunks of the message that it
/// has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingConsumer {
    pub(crate) number: u32,
    pub(crate) version: u32,
    /// Chunks copied out of the ring, and chunks acknowledged to the sender.
    pub(crate) taken: u32,
    pub(crate) acknowledged: u32,
}

impl RingConsumer {
    /// Makes the next receive on a slot.
    pub(crate) fn next(bank: &SlotBank, index: SlotIndex) -> RingConsumer {
        RingConsumer {
            number: bank.next_received(index),
            version: bank.next_version(index),
            taken: 0,
            acknowledged: 0,
        }
    }

    /// Returns true if the taken chunks should be acknowledged to the sender.
    #[inline]
    pub(crate) fn needs_ack(self, span: RingSpan) -> bool {
        span.needs_ack(self.taken, self.acknowledged)
    }

    /// Takes chunks until an acknowledgement is due or the ring has no more of them. `chunks` chunks were announced.
    /// `copy` starts to copy from an address in the ring to a part of the receiver's memory.
    #[inline]
    pub(crate) fn take(
        &mut self,
        (bank, index): (&SlotBank, SlotIndex),
        span: RingSpan,
        mut chunks: u32,
        copy: impl Fn(GlobalAddress, (u64, u64), CachePolicy) -> Result<Started, Cause>,
    ) -> Result<Started, Cause> {
        let caching = CachePolicy::of(span.chunking.len());
        while self.taken < chunks && !self.needs_ack(span) {
            match copy(span.place(self.taken), span.chunking.part(self.taken), caching)? {
                Started::Done(_) => self.taken += 1,
                not_yet => return Ok(not_yet),
            }
            if let Data::Staged { chunks: now } = encoding::read_data(bank.data(index), self.number) {
                chunks = now;
            }
        }
        Ok(Started::Done(0))
    }
}
