//! A message on its way through a ring, as its sender sees it.

use crate::protocol::ring::{HeldRing, Unconsumed};
use crate::protocol::ring_span::RingSpan;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::Refused;
use tasuki_core::segment::GlobalAddress;

/// How far the ring was filled.
#[derive(Debug)]
pub(crate) struct PipelinedSend {
    pub(crate) ring: HeldRing,
    pub(crate) span: RingSpan,
    /// Chunks that lie in the ring, or did.
    pub(crate) staged: u32,
    /// Chunks that the receiver was told of.
    announced: u32,
    /// The chunk that is on its way into the ring.
    operation: Option<u64>,
}

/// Where a message meets its receive: there it has this number; and the slot that it was sent on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedSlot<'a> {
    pub(crate) bank: &'a Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
    pub(crate) slot: u32,
}

impl MatchedSlot<'_> {
    /// Tells the receiver how many chunks of the message lie in the ring.
    #[inline]
    pub(crate) fn announce(self, span: RingSpan, chunks: u32) -> Result<(), Refused> {
        let MatchedSlot { bank, index, number, slot } = self;
        let [ring, len, place] = span.words();
        let payload = [ring, len, u64::from(slot), place];
        bank.write_data(index, encoding::staged_data(number, chunks), &payload)
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FillResult {
    /// The receiver knows of all of it.
    Over,
    /// Something must happen elsewhere first; whether anything was done before.
    Waits { moved: bool },
}

impl PipelinedSend {
    pub(crate) fn new(ring: HeldRing) -> PipelinedSend {
        let span = ring.span;
        PipelinedSend { ring, span, staged: 0, announced: 0, operation: None }
    }

    /// Fills the ring as far as there is room, by `copy`, which starts to copy a part of the message there, and tells
    /// the receiver. The message is over when the receiver knows of all of it: what lies in the ring is there for it,
    /// whatever becomes of the sender's buffer.
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
                self.ring.leave(Unconsumed::new(bank, index, number, chunks));
                return Ok(FillResult::Over);
            }
            if !self.fill(worker, bank.taken(index, number, chunks), &copy)? {
                return Ok(FillResult::Waits { moved });
            }
            moved = true;
        }
    }

    /// Whether the receiver does not know of all chunks that lie there.
    fn has_unannounced(&self) -> bool {
        self.announced < self.staged
    }

    /// Whether the receiver knows of the whole message.
    fn is_over(&self) -> bool {
        self.announced == self.span.chunking.chunks()
    }

    /// Whether something can be done, if the receiver has taken so many chunks.
    pub(crate) fn can_step(&self, taken: u32) -> bool {
        self.operation.is_none() && (self.has_room(taken) || self.has_unannounced() || self.is_over())
    }

    /// Whether a chunk is on its way into the ring.
    pub(crate) fn is_copying(&self) -> bool {
        self.operation.is_some()
    }

    fn has_room(&self, taken: u32) -> bool {
        self.staged < self.span.chunking.chunks() && self.staged.saturating_sub(taken) < self.span.room()
    }

    /// Brings one more chunk into the ring. False if there is no room for it, or it is still on its way.
    #[inline]
    fn fill(
        &mut self,
        worker: &Worker,
        taken: u32,
        copy: impl Fn((u64, u64), GlobalAddress) -> Result<Started, Cause>,
    ) -> Result<bool, Cause> {
        if let Some(operation) = self.operation {
            let Some(finished) = worker.landed(operation) else { return Ok(false) };
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
