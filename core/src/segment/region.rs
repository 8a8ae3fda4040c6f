//! Allocates addresses in one region of a rank's range, upwards. Freed addresses are used again late.
//!
//! An address that is used again late keeps failing as stale for a long time. But each fresh one costs page tables in
//! all processes that use it, and those stay. So fresh addresses come first only up to [`FRESH_FIRST`]. An address is used
//! again only after all ranks have passed barriers since it was freed: by then every rank had the
//! occasion to drop it. So addresses go through these states: fresh or reusable, allocated, freed
//! and waiting for barriers, quiescent, and reusable again when no other reusable address fits.

use super::free_list::FreeList;
use super::layout::{GRANULE, PIECE};
use crate::base::{Cause, Error, Result};
use std::collections::VecDeque;
use std::ops::Range;

/// The barriers after which freed addresses are quiescent. One barrier may have been in progress,
/// on another thread of the rank, when the addresses were freed: a rank that had left it already
/// may still use them. The next one began later.
const BARRIERS: u64 = 2;

/// Bytes of addresses that are allocated before freed ones are preferred: their page tables take 32 MiB.
const FRESH_FIRST: u64 = 16 << 30;

/// Why an allocation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RegionFull {
    /// No range of this size is left, freed or not.
    Exhausted,
    /// There is a freed range of this size, but it is not quiescent yet.
    NotQuiescent,
}

#[derive(Debug)]
pub(super) struct Region {
    range: Range<u64>,
    /// The first address that was never allocated.
    next: u64,
    /// Addresses to allocate when no fresh ones fit.
    reusable: FreeList,
    /// Addresses that [`BARRIERS`] barriers have passed: they become reusable when no reusable ones fit.
    quiescent: FreeList,
    /// Addresses that have become quiescent since the last call of [`Region::take_newly_quiescent`].
    newly_quiescent: FreeList,
    /// Addresses freed lately, each list with the number of barriers passed at that time, in ascending order.
    waiting: VecDeque<(u64, FreeList)>,
}

/// Returns the address space that `bytes` take: whole granules, or whole pieces if they exceed a piece.
fn footprint(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(if bytes > PIECE { PIECE } else { GRANULE }).unwrap_or(u64::MAX)
}

/// Returns the first start in `gap` for `wanted` bytes. Up to a piece never crosses the end of a
/// piece; more begins with a piece.
fn fit(gap: &Range<u64>, wanted: u64) -> Option<u64> {
    let crosses = gap.start % PIECE + wanted.min(PIECE + 1) > PIECE;
    let start = if crosses { gap.start.next_multiple_of(PIECE) } else { gap.start };
    (wanted <= gap.end.saturating_sub(start)).then_some(start)
}

impl Region {
    pub(super) fn new(range: Range<u64>) -> Region {
        let (reusable, quiescent, newly_quiescent, waiting) = Default::default();
        Region { next: range.start, range, reusable, quiescent, newly_quiescent, waiting }
    }

    /// Allocates addresses that were never used.
    pub(super) fn allocate_fresh(&mut self, bytes: u64) -> Option<u64> {
        let wanted = footprint(bytes);
        let start = fit(&(self.next..self.range.end), wanted)?;
        self.reusable.add(self.next..start);
        self.next = start + wanted;
        Some(start)
    }

    /// Treats all fresh addresses as allocated, to test what happens then.
    pub(super) fn exhaust_fresh(&mut self) {
        self.next = self.range.end;
    }

    /// Allocates addresses: fresh ones, or reusable ones if many are not fresh any more. `barriers` is the number of
    /// barriers that the job has passed.
    pub(super) fn allocate(&mut self, bytes: u64, barriers: u64) -> Result<u64, RegionFull> {
        if self.next - self.range.start >= FRESH_FIRST {
            self.update_quiescent(barriers);
            self.reusable.append(&mut self.quiescent);
            if let Some(start) = self.reusable.find(footprint(bytes), self.range.start) {
                return Ok(self.allocate_freed(start, bytes));
            }
        }
        if let Some(start) = self.allocate_fresh(bytes) {
            return Ok(start);
        }
        if let Some(start) = self.find_reusable(bytes, self.range.start) {
            return Ok(self.allocate_freed(start, bytes));
        }
        self.update_quiescent(barriers);
        self.reusable.append(&mut self.quiescent);
        match self.find_reusable(bytes, self.range.start) {
            Some(start) => Ok(self.allocate_freed(start, bytes)),
            None => Err(self.why_full(bytes)),
        }
    }

    /// Finds the first range from `from` on that is not allocated, whether or not it is quiescent.
    pub(super) fn find_freed(&mut self, bytes: u64, from: u64) -> Option<u64> {
        self.update_quiescent(u64::MAX);
        self.reusable.append(&mut self.quiescent);
        self.find_reusable(bytes, from)
    }

    /// Allocates the range that a search found.
    pub(super) fn allocate_freed(&mut self, start: u64, bytes: u64) -> u64 {
        let end = start + footprint(bytes);
        self.reusable.add(self.next..self.range.end);
        self.reusable.remove(start..end);
        self.next = self.next.max(end);
        self.reusable.remove(self.next..self.range.end);
        start
    }

    /// Frees a range. `barriers` is the number of barriers that the job has passed.
    pub(super) fn free(&mut self, start: u64, bytes: u64, barriers: u64) {
        self.update_quiescent(barriers); // keeps `waiting` short
        let last = self.waiting.back().map(|&(at, _)| at);
        if last.is_none_or(|last| last < barriers) {
            self.waiting.push_back((barriers, FreeList::default()));
        }
        if let Some((_, freed)) = self.waiting.back_mut() {
            freed.add(start..start + footprint(bytes));
        }
    }

    /// Marks as quiescent what was freed at least [`BARRIERS`] barriers ago.
    fn update_quiescent(&mut self, barriers: u64) {
        while let Some((_, mut freed)) = self.waiting.pop_front_if(|(at, _)| *at + BARRIERS <= barriers) {
            self.newly_quiescent.append(&mut freed.clone());
            self.quiescent.append(&mut freed);
        }
    }

    /// Returns the ranges that have become quiescent since the last call. A range that was just allocated may be among
    /// them.
    pub(super) fn take_newly_quiescent(&mut self) -> impl Iterator<Item = Range<u64>> + use<> {
        self.newly_quiescent.drain()
    }

    /// Finds a reusable range. The rest of the fresh addresses is too short alone, but counts with the reusable range
    /// before it.
    fn find_reusable(&mut self, bytes: u64, from: u64) -> Option<u64> {
        self.reusable.add(self.next..self.range.end);
        let found = self.reusable.find(footprint(bytes), from);
        self.reusable.remove(self.next..self.range.end);
        found
    }

    /// Returns why an allocation failed: more barriers would let it succeed, or nothing would.
    fn why_full(&self, bytes: u64) -> RegionFull {
        let mut all = self.reusable.clone();
        all.add(self.next..self.range.end);
        for (_, freed) in &self.waiting {
            all.append(&mut freed.clone());
        }
        let helps = !self.waiting.is_empty() && all.find(footprint(bytes), self.range.start).is_some();
        if helps { RegionFull::NotQuiescent } else { RegionFull::Exhausted }
    }

    /// Makes the error of an allocation that failed.
    pub(super) fn error(&self, bytes: u64, why: &RegionFull) -> Error {
        let range = self.range.end - self.range.start;
        let limit = match why {
            RegionFull::Exhausted => format!("the address range for this kind of memory ({range} bytes)"),
            RegionFull::NotQuiescent => {
                "the address range (freed addresses can be used again after two more barriers of the job)"
                    .into()
            }
        };
        Cause::NoMemory { wanted: bytes, available: self.range.end - self.next, limit }.into()
    }

    /// Returns the number of entries in the tables.
    #[cfg(test)]
    fn entries(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|(_, freed)| freed.entries()).sum();
        self.reusable.entries() + self.quiescent.entries() + waiting + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Range<u64> = PIECE..3 * PIECE;

    #[test]
    fn allocations_up_to_a_piece_cross_no_piece() {
        let mut region = Region::new(PIECE..20 * PIECE);
        for bytes in [1, GRANULE, PIECE - GRANULE, 2 * GRANULE, PIECE, 5, PIECE + 1, 7] {
            let start = region.allocate(bytes, 0).unwrap();
            let (first, last) = (start / PIECE, (start + bytes - 1) / PIECE);
            assert!(if bytes > PIECE { start.is_multiple_of(PIECE) } else { first == last }, "{bytes}");
        }
    }

    #[test]
    fn freed_addresses_are_reused_last_and_after_two_barriers() {
        let mut region = Region::new(SMALL);
        let first = region.allocate(PIECE, 0).unwrap();
        region.free(first, PIECE, 0);
        let second = region.allocate(PIECE, 0).unwrap();
        assert_ne!(first, second);
        assert_eq!(region.allocate(PIECE, 0), Err(RegionFull::NotQuiescent));
        assert_eq!(
            region.allocate(PIECE, 1),
            Err(RegionFull::NotQuiescent),
            "that barrier may have been in progress"
        );
        assert_eq!(region.allocate(PIECE, 2), Ok(first));
        assert_eq!(region.allocate(1, 1), Err(RegionFull::Exhausted));
        region.free(first, PIECE, 1);
        region.free(second, PIECE, 1);
        assert_eq!(region.allocate(2 * PIECE, 3), Ok(first), "neighbours are merged");
    }

    #[test]
    fn freed_addresses_are_preferred_when_many_were_allocated() {
        let mut region = Region::new(PIECE..1000 * PIECE);
        for barriers in 0..5 * FRESH_FIRST / PIECE {
            let start = region.allocate(PIECE, barriers).unwrap();
            let is_fresh = barriers < FRESH_FIRST / PIECE;
            assert_eq!(
                start == (barriers + 1) * PIECE,
                is_fresh,
                "allocation {barriers} begins at {start:#x}"
            );
            region.free(start, PIECE, barriers);
        }
        assert!(region.next <= PIECE + FRESH_FIRST);
        let fresh = region.allocate(PIECE * 20, 0).unwrap();
        assert!(fresh >= FRESH_FIRST, "no freed range is that long");
    }

    #[test]
    fn a_freed_range_is_divided() {
        let mut region = Region::new(SMALL);
        let whole = region.allocate(2 * PIECE, 0).unwrap();
        region.free(whole, 2 * PIECE, 0);
        let parts: Vec<u64> = (0..4).map(|_| region.allocate(PIECE / 2, 2).unwrap()).collect();
        assert_eq!(parts, [whole, whole + PIECE / 2, whole + PIECE, whole + PIECE / 2 * 3]);
        assert!(region.allocate(1, 1).is_err());
        region.free(parts[1], PIECE / 2, 1);
        region.free(parts[2], PIECE / 2, 1);
        assert!(region.allocate(PIECE, 3).is_err(), "it would cross a piece");
        assert_eq!(region.allocate(GRANULE, 3), Ok(parts[1]));
    }

    #[test]
    fn random_allocations_and_frees_never_overlap() {
        let mut region = Region::new(SMALL);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut random = 7_u64;
        for round in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bytes = (random >> 40) % (PIECE / 16) + 1;
            if live.len() == 8 {
                let (start, bytes) = live.swap_remove((random >> 20) as usize % 8);
                region.free(start, bytes, round);
            }
            let start = region.allocate(bytes, round + 2).unwrap();
            let end = start + bytes;
            assert!(start >= SMALL.start && end <= SMALL.end);
            assert!(live.iter().all(|&(other, len)| end <= other || other + len <= start), "overlap");
            live.push((start, bytes));
        }
    }

    #[test]
    fn a_freed_range_is_reused_after_all_others() {
        let mut region = Region::new(SMALL);
        let mut last_taken = std::collections::BTreeMap::new();
        for round in 0..400 {
            let start = region.allocate(PIECE / 32, round).unwrap();
            region.free(start, PIECE / 32, round);
            if let Some(before) = last_taken.insert(start, round) {
                assert!(round - before > 60, "{start:#x} is reused after {} others", round - before);
            }
        }
    }

    /// If each allocation visited all freed ranges, this would take hours; if each had an entry, gigabytes.
    #[test]
    fn millions_of_allocations_need_bounded_tables() {
        let mut region = Region::new(PIECE..17 * PIECE);
        let mut live = VecDeque::new();
        for round in 0..3_000_000_u64 {
            let bytes = if round % 3 == 0 { 17 * GRANULE } else { GRANULE };
            let start = region.allocate(bytes, round / 10_000).unwrap();
            live.push_back((start, bytes));
            if live.len() > 100 {
                let (start, bytes) = live.pop_front().unwrap();
                region.free(start, bytes, round / 10_000);
            }
            assert!(region.entries() < 1000);
        }
    }

    #[test]
    fn not_quiescent_is_reported_only_if_barriers_would_help() {
        let mut region = Region::new(SMALL);
        let small: Vec<u64> = (0..2).map(|_| region.allocate(PIECE, 0).unwrap()).collect();
        region.free(small[1], PIECE, 0);
        assert_eq!(region.allocate(PIECE + 1, 0), Err(RegionFull::Exhausted));
        assert_eq!(region.allocate(PIECE, 0), Err(RegionFull::NotQuiescent));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let mut region = Region::new(SMALL);
        assert_eq!(region.allocate(u64::MAX, 1), Err(RegionFull::Exhausted));
        assert_eq!(region.allocate(2 * PIECE + 1, 1), Err(RegionFull::Exhausted));
    }
}
