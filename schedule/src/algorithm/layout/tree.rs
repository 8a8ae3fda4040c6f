//! Trees over positions 0 to size - 1; position 0 is the root.

/// The shape of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// The child of each position is the next one.
    Chain,
    /// The children of p are 2p + 1 and 2p + 2.
    Binary,
    /// In each round, every position that has the data sends to one more child, at twice the distance.
    Binomial,
}

impl Tree {
    /// The parent of a position.
    pub(crate) fn parent(self, place: usize) -> Option<usize> {
        let place = std::num::NonZero::new(place)?;
        Some(match self {
            Tree::Chain => place.get() - 1,
            Tree::Binary => (place.get() - 1) / 2,
            Tree::Binomial => place.get() - (1 << place.trailing_zeros()),
        })
    }

    /// The children of a position in a tree of `size` positions, the one with the largest subtree first.
    pub(crate) fn children(self, place: usize, size: usize) -> Vec<usize> {
        let candidates: Vec<usize> = match self {
            Tree::Chain => vec![place + 1],
            Tree::Binary => vec![2 * place + 1, 2 * place + 2],
            Tree::Binomial => {
                let bits =
                    if place == 0 { usize::BITS - size.leading_zeros() } else { place.trailing_zeros() };
                (0..bits).rev().map(|bit| place + (1 << bit)).collect()
            }
        };
        candidates.into_iter().filter(|&child| child < size).collect()
    }
}
