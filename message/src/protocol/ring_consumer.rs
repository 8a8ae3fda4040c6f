//! How much of a message its receiver has taken out of the sender's ring.

use crate::protocol::ring_span::RingSpan;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data};
use tasuki_core::base::Cause;
use tasuki_core::engine::{CachePolicy, Started};
use tasuki_core::segment::GlobalAddress;

/// A receive, by the number of its message and the version of its posting, and how much of the message was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingConsumer {
    pub(crate) number: u32,
    pub(crate) version: u32,
    /// Chunks copied out of the sender's ring, and of which it was told.
    pub(crate) taken: u32,
    pub(crate) acknowledged: u32,
}

impl RingConsumer {
    /// The next on a slot.
    pub(crate) fn next(bank: &SlotBank, index: SlotIndex) -> RingConsumer {
        RingConsumer {
            number: bank.next_received(index),
            version: bank.next_version(index),
            taken: 0,
            acknowledged: 0,
        }
    }

    /// Whether the sender is to be told how many chunks were taken.
    #[inline]
    pub(crate) fn needs_ack(self, span: RingSpan) -> bool {
        span.needs_ack(self.taken, self.acknowledged)
    }

    /// Takes the chunks that lie there, of which there are `chunks` or more, until the sender is unfinished a word: by
    /// `copy`, which starts to copy from a place in the ring to a part of the receiver's memory.
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
