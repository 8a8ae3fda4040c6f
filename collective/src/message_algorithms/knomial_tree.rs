//! A k-nomial tree over places: each place has up to k - 1 children a level, place 0 is the root, and the subtree of a
//! place is the places that follow it.
//!
//! The tree is wide rather than deep. A member sends to its children without waiting for any of them, but each level
//! costs one message latency, and a context switch where ranks share processors.

use super::RADIX;
use super::ordered_fold::GROUP;

/// The tree of `size` places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnomialTree {
    size: usize,
    radix: usize,
}

impl KnomialTree {
    /// Makes a tree for data that are only moved.
    pub(super) fn wide(size: usize) -> KnomialTree {
        KnomialTree { size, radix: RADIX }
    }

    /// Makes the tree along which values are combined. A parent that combines its own values with those of its
    /// children, nearest first, keeps the [order of combining](super::ordered_fold).
    pub(super) fn combining(size: usize) -> KnomialTree {
        KnomialTree { size, radix: GROUP }
    }

    /// Returns the most places that the subtree of a place can have; for the root, at least the number of all places.
    fn span(self, place: usize) -> usize {
        let mut span = 1;
        while span < self.size && place.is_multiple_of(span * self.radix) {
            span *= self.radix;
        }
        span
    }

    /// Returns the parent of a place; None for the root.
    pub(crate) fn parent(self, place: usize) -> Option<usize> {
        (place > 0).then(|| place - place % (self.span(place) * self.radix))
    }

    /// Returns the children of a place, nearest first.
    pub(crate) fn children(self, place: usize) -> impl DoubleEndedIterator<Item = usize> + Send {
        let (KnomialTree { size, radix }, levels) = (self, self.span(place).ilog(self.radix));
        (0..levels)
            .flat_map(move |level| (1..radix).map(move |times| place + times * radix.pow(level)))
            .filter(move |&child| child < size)
    }

    /// Returns the number of places in the subtree of a place, itself included.
    pub(crate) fn below(self, place: usize) -> usize {
        self.span(place).min(self.size - place)
    }

    /// Returns the number of places between a place and the root, the root included.
    pub(crate) fn depth(self, place: usize) -> usize {
        std::iter::successors(self.parent(place), |&place| self.parent(place)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_one_parent_and_the_parts_fit_together() {
        let sizes = (1..140).chain([511, 512, 513, 1000, 1025]);
        for tree in sizes.flat_map(|size| [KnomialTree::wide(size), KnomialTree::combining(size)]) {
            let size = tree.size;
            let mut parents = vec![0; size];
            for place in 0..size {
                let mut next = place + 1;
                for child in tree.children(place) {
                    assert_eq!((child, tree.parent(child)), (next, Some(place)), "{size}");
                    assert_eq!(tree.depth(child), tree.depth(place) + 1);
                    parents[child] += 1;
                    next += tree.below(child);
                }
                assert_eq!(next, place + tree.below(place), "{size}: {place}");
            }
            assert_eq!((parents[0], tree.parent(0), tree.below(0)), (0, None, size));
            assert!(parents[1..].iter().all(|&count| count == 1));
        }
    }
}
