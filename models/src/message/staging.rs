//! A message on its way through a ring, as its sender sees it.

use super::place::Place;
use super::ring::{self, CHUNK, CHUNKS, Ring};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Launched, Machine};
use tasuki_core::segment::GlobalAddress;

/// How far the ring was filled.
#[derive(Debug)]
pub(crate) struct Staging {
    ring: Arc<Ring>,
    /// Chunks that lie in the ring, or did.
    staged: u32,
    /// Chunks that the receiver was told of.
    told: u32,
    /// The chunk that is on its way into the ring.
    operation: Option<u64>,
}

impl Staging {
    pub(crate) fn new(ring: Arc<Ring>) -> Staging {
        Staging { ring, staged: 0, told: 0, operation: None }
    }

    /// Where the ring begins.
    pub(crate) fn ring(&self) -> GlobalAddress {
        self.ring.at()
    }

    /// Chunks that lie in the ring, or did.
    pub(crate) fn staged(&self) -> u32 {
        self.staged
    }

    /// Whether the receiver does not know of all chunks.
    pub(crate) fn has_news(&self) -> bool {
        self.told < self.staged
    }

    /// It knows of all.
    pub(crate) fn told(&mut self) {
        self.told = self.staged;
    }

    /// Whether something can be done, of `chunks` chunks of which the receiver has taken some.
    pub(crate) fn can_step(&self, taken: u32, chunks: u32) -> bool {
        self.operation.is_none() && (taken == chunks || self.has_room(taken, chunks) || self.has_news())
    }

    fn has_room(&self, taken: u32, chunks: u32) -> bool {
        self.staged < chunks && self.staged - taken < CHUNKS
    }

    /// Brings one more chunk into the ring. False if there is no room for it, or it is still on its way.
    pub(crate) fn fill(
        &mut self,
        machine: &Machine,
        from: &Place,
        taken: u32,
        chunks: u32,
    ) -> Result<bool, Cause> {
        if let Some(operation) = self.operation {
            let Some(landed) = machine.landed(operation) else { return Ok(false) };
            landed?;
            self.landed();
            return Ok(true);
        }
        if !self.has_room(taken, chunks) {
            return Ok(false);
        }
        let start = u64::from(self.staged) * CHUNK;
        let len = CHUNK.min(from.len() - start);
        match from.launch(machine, start, len, ring::place(self.ring.at(), self.staged))? {
            Launched::Done(_) => self.landed(),
            Launched::UnderWay(operation) => self.operation = Some(operation),
            Launched::Later => return Ok(false),
        }
        Ok(self.operation.is_none())
    }

    fn landed(&mut self) {
        self.operation = None;
        self.staged += 1;
    }
}
