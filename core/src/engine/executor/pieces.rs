//! The pieces of a call: long values, in its first buffer, are cut into pieces that pass one after the other, each by
//! the same steps. So the memory that the members need for staging does not grow with the values.

use std::ops::Range;

/// The lengths of the pieces of a call. They differ by at most one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceLengths {
    /// Number of pieces.
    pub count: usize,
    /// The first so many pieces have `bytes` bytes; the others have one value less.
    pub longer: usize,
    /// Bytes of the first piece.
    pub bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl PieceLengths {
    /// Number of different lengths.
    #[inline(always)]
    pub(super) fn lengths(&self) -> usize {
        1 + usize::from(self.longer < self.count)
    }

    /// Returns the bytes of a piece.
    pub(super) fn range(&self, piece: usize) -> Range<usize> {
        let shorter_before = piece.saturating_sub(self.longer);
        let from = piece * self.bytes - shorter_before * self.value_bytes;
        let missing = if piece < self.longer { 0 } else { self.value_bytes };
        from..from + self.bytes - missing
    }
}
