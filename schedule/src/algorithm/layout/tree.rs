//! Trees over places 0 to size - 1, of which place 0 is the root.

/// A tree, by where the parent and the children of a place are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tree {
    /// Each place has the next one as its child.
    Chain,
    /// Two children: 2p + 1 and 2p + 2.
    Binary,
    /// In each round every place that has the data has one more child, twice as far away.
    Binomial,
}

impl Tree {
    /// Whose child a place is.
    pub(crate) fn parent(self, place: usize) -> Option<usize> {
        let place = std::num::NonZero::new(place)?;
        Some(match self {
            Tree::Chain => place.get() - 1,
            Tree::Binary => (place.get() - 1) / 2,
            Tree::Binomial => place.get() - (1 << place.trailing_zeros()),
        })
    }

    /// The children of a place among so many, the one with most places below it first.
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
