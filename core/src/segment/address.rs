//! Global addresses: a 64-bit word that names any byte of any rank's registered memory.

use super::layout::{PIECE, RANGE_BYTES};
use crate::base::Rank;
use std::fmt;

const OFFSET_BITS: u32 = RANGE_BYTES.trailing_zeros();

/// The address of a byte in a job: `rank:24 | offset:40`. It fits into an atomic, and every rank can use it. Adding a
/// number of bytes is legal within one registration. The word 0 is null: offset 0 of a rank's range is never used.
///
/// Source: ACP basic layer (global address). Its papers foresee more ranks than 24 bits can name; 24 are a deliberate
/// choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct GlobalAddress(u64);

impl GlobalAddress {
    /// The null address, which names no byte.
    pub const NULL: GlobalAddress = GlobalAddress(0);

    /// Returns the address of the byte at `offset` in the range of `rank`. An offset of 2^40 or more gives the null
    /// address. A rank that does not fit into 24 bits gives an address of [`Rank::MAX`], which no job has. Every access
    /// refuses both.
    #[inline]
    pub const fn new(rank: Rank, offset: u64) -> GlobalAddress {
        if offset >= RANGE_BYTES {
            return GlobalAddress::NULL;
        }
        let rank = if rank.0 < Rank::MAX.0 { rank } else { Rank::MAX };
        GlobalAddress((rank.0 as u64) << OFFSET_BITS | offset)
    }

    /// Makes an address from a word that [`GlobalAddress::bits`] returned. Any word is safe to use: accesses check it.
    #[inline]
    pub const fn from_bits(bits: u64) -> GlobalAddress {
        GlobalAddress(bits)
    }

    /// Returns the address as a word.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the rank that owns the byte.
    #[inline]
    pub const fn rank(self) -> Rank {
        Rank((self.0 >> OFFSET_BITS) as usize)
    }

    /// Returns the offset in that rank's range.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 & (RANGE_BYTES - 1)
    }

    /// Returns the number of the piece that holds the byte. No two pieces of a job have the same
    /// number.
    #[inline]
    pub const fn piece(self) -> u64 {
        self.0 / PIECE
    }

    /// Returns true if this is the null address.
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Returns the address of the byte that is `bytes` further on. Past the end of the rank's range, and from the null
    /// address on, it is null, which every access refuses.
    #[inline]
    #[must_use]
    pub const fn add(self, bytes: u64) -> GlobalAddress {
        if bytes < RANGE_BYTES && self.offset() + bytes < RANGE_BYTES && !self.is_null() {
            GlobalAddress(self.0 + bytes)
        } else {
            outside()
        }
    }
}

/// Cold, so that the compiler emits a predicted branch: code that uses the sum does not wait for the check.
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
    fn an_address_returns_its_rank_and_offset() {
        let address = GlobalAddress::new(Rank::MAX, RANGE_BYTES - 1);
        assert_eq!((address.rank(), address.offset()), (Rank::MAX, RANGE_BYTES - 1));
        assert_eq!(GlobalAddress::from_bits(address.bits()), address);
    }

    #[test]
    fn ranks_beyond_24_bits_become_rank_max() {
        for rank in [1 << 24, (1 << 24) + 1, 1 << 32, (1 << 40) + 1, usize::MAX] {
            assert_eq!(GlobalAddress::new(Rank(rank), 8), GlobalAddress::new(Rank::MAX, 8));
        }
        assert!(GlobalAddress::new(Rank(0), RANGE_BYTES + 8).is_null());
    }

    #[test]
    fn adding_bytes_past_the_range_gives_null() {
        assert!(GlobalAddress::new(Rank(1), RANGE_BYTES - 8).add(8).is_null());
        assert!(GlobalAddress::new(Rank(1), 8).add(u64::MAX).is_null());
        assert_eq!(GlobalAddress::new(Rank(1), 8).add(8), GlobalAddress::new(Rank(1), 16));
    }
}
