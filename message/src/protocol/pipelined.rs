//! A send through a ring.

use crate::protocol::ring::{HeldRing, Unconsumed};
use crate::protocol::ring_span::RingSpan;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding;
use std::sync::Arc;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::Refused;
use tasuki_core::segment::GlobalAddress;

/// The progress of a send through a ring.
#[derive(Debug)]
pub(crate) struct PipelinedSend {
    pub(crate) ring: HeldRing,
    pub(crate) span: RingSpan,
    /// Number of chunks that were copied into the ring.
    pub(crate) staged: u32,
    /// Number of chunks that were announced to the receiver.
    announced: u32,
    /// The operation that copies the next chunk into the ring.
    operation: Option<u64>,
}

/// The slot where a message meets its receive, the message's number there, the number of the slot it was sent on, and
/// the type of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedSlot<'a> {
    pub(crate) bank: &'a Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
    pub(crate) slot: u32,
    pub(crate) kind: ValueKind,
}

impl MatchedSlot<'_> {
    /// Returns the payload word of a message in place that has the number of its slot and, above it, the type of its
    /// values.
    pub(crate) fn slot_and_kind(self) -> u64 {
        u64::from(self.kind.bits()) << 32 | u64::from(self.slot)
    }

    /// Announces to the receiver how many chunks of the message are in the ring.
    #[inline]
    pub(crate) fn announce(self, span: RingSpan, chunks: u32) -> Result<(), Refused> {
        let MatchedSlot { bank, index, number, slot, kind } = self;
        let [ring, len, place] = span.words();
        let payload = [ring, len, u64::from(slot), place, u64::from(kind.bits())];
        bank.write_data(index, encoding::staged_data(number, chunks), &payload)
    }
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FillResult {
    /// The whole message was announced to the receiver.
    Over,
    /// The message waits for the peer or the fabric. `moved`: true if this call has made progress before.
    Waits { moved: bool },
}

impl PipelinedSend {
    pub(crate) fn new(ring: HeldRing) -> PipelinedSend {
        let span = ring.span;
        PipelinedSend { ring, span, staged: 0, announced: 0, operation: None }
    }

    /// Fills the ring while there is room, and announces the chunks to the receiver. `copy` starts to copy a part of
    /// the message to an address. The send is over when all chunks are announced, because the receiver takes them from
    /// the ring and no longer needs the sender's buffer.
    #[inline]
    pub(crate) fn run(
        &mut self,
        worker: &Worker,
        at: MatchedSlot<'_>,
        copy: impl Fn((u64, u64), GlobalAddress) -> Result<Started, Cause>,
    ) -> Result<FillResult, Cause> {
        let MatchedSlot { bank, index, number, .. } = at;
        let chunks = self.span.chunking.chunks();
        let mut moved = false;
        loop {
            if self.has_unannounced() {
                match at.announce(self.span, self.staged) {
                    Ok(()) => self.announced = self.staged,
                    Err(Refused::Never(cause)) => return Err(*cause),
                    Err(_) => return Ok(FillResult::Waits { moved }),
                }
            }
            if self.is_over() {
                self.ring.set_unconsumed(Unconsumed::new(bank, index, number, chunks));
                return Ok(FillResult::Over);
            }
            if !self.fill(worker, bank.taken(index, number, chunks), &copy)? {
                return Ok(FillResult::Waits { moved });
            }
            moved = true;
        }
    }

    /// Returns true if the ring holds chunks that were not announced yet.
    fn has_unannounced(&self) -> bool {
        self.announced < self.staged
    }

    /// Returns true if the whole message was announced.
    fn is_over(&self) -> bool {
        self.announced == self.span.chunking.chunks()
    }

    /// Returns true if a step would make progress, given how many chunks the receiver has taken.
    pub(crate) fn can_step(&self, taken: u32) -> bool {
        self.operation.is_none() && (self.has_room(taken) || self.has_unannounced() || self.is_over())
    }

    /// Returns true if a chunk is being copied into the ring.
    pub(crate) fn is_copying(&self) -> bool {
        self.operation.is_some()
    }

    fn has_room(&self, taken: u32) -> bool {
        self.staged < self.span.chunking.chunks() && self.staged.saturating_sub(taken) < self.span.room()
    }

    /// Copies one more chunk into the ring. Returns false if there is no room, or the copy is not finished.
    #[inline]
    fn fill(
        &mut self,
        worker: &Worker,
        taken: u32,
        copy: impl Fn((u64, u64), GlobalAddress) -> Result<Started, Cause>,
    ) -> Result<bool, Cause> {
        if let Some(operation) = self.operation {
            let Some(finished) = worker.take_outcome(operation) else { return Ok(false) };
            finished?;
            self.chunk_finished();
            return Ok(true);
        }
        if !self.has_room(taken) {
            return Ok(false);
        }
        match copy(self.span.chunking.part(self.staged), self.span.place(self.staged))? {
            Started::Done(_) => self.chunk_finished(),
            Started::InFlight(operation) => self.operation = Some(operation),
            Started::Later => return Ok(false),
        }
        Ok(self.operation.is_none())
    }

    fn chunk_finished(&mut self) {
        self.operation = None;
        self.staged += 1;
    }
}
