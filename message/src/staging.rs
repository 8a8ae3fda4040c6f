//! A message on its way through a ring, as its sender sees it.

use super::berth::Berth;
use super::page::{Block, Page};
use super::ring::{Held, Untaken};
use super::words;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Launched, Machine};
use tasuki_core::fabric::Refused;
use tasuki_core::segment::GlobalAddress;

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
}

/// Where a message meets its receive: there it has this number; and the slot that it was sent on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting<'a> {
    pub(crate) page: &'a Arc<Page>,
    pub(crate) block: Block,
    pub(crate) number: u32,
    pub(crate) slot: u32,
}

impl Meeting<'_> {
    /// Tells the receiver how many chunks of the message lie in the ring.
    #[inline]
    pub(crate) fn tell(self, berth: Berth, chunks: u32) -> Result<(), Refused> {
        let Meeting { page, block, number, slot } = self;
        let [ring, len, place] = berth.words();
        let payload = [ring, len, u64::from(slot), place];
        page.write_data(block, words::staged_data(number, chunks), &payload)
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// The receiver knows of all of it.
    Over,
    /// Something must happen elsewhere first; whether anything was done before.
    Waits { moved: bool },
}

impl Staging {
    pub(crate) fn new(ring: Held) -> Staging {
        let berth = ring.berth;
        Staging { ring, berth, staged: 0, told: 0, operation: None }
    }

    /// Fills the ring as far as there is room, by `copy`, which starts to copy a part of the message there, and tells
    /// the receiver. The message is over when the receiver knows of all of it: what lies in the ring is there for it,
    /// whatever becomes of the sender's buffer.
    #[inline]
    pub(crate) fn run(
        &mut self,
        machine: &Machine,
        at: Meeting<'_>,
        copy: impl Fn((u64, u64), GlobalAddress) -> Result<Launched, Cause>,
    ) -> Result<Filled, Cause> {
        let Meeting { page, block, number, .. } = at;
        let chunks = self.berth.cut.chunks();
        let mut moved = false;
        loop {
            if self.has_news() {
                match at.tell(self.berth, self.staged) {
                    Ok(()) => self.told = self.staged,
                    Err(Refused::Never(cause)) => return Err(*cause),
                    Err(_) => return Ok(Filled::Waits { moved }),
                }
            }
            if self.is_over() {
                self.ring.leave(Untaken::new(page, block, number, chunks));
                return Ok(Filled::Over);
            }
            if !self.fill(machine, page.taken(block, number, chunks), &copy)? {
                return Ok(Filled::Waits { moved });
            }
            moved = true;
        }
    }

    /// Whether the receiver does not know of all chunks that lie there.
    fn has_news(&self) -> bool {
        self.told < self.staged
    }

    /// Whether the receiver knows of the whole message.
    fn is_over(&self) -> bool {
        self.told == self.berth.cut.chunks()
    }

    /// Whether something can be done, if the receiver has taken so many chunks.
    pub(crate) fn can_step(&self, taken: u32) -> bool {
        self.operation.is_none() && (self.has_room(taken) || self.has_news() || self.is_over())
    }

    /// Whether a chunk is on its way into the ring.
    pub(crate) fn is_copying(&self) -> bool {
        self.operation.is_some()
    }

    fn has_room(&self, taken: u32) -> bool {
        self.staged < self.berth.cut.chunks() && self.staged.saturating_sub(taken) < self.berth.room()
    }

    /// Brings one more chunk into the ring. False if there is no room for it, or it is still on its way.
    #[inline]
    fn fill(
        &mut self,
        machine: &Machine,
        taken: u32,
        copy: impl Fn((u64, u64), GlobalAddress) -> Result<Launched, Cause>,
    ) -> Result<bool, Cause> {
        if let Some(operation) = self.operation {
            let Some(landed) = machine.landed(operation) else { return Ok(false) };
            landed?;
            self.landed();
            return Ok(true);
        }
        if !self.has_room(taken) {
            return Ok(false);
        }
        match copy(self.berth.cut.part(self.staged), self.berth.place(self.staged))? {
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
