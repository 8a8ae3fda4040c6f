//! Blocks of a subtree, one behind the other in the order of places in a binomial tree, as gathers and scatters pass
//! them on.

use crate::algorithm::layout::tree::Tree;
use crate::shape::{DATA, Shape};
use crate::{BufferId, Location};

/// The binomial tree of a shape's ranks, from its root on around the end, with its blocks.
pub(crate) struct SubtreeBlocks<'s> {
    pub(crate) shape: &'s Shape,
    /// Where ranks but the root have the blocks of their subtree, their own first.
    pub(crate) row: BufferId,
}

impl SubtreeBlocks<'_> {
    /// The place of a rank in the tree.
    pub(crate) fn place(&self, rank: usize) -> usize {
        (rank + self.shape.ranks - self.shape.root) % self.shape.ranks
    }

    /// Which rank has a place.
    pub(crate) fn rank(&self, place: usize) -> usize {
        (place + self.shape.root) % self.shape.ranks
    }

    /// The rank above.
    pub(crate) fn parent(&self, rank: usize) -> Option<usize> {
        Tree::Binomial.parent(self.place(rank)).map(|place| self.rank(place))
    }

    /// The ranks below, the one with most below it first.
    pub(crate) fn children(&self, rank: usize) -> Vec<usize> {
        let children = Tree::Binomial.children(self.place(rank), self.shape.ranks);
        children.into_iter().map(|place| self.rank(place)).collect()
    }

    /// CombineWith many ranks a subtree has.
    pub(crate) fn size(&self, rank: usize) -> usize {
        match self.place(rank) {
            0 => self.shape.ranks,
            place => (1 << place.trailing_zeros()).min(self.shape.ranks - place),
        }
    }

    /// Bytes of the blocks of so many places from that of a rank on.
    pub(crate) fn bytes(&self, rank: usize, places: usize) -> u64 {
        let first = self.place(rank);
        if let crate::shape::Counts::Equal(bytes) = self.shape.counts {
            return bytes * places as u64;
        }
        (first..first + places).map(|place| self.shape.bytes_of(self.rank(place))).sum()
    }

    /// Bytes of a rank's row.
    pub(crate) fn row_bytes(&self, rank: usize) -> u64 {
        if rank == self.shape.root { 0 } else { self.bytes(rank, self.size(rank)) }
    }

    /// The blocks of a child's subtree in pieces that lie in a row both at the child, as `own` says of its first block
    /// and the rest, and at its parent: place at the parent, place at the child, bytes. At least one.
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

/// Whether bytes at `next` lie right behind so many at `one`.
fn follows(one: &Location, len: u64, next: &Location) -> bool {
    (one.rank, one.buffer, one.offset + len) == (next.rank, next.buffer, next.offset)
}
