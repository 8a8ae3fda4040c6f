//! Free places of a range of addresses: joined where they touch, and found without a walk over all of them.

use super::layout::PIECE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A set of free addresses. Its entries are as many as there are gaps between what is taken, plus one for each piece:
/// they do not grow with how often something was freed.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeList {
    /// Start and length. None reaches from one piece into the next, so that whatever fits by its length fits; within
    /// a piece no two touch.
    lens: BTreeMap<u64, u64>,
    /// The same as piece, length, start: whether a piece has room is one look-up.
    sizes: BTreeSet<(u64, u64, u64)>,
}

/// The parts of a range that lie in one piece each.
fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let part = start..((start / PIECE + 1) * PIECE).min(range.end);
        start = part.end;
        (!part.is_empty()).then_some(part)
    })
}

impl FreeList {
    /// Adds what was not free; an empty range adds nothing.
    pub(super) fn add(&mut self, range: Range<u64>) {
        for Range { mut start, mut end } in parts(range) {
            let before = self.lens.range(..start).next_back().map(|(&before, &len)| before..before + len);
            if let Some(before) = before.filter(|before| before.end == start && start % PIECE != 0) {
                self.remove(&before);
                start = before.start;
            }
            if let Some(&len) = self.lens.get(&end).filter(|_| end % PIECE != 0) {
                self.remove(&(end..end + len));
                end += len;
            }
            self.insert(start..end);
        }
    }

    /// Adds all that another set has, which is empty afterwards.
    pub(super) fn append(&mut self, other: &mut FreeList) {
        other.drain().for_each(|place| self.add(place));
    }

    /// All places, of which none is in the set afterwards.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Range<u64>> + use<> {
        std::mem::take(self).lens.into_iter().map(|(start, len)| start..start + len)
    }

    /// Takes a range out, all of which is free; an empty one takes nothing.
    pub(super) fn cut(&mut self, range: Range<u64>) {
        for part in parts(range) {
            let around = self.lens.range(..=part.start).next_back().map(|(&start, &len)| start..start + len);
            let Some(around) = around.filter(|around| part.end <= around.end) else {
                debug_assert!(false, "{part:x?} is not free");
                continue;
            };
            self.remove(&around);
            self.insert(around.start..part.start);
            self.insert(part.end..around.end);
        }
    }

    /// The first start from `from` on where `wanted` bytes are free: inside one piece, or, of more than a piece,
    /// whole pieces in a row. Costs a look-up for each piece that has something free, and a walk through one that
    /// has room.
    pub(super) fn first(&self, wanted: u64, from: u64) -> Option<u64> {
        if wanted > PIECE {
            return self.first_row(wanted.div_ceil(PIECE), from.div_ceil(PIECE));
        }
        let mut roomy = self.pieces(from / PIECE).filter(|&(_, largest)| largest >= wanted);
        roomy.find_map(|(piece, _)| {
            let inside = self.lens.range(piece * PIECE..(piece + 1) * PIECE);
            let mut clipped = inside.map(|(&start, &len)| start.max(from)..start + len);
            clipped.find(|place| place.start + wanted <= place.end).map(|place| place.start)
        })
    }

    fn first_row(&self, wanted: u64, from: u64) -> Option<u64> {
        let mut row = from..from;
        for (piece, _) in self.pieces(from).filter(|&(_, largest)| largest == PIECE) {
            row = if row.end == piece { row.start..piece + 1 } else { piece..piece + 1 };
            if row.end - row.start == wanted {
                return Some(row.start * PIECE);
            }
        }
        None
    }

    /// The pieces from that one on that have something free, with the longest place in each.
    fn pieces(&self, mut from: u64) -> impl Iterator<Item = (u64, u64)> {
        std::iter::from_fn(move || {
            let &(piece, ..) = self.sizes.range((from, 0, 0)..).next()?;
            from = piece + 1;
            self.sizes.range(..(from, 0, 0)).next_back().map(|&(_, largest, _)| (piece, largest))
        })
    }

    fn insert(&mut self, place: Range<u64>) {
        if !place.is_empty() {
            let len = place.end - place.start;
            self.lens.insert(place.start, len);
            self.sizes.insert((place.start / PIECE, len, place.start));
        }
    }

    fn remove(&mut self, place: &Range<u64>) {
        self.lens.remove(&place.start);
        self.sizes.remove(&(place.start / PIECE, place.end - place.start, place.start));
    }

    /// How many entries it takes.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        assert_eq!(self.lens.len(), self.sizes.len());
        self.lens.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::GRANULE;
    use super::*;

    /// Compares with a plain map of granules, over random additions and cuts.
    #[test]
    fn a_set_is_what_was_added_less_what_was_cut() {
        const PER_PIECE: usize = (PIECE / GRANULE) as usize;
        const GRANULES: usize = 4 * PER_PIECE;
        let (mut places, mut free) = (FreeList::default(), vec![false; GRANULES]);
        let mut random = 11_u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % limit
        };
        for _ in 0..1000 {
            // What is of one kind there is turned into the other.
            let (start, len) = (below(GRANULES), 1 + below(PER_PIECE * 2));
            let is = free[start];
            let len = free[start..].iter().take(len).take_while(|&&other| other == is).count();
            let range = start as u64 * GRANULE..(start + len) as u64 * GRANULE;
            if is {
                places.cut(range)
            } else {
                places.add(range)
            }
            free[start..start + len].fill(!is);

            let (wanted, from) = (1 + below(PER_PIECE), below(GRANULES));
            let fits = |&at: &usize| {
                at % PER_PIECE + wanted <= PER_PIECE && free[at..at + wanted].iter().all(|&free| free)
            };
            let expected = (from..GRANULES).find(fits).map(|at| at as u64 * GRANULE);
            assert_eq!(places.first(wanted as u64 * GRANULE, from as u64 * GRANULE), expected);
        }
    }

    #[test]
    fn touching_places_are_joined_up_to_the_end_of_their_piece() {
        let mut places = FreeList::default();
        for granule in [0, 2, 1] {
            places.add(PIECE - (granule + 1) * GRANULE..PIECE - granule * GRANULE);
        }
        assert_eq!(places.entries(), 1);
        places.add(PIECE..3 * PIECE);
        assert_eq!(places.entries(), 3);
        assert_eq!(places.first(2 * PIECE, 0), Some(PIECE));
        assert_eq!(places.first(3 * PIECE, 0), None);
        assert_eq!(places.first(3 * GRANULE, 0), Some(PIECE - 3 * GRANULE));
        assert_eq!(places.first(3 * GRANULE, PIECE - GRANULE), Some(PIECE));
    }
}
