//! The free address ranges of a region. Adjacent ones are merged, and a search does not visit all of them.

use super::layout::PIECE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A set of free addresses. It has at most one entry for each gap between allocations, and one more for each piece: its
/// size does not depend on how often memory was freed.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeList {
    /// Length by start. No entry extends over the end of a piece, so an allocation fits if its length does. Within a
    /// piece no two entries are adjacent.
    lens: BTreeMap<u64, u64>,
    /// The same entries as (piece, length, start): one lookup finds the longest in a piece.
    sizes: BTreeSet<(u64, u64, u64)>,
}

/// Splits a range into parts that are in one piece each.
fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let part = start..((start / PIECE + 1) * PIECE).min(range.end);
        start = part.end;
        (!part.is_empty()).then_some(part)
    })
}

impl FreeList {
    /// Adds a range that was not free. An empty range adds nothing.
    pub(super) fn add(&mut self, range: Range<u64>) {
        for Range { mut start, mut end } in parts(range) {
            let before = self.lens.range(..start).next_back().map(|(&before, &len)| before..before + len);
            if let Some(before) = before.filter(|before| before.end == start && start % PIECE != 0) {
                self.remove_entry(&before);
                start = before.start;
            }
            if let Some(&len) = self.lens.get(&end).filter(|_| end % PIECE != 0) {
                self.remove_entry(&(end..end + len));
                end += len;
            }
            self.insert(start..end);
        }
    }

    /// Moves all ranges of another set into this one.
    pub(super) fn append(&mut self, other: &mut FreeList) {
        other.drain().for_each(|range| self.add(range));
    }

    /// Removes and returns all ranges.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Range<u64>> + use<> {
        std::mem::take(self).lens.into_iter().map(|(start, len)| start..start + len)
    }

    /// Removes a range that is entirely free. An empty range removes nothing.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        for part in parts(range) {
            let around = self.lens.range(..=part.start).next_back().map(|(&start, &len)| start..start + len);
            let Some(around) = around.filter(|around| part.end <= around.end) else {
                debug_assert!(false, "{part:x?} is not free");
                continue;
            };
            self.remove_entry(&around);
            self.insert(around.start..part.start);
            self.insert(part.end..around.end);
        }
    }

    /// Finds the first start, at or above `from`, where `wanted` bytes are free. Up to a piece is
    /// found inside one piece; more begins with a piece and takes consecutive pieces. Costs a
    /// lookup for each piece that has free addresses, and a scan of each piece whose longest entry
    /// is long enough.
    pub(super) fn find(&self, wanted: u64, from: u64) -> Option<u64> {
        if wanted > PIECE {
            return self.find_pieces(wanted.div_ceil(PIECE), from.div_ceil(PIECE));
        }
        let mut large_enough = self.pieces(from / PIECE).filter(|&(_, largest)| largest >= wanted);
        large_enough.find_map(|(piece, _)| {
            let inside = self.lens.range(piece * PIECE..(piece + 1) * PIECE);
            let mut clipped = inside.map(|(&start, &len)| start.max(from)..start + len);
            clipped.find(|range| range.start + wanted <= range.end).map(|range| range.start)
        })
    }

    /// Finds `wanted` consecutive free pieces, the first of them at or above piece `from`.
    fn find_pieces(&self, wanted: u64, from: u64) -> Option<u64> {
        let mut run = from..from;
        for (piece, _) in self.pieces(from).filter(|&(_, largest)| largest == PIECE) {
            run = if run.end == piece { run.start..piece + 1 } else { piece..piece + 1 };
            if run.end - run.start == wanted {
                return Some(run.start * PIECE);
            }
        }
        None
    }

    /// Returns the pieces from `from` on that have free addresses, each with the length of its longest entry.
    fn pieces(&self, mut from: u64) -> impl Iterator<Item = (u64, u64)> {
        std::iter::from_fn(move || {
            let &(piece, ..) = self.sizes.range((from, 0, 0)..).next()?;
            from = piece + 1;
            self.sizes.range(..(from, 0, 0)).next_back().map(|&(_, largest, _)| (piece, largest))
        })
    }

    fn insert(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            let len = range.end - range.start;
            self.lens.insert(range.start, len);
            self.sizes.insert((range.start / PIECE, len, range.start));
        }
    }

    fn remove_entry(&mut self, range: &Range<u64>) {
        self.lens.remove(&range.start);
        self.sizes.remove(&(range.start / PIECE, range.end - range.start, range.start));
    }

    /// Returns the number of entries.
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

    /// Compares the list with an array of granules, over random additions and removals.
    #[test]
    fn random_additions_and_removals_match_an_array_of_granules() {
        const PER_PIECE: usize = (PIECE / GRANULE) as usize;
        const GRANULES: usize = 4 * PER_PIECE;
        let (mut list, mut free) = (FreeList::default(), vec![false; GRANULES]);
        let mut random = 11_u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % limit
        };
        for _ in 0..1000 {
            // Frees a run of taken granules, or takes a run of free ones.
            let (start, len) = (below(GRANULES), 1 + below(PER_PIECE * 2));
            let is = free[start];
            let len = free[start..].iter().take(len).take_while(|&&other| other == is).count();
            let range = start as u64 * GRANULE..(start + len) as u64 * GRANULE;
            if is {
                list.remove(range)
            } else {
                list.add(range)
            }
            free[start..start + len].fill(!is);

            let (wanted, from) = (1 + below(PER_PIECE), below(GRANULES));
            let fits = |&at: &usize| {
                at % PER_PIECE + wanted <= PER_PIECE && free[at..at + wanted].iter().all(|&free| free)
            };
            let expected = (from..GRANULES).find(fits).map(|at| at as u64 * GRANULE);
            assert_eq!(list.find(wanted as u64 * GRANULE, from as u64 * GRANULE), expected);
        }
    }

    #[test]
    fn adjacent_ranges_are_merged_within_a_piece() {
        let mut list = FreeList::default();
        for granule in [0, 2, 1] {
            list.add(PIECE - (granule + 1) * GRANULE..PIECE - granule * GRANULE);
        }
        assert_eq!(list.entries(), 1);
        list.add(PIECE..3 * PIECE);
        assert_eq!(list.entries(), 3);
        assert_eq!(list.find(2 * PIECE, 0), Some(PIECE));
        assert_eq!(list.find(3 * PIECE, 0), None);
        assert_eq!(list.find(3 * GRANULE, 0), Some(PIECE - 3 * GRANULE));
        assert_eq!(list.find(3 * GRANULE, PIECE - GRANULE), Some(PIECE));
    }
}
