//! A message on its way through a ring, as its sender sees it.

use super::pace::{Pace, Stride};
use super::place::Entered;
use super::ring::{Berth, Held};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Launched, Machine};

/// How far the ring was filled.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) ring: Held,
    pub(crate) berth: Berth,
    /// Chunks that lie in the ring, or did.
    pub(crate) staged: u32,
    /// Chunks that the receiver was told of.
    told: u32,
    /// The chunk that is on its way into the ring.
    operation: Option<u64>,
    stride: Stride,
    /// What copying took so far, if that is to be told.
    took_ns: u64,
}

impl Staging {
    pub(crate) fn new(ring: Held, len: u64, pace: &Pace) -> Staging {
        let (berth, stride) = (ring.berth(len), pace.next(len));
        Staging { ring, berth, staged: 0, told: 0, operation: None, stride, took_ns: 0 }
    }

    /// Whether the receiver does not know of all chunks that lie there.
    pub(crate) fn has_news(&self) -> bool {
        self.told < self.staged
    }

    /// It knows of all that lie there.
    pub(crate) fn told(&mut self) {
        self.told = self.staged;
    }

    /// Whether the receiver knows of the whole message.
    pub(crate) fn is_over(&self) -> bool {
        self.told == self.berth.cut.chunks()
    }

    /// Whether something can be done, if the receiver has taken so many chunks.
    pub(crate) fn can_step(&self, taken: u32) -> bool {
        self.operation.is_none() && (self.has_room(taken) || self.has_news() || self.is_over())
    }

    fn has_room(&self, taken: u32) -> bool {
        self.staged < self.berth.cut.chunks() && self.staged - taken < self.berth.room()
    }

    /// Brings one more chunk into the ring. False if there is no room for it, or it is still on its way.
    pub(crate) fn fill(&mut self, machine: &Machine, from: &Entered, taken: u32) -> Result<bool, Cause> {
        if let Some(operation) = self.operation {
            let Some(landed) = machine.landed(operation) else { return Ok(false) };
            landed?;
            self.landed();
            return Ok(true);
        }
        if !self.has_room(taken) {
            return Ok(false);
        }
        match self.copy(machine, from)? {
            Launched::Done(_) => self.landed(),
            Launched::UnderWay(operation) => self.operation = Some(operation),
            Launched::Later => return Ok(false),
        }
        Ok(self.operation.is_none())
    }

    /// Begins to copy the next chunk.
    fn copy(&mut self, machine: &Machine, from: &Entered) -> Result<Launched, Cause> {
        let (part, place) = (self.berth.cut.part(self.staged), self.berth.place(self.staged));
        let now_ns = || if self.stride.timed { machine.host().now_ns() } else { 0 };
        let began_ns = now_ns();
        let launched = from.launch(machine, part, place, self.stride.caching);
        self.took_ns += now_ns() - began_ns;
        launched
    }

    /// The message has gone: what its copies took is told.
    pub(crate) fn tell(&self, pace: &Pace) {
        if self.stride.timed && self.took_ns > 0 {
            pace.took(self.stride.caching, self.berth.cut.len(), self.took_ns);
        }
    }

    fn landed(&mut self) {
        self.operation = None;
        self.staged += 1;
    }
}
