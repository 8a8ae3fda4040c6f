//! Trees over positions 0 to size - 1; position 0 is the root.

use crate::combining_order::GROUP;

/// The shape of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// The child of each position is the next one.
    Chain,
    /// The children of p are 2p + 1 and 2p + 2.
    Binary,
    /// The parent of a position is the position without the last digit that is not zero, in the number system with
    /// this base. Each position has the positions of its subtree behind it.
    Knomial(usize),
}

impl Tree {
    /// In each round, every position that has the data sends to one more child, at twice the distance.
    pub(crate) const BINOMIAL: Tree = Tree::Knomial(2);
    /// Each position combines its children, the nearest first: values are then combined in the combining order.
    pub(crate) const GROUPS: Tree = Tree::Knomial(GROUP);

    /// The parent of a position.
    pub(crate) fn parent(self, place: usize) -> Option<usize> {
        let place = std::num::NonZero::new(place)?;
        Some(match self {
            Tree::Chain => place.get() - 1,
            Tree::Binary => (place.get() - 1) / 2,
            Tree::Knomial(base) => {
                let unit = unit(base, place.get());
                place.get() - place.get() / unit % base * unit
            }
        })
    }

    /// The children of a position in a tree of `size` positions, the one with the largest subtree first.
    pub(crate) fn children(self, place: usize, size: usize) -> Vec<usize> {
        let candidates: Vec<usize> = match self {
            Tree::Chain => vec![place + 1],
            Tree::Binary => vec![2 * place + 1, 2 * place + 2],
            Tree::Knomial(base) => {
                let end = if place == 0 { size } else { place + unit(base, place) };
                let units = units(base).take_while(|unit| place + unit < end.min(size));
                let nearest_first = units.flat_map(|unit| (1..base).map(move |digit| place + digit * unit));
                nearest_first.collect::<Vec<_>>().into_iter().rev().collect()
            }
        };
        candidates.into_iter().filter(|&child| child < size).collect()
    }

    /// The index of a position among the children of its parent, the nearest first, in a tree with a base.
    pub(crate) fn child_index(self, place: usize) -> usize {
        let Tree::Knomial(base) = self else { return 0 };
        let unit = unit(base, place);
        let level = units(base).take_while(|&smaller| smaller < unit).count();
        level * (base - 1) + place / unit % base - 1
    }

    /// The most children that a position of a tree of `size` positions has: those of position 0.
    pub(crate) fn children_max(self, size: usize) -> usize {
        self.children(0, size).len()
    }
}

/// The powers of a base.
fn units(base: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1_usize), move |unit| unit.checked_mul(base))
}

/// The largest power of a base that divides a position other than 0: its subtree has so many positions.
fn unit(base: usize, place: usize) -> usize {
    units(base).take_while(|&unit| place.is_multiple_of(unit)).last().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_lie_behind_their_roots_and_children_know_their_index() {
        for (base, size) in [(2, 1), (2, 13), (2, 16), (3, 30), (32, 33), (32, 1100)] {
            let tree = Tree::Knomial(base);
            let mut seen = 1;
            for place in 0..size {
                let children = tree.children(place, size);
                assert!(children.len() <= tree.children_max(size) && children.is_sorted_by(|a, b| a > b));
                for (index, &child) in children.iter().rev().enumerate() {
                    assert_eq!((tree.parent(child), tree.child_index(child)), (Some(place), index));
                }
                seen += children.len();
            }
            assert_eq!((seen, tree.parent(0)), (size, None), "base {base}");
        }
    }
}
