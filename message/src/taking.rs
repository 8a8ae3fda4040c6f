//! How much of a message its receiver has taken out of the sender's ring.

use super::berth::Berth;
use super::page::{Block, Page};
use super::words::{self, Data};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Caching, Launched};
use tasuki_core::segment::GlobalAddress;

/// A receive, by the number of its message and the version of its posting, and how much of the message was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking {
    pub(crate) number: u32,
    pub(crate) version: u32,
    /// Chunks copied out of the sender's ring, and of which it was told.
    pub(crate) taken: u32,
    pub(crate) told: u32,
}

impl Taking {
    /// The next on a slot.
    pub(crate) fn next(page: &Page, block: Block) -> Taking {
        Taking { number: page.next_received(block), version: page.next_version(block), taken: 0, told: 0 }
    }

    /// Whether the sender is to be told how many chunks were taken.
    #[inline]
    pub(crate) fn is_owed(self, berth: Berth) -> bool {
        berth.owes(self.taken, self.told)
    }

    /// Takes the chunks that lie there, of which there are `chunks` or more, until the sender is owed a word: by
    /// `copy`, which starts to copy from a place in the ring to a part of the receiver's memory.
    #[inline]
    pub(crate) fn take(
        &mut self,
        (page, block): (&Page, Block),
        berth: Berth,
        mut chunks: u32,
        copy: impl Fn(GlobalAddress, (u64, u64), Caching) -> Result<Launched, Cause>,
    ) -> Result<Launched, Cause> {
        let caching = Caching::of(berth.cut.len());
        while self.taken < chunks && !self.is_owed(berth) {
            match copy(berth.place(self.taken), berth.cut.part(self.taken), caching)? {
                Launched::Done(_) => self.taken += 1,
                not_yet => return Ok(not_yet),
            }
            if let Data::Staged { chunks: now } = words::read_data(page.data(block), self.number) {
                chunks = now;
            }
        }
        Ok(Launched::Done(0))
    }
}
