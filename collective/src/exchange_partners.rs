//! The blocks that one member exchanges with each of its partners, as that member knows them.

use std::ops::Range;

/// A member that this member exchanges blocks with, perhaps itself, and those blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Partner {
    /// Its place.
    pub(crate) member: usize,
    /// The numbers of the blocks that this member sends to the partner, in the order of sending.
    pub(crate) gives: Vec<usize>,
    /// The numbers of the blocks that this member receives from the partner, in the order of sending.
    pub(crate) gets: Vec<usize>,
}

/// The blocks that a member sends and receives: their ranges of values, and its partners.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExchangeBlocks {
    pub(crate) gives: Vec<Range<usize>>,
    pub(crate) gets: Vec<Range<usize>>,
    pub(crate) partners: Vec<Partner>,
}

/// Returns the ranges of consecutive blocks that have `counts` values each.
pub(crate) fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let one = |end: &mut usize, &count: &usize| {
        let begin = *end;
        *end += count;
        Some(begin..*end)
    };
    counts.iter().scan(0, one).collect()
}

impl ExchangeBlocks {
    /// Makes the blocks of a member, with the given number of values for each block.
    pub(crate) fn new(gives: &[usize], gets: &[usize], partners: Vec<Partner>) -> ExchangeBlocks {
        ExchangeBlocks { gives: ranges(gives), gets: ranges(gets), partners }
    }

    /// Returns the number of values that are received.
    pub(crate) fn all(&self) -> usize {
        self.gets.last().map_or(0, |last| last.end)
    }

    /// Returns the number of values of each block to a partner, and of each block from it.
    pub(crate) fn counts(&self, partner: &Partner) -> [Vec<usize>; 2] {
        let of = |ranges: &[Range<usize>], numbers: &[usize]| {
            numbers.iter().map(|&number| ranges[number].len()).collect()
        };
        [of(&self.gives, &partner.gives), of(&self.gets, &partner.gets)]
    }

    /// Copies the blocks that a member sends itself.
    pub(crate) fn keep<T: Copy>(&self, me: usize, values: &[T], all: &mut [T]) {
        for Partner { gives, gets, .. } in self.partners.iter().filter(|partner| partner.member == me) {
            for (&give, &get) in gives.iter().zip(gets) {
                all[self.gets[get].clone()].copy_from_slice(&values[self.gives[give].clone()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_behind_the_other() {
        assert_eq!(ranges(&[2, 0, 3]), [0..2, 2..2, 2..5]);
        let own = Partner { member: 1, gives: vec![0, 1], gets: vec![1, 0] };
        let blocks = ExchangeBlocks::new(&[1, 2], &[2, 1], vec![own]);
        let mut all = [0; 3];
        blocks.keep(1, &[7, 8, 9], &mut all);
        assert_eq!((all, blocks.all()), ([8, 9, 7], 3));
        assert_eq!(blocks.counts(&blocks.partners[0]), [[1, 2], [1, 2]]);
    }
}
