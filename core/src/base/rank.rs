//! The number of a process, or thread, in a job.

use std::fmt;

/// One of the processes, or threads, of a job: `0 .. job.size()`, below [`Rank::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rank(pub u32);

impl Rank {
    /// A number that no rank has. A global address has 24 bits for the rank; this number stands for all ranks that do
    /// not fit.
    pub const MAX: Rank = Rank((1 << 24) - 1);

    /// Returns the rank with this number; [`Rank::MAX`] if there can be none.
    pub fn of_index(index: usize) -> Rank {
        u32::try_from(index).map_or(Rank::MAX, Rank)
    }

    /// Returns the number as an index into a table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns all ranks of a job of `size` ranks, in order.
    pub fn all(size: usize) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator + Clone {
        (0..size as u32).map(Rank)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Allows `job.rank() == 0`.
impl PartialEq<u32> for Rank {
    fn eq(&self, number: &u32) -> bool {
        self.0 == *number
    }
}

impl From<u32> for Rank {
    fn from(number: u32) -> Rank {
        Rank(number)
    }
}
