//! Global addresses: one 64-bit word for any byte of any rank's registered memory.

use super::layout::{PIECE, WINDOW};
use crate::base::Rank;
use std::fmt;

const OFFSET_BITS: u32 = WINDOW.trailing_zeros();

/// The address of a byte in a job: `rank:24 | offset:40`. Fits an atomic, may be sent to anyone; adding a byte
/// offset within one registration is legal. The word 0 is null: offset 0 of a rank's range is never used.
///
/// Source: ACP basic layer (global address); 24 bits of rank are fewer than the papers dream of, knowingly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct GlobalAddress(u64);

impl GlobalAddress {
    /// The address of nothing.
    pub const NULL: GlobalAddress = GlobalAddress(0);

    /// The byte at `offset` in the range of `rank`. An offset of 2^40 or more gives the null address; a rank that
    /// 24 bits cannot name gives an address of [`Rank::MAX`], which no job has: every access refuses both.
    #[inline]
    pub const fn new(rank: Rank, offset: u64) -> GlobalAddress {
        if offset >= WINDOW {
            return GlobalAddress::NULL;
        }
        let rank = if rank.0 < Rank::MAX.0 { rank } else { Rank::MAX };
        GlobalAddress((rank.0 as u64) << OFFSET_BITS | offset)
    }

    /// An address from its word, as it came from [`GlobalAddress::bits`]. Any word is safe to use: accesses check.
    #[inline]
    pub const fn from_bits(bits: u64) -> GlobalAddress {
        GlobalAddress(bits)
    }

    /// The address as a word.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whose memory it is.
    #[inline]
    pub const fn rank(self) -> Rank {
        Rank((self.0 >> OFFSET_BITS) as u32)
    }

    /// Where in that rank's range.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 & (WINDOW - 1)
    }

    /// Which piece of which rank it lies in: a number of its own for each piece of a job.
    #[inline]
    pub const fn piece(self) -> u64 {
        self.0 / PIECE
    }

    /// Whether it is the address of nothing.
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The byte `bytes` further on. Past the end of the rank's range it becomes null, which every access refuses.
    #[inline]
    #[must_use]
    pub const fn add(self, bytes: u64) -> GlobalAddress {
        if bytes < WINDOW && self.offset() + bytes < WINDOW {
            GlobalAddress(self.0 + bytes)
        } else {
            outside()
        }
    }
}

/// Cold, so that the sum is foreseen and whoever needs the address does not wait for the check.
#[cold]
const fn outside() -> GlobalAddress {
    GlobalAddress::NULL
}

impl fmt::Display for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() { f.write_str("null") } else { write!(f, "{}:{:#x}", self.rank(), self.offset()) }
    }
}

impl fmt::Debug for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_back_what_it_was_made_of() {
        let address = GlobalAddress::new(Rank::MAX, WINDOW - 1);
        assert_eq!((address.rank(), address.offset()), (Rank::MAX, WINDOW - 1));
        assert_eq!(GlobalAddress::from_bits(address.bits()), address);
    }

    #[test]
    fn a_rank_that_cannot_be_named_is_nobody_else() {
        for rank in [1 << 24, (1 << 24) + 1, u32::MAX] {
            assert_eq!(GlobalAddress::new(Rank(rank), 8), GlobalAddress::new(Rank::MAX, 8));
        }
        assert!(GlobalAddress::new(Rank(0), WINDOW + 8).is_null());
    }

    #[test]
    fn an_offset_never_reaches_the_next_rank() {
        assert!(GlobalAddress::new(Rank(1), WINDOW - 8).add(8).is_null());
        assert!(GlobalAddress::new(Rank(1), 8).add(u64::MAX).is_null());
        assert_eq!(GlobalAddress::new(Rank(1), 8).add(8), GlobalAddress::new(Rank(1), 16));
    }
}
