//! The names of queues.

use crate::base::Rank;
use crate::segment::layout::GRANULE;
use crate::segment::{GlobalAddress, layout};

const _: () = assert!(layout::LOCAL.start.is_multiple_of(GRANULE));

/// The name of a queue of any rank, in a word that may be sent to other ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct QueueName(u64);

impl QueueName {
    /// Largest generation: all bits below the address.
    pub(super) const GENERATIONS: u32 = GRANULE as u32 - 1;

    /// Queues begin at granules, so the low bits of the address are free for the generation.
    pub(super) fn new(at: GlobalAddress, generation: u32) -> QueueName {
        debug_assert!(at.bits().is_multiple_of(GRANULE) && generation <= QueueName::GENERATIONS);
        QueueName(at.bits() | u64::from(generation))
    }

    /// The queue at the same offset, with the same generation, on another rank.
    #[inline]
    pub(in crate::engine) fn on(self, rank: Rank) -> QueueName {
        QueueName::new(GlobalAddress::new(rank, self.address().offset()), self.generation())
    }

    /// Where it begins.
    pub fn address(self) -> GlobalAddress {
        GlobalAddress::from_bits(self.0 / GRANULE * GRANULE)
    }

    pub(super) fn generation(self) -> u32 {
        self.0 as u32 & QueueName::GENERATIONS
    }
}
