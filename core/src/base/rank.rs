//! The number of a process, or thread, in a job.

use bytemuck::{Pod, Zeroable};
use std::fmt;

/// One of the processes, or threads, of a job: `0 .. job.size()`, below [`Rank::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Rank(pub usize);

impl Rank {
    /// A number that no rank has. A global address has 24 bits for the rank; this number stands for all ranks that do
    /// not fit.
    pub const MAX: Rank = Rank((1 << 24) - 1);

    /// Returns the number as an index into a table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0
    }

    /// Returns the number as words that ranks share hold it, in at most 24 bits: [`Rank::MAX`] for all above.
    #[doc(hidden)]
    #[inline]
    pub const fn to_word(self) -> u32 {
        if self.0 < Rank::MAX.0 { self.0 as u32 } else { Rank::MAX.0 as u32 }
    }

    /// Returns the rank that a word holds.
    #[doc(hidden)]
    #[inline]
    pub const fn from_word(word: u32) -> Rank {
        Rank(word as usize)
    }

    /// Returns all ranks of a job of `size` ranks, in order.
    pub fn all(size: usize) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator + Clone {
        (0..size).map(Rank)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Allows `job.rank() == 0`.
impl PartialEq<usize> for Rank {
    fn eq(&self, number: &usize) -> bool {
        self.0 == *number
    }
}

impl From<usize> for Rank {
    fn from(number: usize) -> Rank {
        Rank(number)
    }
}
