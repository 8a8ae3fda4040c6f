//! A part of a rank's range, handed out upwards; freed places are used again when nothing else is left.
//!
//! FreeList are used again last, so that a stale address keeps failing for as long as possible, and only once the
//! whole job has met after they were freed: whoever knew the address had every occasion to forget it. So a place goes
//! round: fresh or in stock, taken, freed and waiting for meetings, quiet, and in stock again when that is used up.

use super::free_list::FreeList;
use super::layout::{GRANULE, PIECE};
use crate::base::{Cause, Error, Result};
use std::collections::VecDeque;
use std::ops::Range;

/// How often the job must meet before a freed place is quiet. One meeting may have been under way, on another thread of
/// the rank, when the place was freed; whoever had left it already may still use the address. The next one began later.
const MEETINGS: u64 = 2;

/// Why nothing could be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RegionFull {
    /// No place of that size is left, freed or not.
    UsedUp,
    /// There is one, but the job has not met since it was freed.
    NotQuiet,
}

#[derive(Debug)]
pub(super) struct Region {
    range: Range<u64>,
    /// Everything from here on is fresh.
    next: u64,
    /// What may be taken when nothing fresh is left.
    stock: FreeList,
    /// Freed before the last meetings: comes into stock when that is used up.
    quiet: FreeList,
    /// Quiet since [`Region::quieted`] was asked.
    news: FreeList,
    /// Freed since, by the number of meetings at that time, which ascends.
    waiting: VecDeque<(u64, FreeList)>,
}

/// Address space that `bytes` take: whole granules, or whole pieces if they are more than one.
fn footprint(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(if bytes > PIECE { PIECE } else { GRANULE }).unwrap_or(u64::MAX)
}

/// The first start in `gap` for a footprint. What fits into a piece never lies in two; more begins with one.
fn fit(gap: &Range<u64>, wanted: u64) -> Option<u64> {
    let crosses = gap.start % PIECE + wanted.min(PIECE + 1) > PIECE;
    let start = if crosses { gap.start.next_multiple_of(PIECE) } else { gap.start };
    (wanted <= gap.end.saturating_sub(start)).then_some(start)
}

impl Region {
    pub(super) fn new(range: Range<u64>) -> Region {
        let (stock, quiet, news, waiting) = Default::default();
        Region { next: range.start, range, stock, quiet, news, waiting }
    }

    /// Takes a place that was never used.
    pub(super) fn take_fresh(&mut self, bytes: u64) -> Option<u64> {
        let wanted = footprint(bytes);
        let start = fit(&(self.next..self.range.end), wanted)?;
        self.stock.add(self.next..start);
        self.next = start + wanted;
        Some(start)
    }

    /// As if everything fresh had been taken: for tests of what comes then.
    pub(super) fn use_up(&mut self) {
        self.next = self.range.end;
    }

    /// Takes a place, a used one if need be, given how often the job has met.
    pub(super) fn take(&mut self, bytes: u64, meetings: u64) -> Result<u64, RegionFull> {
        if let Some(start) = self.take_fresh(bytes) {
            return Ok(start);
        }
        if let Some(start) = self.find_in_stock(bytes, self.range.start) {
            return Ok(self.take_freed(start, bytes));
        }
        self.settle(meetings);
        self.stock.append(&mut self.quiet);
        match self.find_in_stock(bytes, self.range.start) {
            Some(start) => Ok(self.take_freed(start, bytes)),
            None => Err(self.shortage(bytes)),
        }
    }

    /// The first place from `from` on that is not taken, whether or not the job has met since it was freed.
    pub(super) fn find_freed(&mut self, bytes: u64, from: u64) -> Option<u64> {
        self.settle(u64::MAX);
        self.stock.append(&mut self.quiet);
        self.find_in_stock(bytes, from)
    }

    /// Takes the place that was found.
    pub(super) fn take_freed(&mut self, start: u64, bytes: u64) -> u64 {
        let end = start + footprint(bytes);
        self.stock.add(self.next..self.range.end);
        self.stock.cut(start..end);
        self.next = self.next.max(end);
        self.stock.cut(self.next..self.range.end);
        start
    }

    /// Gives a place back, at a time when the job has met that often.
    pub(super) fn give_back(&mut self, start: u64, bytes: u64, meetings: u64) {
        self.settle(meetings); // so that those who wait are few
        let last = self.waiting.back().map(|&(at, _)| at);
        if last.is_none_or(|last| last < meetings) {
            self.waiting.push_back((meetings, FreeList::default()));
        }
        if let Some((_, places)) = self.waiting.back_mut() {
            places.add(start..start + footprint(bytes));
        }
    }

    /// The job has met that often: what was freed long enough ago has become quiet.
    fn settle(&mut self, meetings: u64) {
        while let Some((_, mut places)) = self.waiting.pop_front_if(|(at, _)| *at + MEETINGS <= meetings) {
            self.news.append(&mut places.clone());
            self.quiet.append(&mut places);
        }
    }

    /// What has become quiet since this was asked last. What was just taken may be among it.
    pub(super) fn quieted(&mut self) -> impl Iterator<Item = Range<u64>> + use<> {
        self.news.drain()
    }

    /// What is left of the fresh addresses is too short, but may be joined to what was freed before it.
    fn find_in_stock(&mut self, bytes: u64, from: u64) -> Option<u64> {
        self.stock.add(self.next..self.range.end);
        let found = self.stock.first(footprint(bytes), from);
        self.stock.cut(self.next..self.range.end);
        found
    }

    /// Whether a meeting would help.
    fn shortage(&self, bytes: u64) -> RegionFull {
        let mut all = self.stock.clone();
        all.add(self.next..self.range.end);
        for (_, places) in &self.waiting {
            all.append(&mut places.clone());
        }
        let helps = !self.waiting.is_empty() && all.first(footprint(bytes), self.range.start).is_some();
        if helps { RegionFull::NotQuiet } else { RegionFull::UsedUp }
    }

    /// The error of a shortage.
    pub(super) fn error(&self, bytes: u64, shortage: &RegionFull) -> Error {
        let range = self.range.end - self.range.start;
        let limit = match shortage {
            RegionFull::UsedUp => format!("the range of addresses for such memory ({range} bytes)"),
            RegionFull::NotQuiet => "the range of addresses, until the job meets in a barrier twice,".into(),
        };
        Cause::NoMemory { wanted: bytes, available: self.range.end - self.next, limit }.into()
    }

    /// How many entries its tables have.
    #[cfg(test)]
    fn entries(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|(_, places)| places.entries()).sum();
        self.stock.entries() + self.quiet.entries() + waiting + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Range<u64> = PIECE..3 * PIECE;

    #[test]
    fn nothing_crosses_a_piece_that_need_not() {
        let mut zone = Region::new(PIECE..20 * PIECE);
        for bytes in [1, GRANULE, PIECE - GRANULE, 2 * GRANULE, PIECE, 5, PIECE + 1, 7] {
            let start = zone.take(bytes, 0).unwrap();
            let (first, last) = (start / PIECE, (start + bytes - 1) / PIECE);
            assert!(if bytes > PIECE { start.is_multiple_of(PIECE) } else { first == last }, "{bytes}");
        }
    }

    #[test]
    fn freed_places_come_last_and_after_a_meeting() {
        let mut zone = Region::new(SMALL);
        let first = zone.take(PIECE, 0).unwrap();
        zone.give_back(first, PIECE, 0);
        let second = zone.take(PIECE, 0).unwrap();
        assert_ne!(first, second);
        assert_eq!(zone.take(PIECE, 0), Err(RegionFull::NotQuiet));
        assert_eq!(zone.take(PIECE, 1), Err(RegionFull::NotQuiet), "that meeting may have been under way");
        assert_eq!(zone.take(PIECE, 2), Ok(first));
        assert_eq!(zone.take(1, 1), Err(RegionFull::UsedUp));
        zone.give_back(first, PIECE, 1);
        zone.give_back(second, PIECE, 1);
        assert_eq!(zone.take(2 * PIECE, 3), Ok(first), "neighbours are joined");
    }

    #[test]
    fn a_freed_place_is_cut() {
        let mut zone = Region::new(SMALL);
        let whole = zone.take(2 * PIECE, 0).unwrap();
        zone.give_back(whole, 2 * PIECE, 0);
        let parts: Vec<u64> = (0..4).map(|_| zone.take(PIECE / 2, 2).unwrap()).collect();
        assert_eq!(parts, [whole, whole + PIECE / 2, whole + PIECE, whole + PIECE / 2 * 3]);
        assert!(zone.take(1, 1).is_err());
        zone.give_back(parts[1], PIECE / 2, 1);
        zone.give_back(parts[2], PIECE / 2, 1);
        assert!(zone.take(PIECE, 3).is_err(), "a piece would lie across two");
        assert_eq!(zone.take(GRANULE, 3), Ok(parts[1]));
    }

    #[test]
    fn churn_never_ends_and_never_overlaps() {
        let mut zone = Region::new(SMALL);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut random = 7_u64;
        for round in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bytes = (random >> 40) % (PIECE / 16) + 1;
            if live.len() == 8 {
                let (start, bytes) = live.swap_remove((random >> 20) as usize % 8);
                zone.give_back(start, bytes, round);
            }
            let start = zone.take(bytes, round + 2).unwrap();
            let end = start + bytes;
            assert!(start >= SMALL.start && end <= SMALL.end);
            assert!(live.iter().all(|&(other, len)| end <= other || other + len <= start), "overlap");
            live.push((start, bytes));
        }
    }

    #[test]
    fn a_freed_place_is_used_again_after_all_others() {
        let mut zone = Region::new(SMALL);
        let mut last_taken = std::collections::BTreeMap::new();
        for round in 0..400 {
            let start = zone.take(PIECE / 32, round).unwrap();
            zone.give_back(start, PIECE / 32, round);
            if let Some(before) = last_taken.insert(start, round) {
                assert!(round - before > 60, "{start:#x} comes again after {} others", round - before);
            }
        }
    }

    /// A walk over what was freed would make this take hours, a list of it gigabytes.
    #[test]
    fn millions_of_places_in_bounded_tables() {
        let mut zone = Region::new(PIECE..17 * PIECE);
        let mut live = VecDeque::new();
        for round in 0..3_000_000_u64 {
            let bytes = if round % 3 == 0 { 17 * GRANULE } else { GRANULE };
            let start = zone.take(bytes, round / 10_000).unwrap();
            live.push_back((start, bytes));
            if live.len() > 100 {
                let (start, bytes) = live.pop_front().unwrap();
                zone.give_back(start, bytes, round / 10_000);
            }
            assert!(zone.entries() < 1000);
        }
    }

    #[test]
    fn a_shortage_that_no_meeting_ends_is_not_blamed_on_it() {
        let mut zone = Region::new(SMALL);
        let small: Vec<u64> = (0..2).map(|_| zone.take(PIECE, 0).unwrap()).collect();
        zone.give_back(small[1], PIECE, 0);
        assert_eq!(zone.take(PIECE + 1, 0), Err(RegionFull::UsedUp));
        assert_eq!(zone.take(PIECE, 0), Err(RegionFull::NotQuiet));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let mut zone = Region::new(SMALL);
        assert_eq!(zone.take(u64::MAX, 1), Err(RegionFull::UsedUp));
        assert_eq!(zone.take(2 * PIECE + 1, 1), Err(RegionFull::UsedUp));
    }
}
