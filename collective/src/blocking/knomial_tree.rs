//! A k-nomial tree over places: each place has up to seven children a level, place 0 is the root, and the subtree of
//! a place is the places that follow it.
//!
//! The tree is wide rather than deep. A member sends to seven others without waiting for any of them, but each level
//! costs one message latency, and a context switch where ranks share processors.

use crate::communicator::RADIX;

/// The tree of `size` places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnomialTree {
    pub(crate) size: usize,
}

impl KnomialTree {
    /// Returns the most places that the subtree of a place can have; for the root, at least the number of all places.
    fn span(self, place: usize) -> usize {
        let mut span = 1;
        while span < self.size && place.is_multiple_of(span * RADIX) {
            span *= RADIX;
        }
        span
    }

    /// Returns the parent of a place; None for the root.
    pub(crate) fn parent(self, place: usize) -> Option<usize> {
        (place > 0).then(|| place - place % (self.span(place) * RADIX))
    }

    /// Returns the children of a place, nearest first.
    pub(crate) fn children(self, place: usize) -> impl DoubleEndedIterator<Item = usize> {
        let (size, levels) = (self.size, self.span(place).ilog(RADIX));
        (0..levels)
            .flat_map(move |level| (1..RADIX).map(move |times| place + times * RADIX.pow(level)))
            .filter(move |&child| child < size)
    }

    /// Returns the number of places in the subtree of a place, itself included.
    pub(crate) fn below(self, place: usize) -> usize {
        self.span(place).min(self.size - place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_one_parent_and_the_parts_fit_together() {
        for size in (1..140).chain([511, 512, 513, 1000]) {
            let tree = KnomialTree { size };
            let mut parents = vec![0; size];
            for place in 0..size {
                let mut next = place + 1;
                for child in tree.children(place) {
                    assert_eq!((child, tree.parent(child)), (next, Some(place)), "{size}");
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
