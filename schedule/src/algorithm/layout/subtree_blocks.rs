//! The blocks of subtrees of a binomial tree, stored in the order of tree positions, for gather and scatter.

use crate::algorithm::layout::tree::Tree;
use crate::shape::{DATA, Shape};
use crate::{BufferId, Location};

/// The binomial tree of a shape's ranks, rooted at its root, with the blocks of the ranks.
pub(crate) struct SubtreeBlocks<'s> {
    pub(crate) shape: &'s Shape,
    /// The buffer in which ranks other than the root hold the blocks of their subtree, their own first.
    pub(crate) row: BufferId,
}

impl SubtreeBlocks<'_> {
    /// The position of a rank in the tree.
    pub(crate) fn place(&self, rank: usize) -> usize {
        (rank + self.shape.ranks - self.shape.root) % self.shape.ranks
    }

    /// The rank at a position.
    pub(crate) fn rank(&self, place: usize) -> usize {
        (place + self.shape.root) % self.shape.ranks
    }

    /// The parent of a rank.
    pub(crate) fn parent(&self, rank: usize) -> Option<usize> {
        Tree::BINOMIAL.parent(self.place(rank)).map(|place| self.rank(place))
    }

    /// The children of a rank, the one with the largest subtree first.
    pub(crate) fn children(&self, rank: usize) -> Vec<usize> {
        let children = Tree::BINOMIAL.children(self.place(rank), self.shape.ranks);
        children.into_iter().map(|place| self.rank(place)).collect()
    }

    /// Number of ranks in the subtree of a rank.
    pub(crate) fn size(&self, rank: usize) -> usize {
        match self.place(rank) {
            0 => self.shape.ranks,
            place => (1 << place.trailing_zeros()).min(self.shape.ranks - place),
        }
    }

    /// Bytes of the blocks of `places` positions, from that of `rank` on.
    pub(crate) fn bytes(&self, rank: usize, places: usize) -> u64 {
        let first = self.place(rank);
        if let crate::shape::Counts::Equal(bytes) = self.shape.counts {
            return bytes * places as u64;
        }
        (first..first + places).map(|place| self.shape.bytes_of(self.rank(place))).sum()
    }

    /// Size in bytes of a rank's row.
    pub(crate) fn row_bytes(&self, rank: usize) -> u64 {
        if rank == self.shape.root { 0 } else { self.bytes(rank, self.size(rank)) }
    }

    /// Divides the blocks of a child's subtree into pieces that are contiguous both at the child and at its parent.
    /// `own` is the buffer of the child's first block; the others are in its row. Each piece is (location at the
    /// parent, location at the child, bytes). Returns at least one piece.
    pub(crate) fn pieces(&self, child: usize, own: BufferId) -> Vec<(Location, Location, u64)> {
        let parent = self.parent(child).unwrap_or(self.shape.root);
        let (first, size) = (self.place(child), self.size(child));
        let mut pieces: Vec<(Location, Location, u64)> = Vec::new();
        for place in first..first + size {
            let rank = self.rank(place);
            let above = if parent == self.shape.root {
                DATA.on(parent, self.shape.offset_of(rank))
            } else {
                self.row.on(parent, self.bytes(parent, place - self.place(parent)))
            };
            let buffer = if place == first { own } else { self.row };
            let below = buffer.on(child, self.bytes(child, place - first));
            let bytes = self.shape.bytes_of(rank);
            match pieces.last_mut() {
                Some((up, down, len)) if follows(up, *len, &above) && follows(down, *len, &below) => {
                    *len += bytes;
                }
                _ => pieces.push((above, below, bytes)),
            }
        }
        pieces
    }
}

/// Returns true if `next` follows directly after `len` bytes at `one`.
fn follows(one: &Location, len: u64, next: &Location) -> bool {
    (one.rank, one.buffer, one.offset + len) == (next.rank, next.buffer, next.offset)
}
