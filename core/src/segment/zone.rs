//! A part of a rank's range, handed out upwards; freed places are used again when nothing else is left.
//!
//! Places are used again last, so that a stale address keeps failing for as long as possible, and only once the
//! whole job has met after they were freed: whoever knew the address had every occasion to forget it.

use super::layout::{GRANULE, PIECE};
use crate::base::{Cause, Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Why nothing could be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shortage {
    /// No place of that size is left, freed or not.
    UsedUp,
    /// There is one, but the job has not met since it was freed.
    NotQuiet,
}

#[derive(Debug)]
pub(super) struct Zone {
    range: Range<u64>,
    next: u64,
    /// Freed places: start, and length with the number of meetings at that time.
    freed: BTreeMap<u64, Freed>,
}

#[derive(Clone, Copy, Debug)]
struct Freed {
    len: u64,
    meetings: u64,
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

impl Zone {
    pub(super) fn new(range: Range<u64>) -> Zone {
        Zone { next: range.start, range, freed: BTreeMap::new() }
    }

    /// Takes a place that was never used.
    pub(super) fn take_fresh(&mut self, bytes: u64) -> Option<u64> {
        let wanted = footprint(bytes);
        let start = fit(&(self.next..self.range.end), wanted)?;
        if start > self.next {
            self.freed.insert(self.next, Freed { len: start - self.next, meetings: 0 });
        }
        self.next = start + wanted;
        Some(start)
    }

    /// As if everything fresh had been taken: for tests of what comes then.
    pub(super) fn use_up(&mut self) {
        self.next = self.range.end;
    }

    /// Takes a place, a used one if need be, given how often the job has met.
    pub(super) fn take(&mut self, bytes: u64, meetings: u64) -> Result<u64, Shortage> {
        if let Some(start) = self.take_fresh(bytes) {
            return Ok(start);
        }
        match self.find_freed(bytes, self.range.start, meetings) {
            Some(start) => Ok(self.take_freed(start, bytes)),
            None if self.find_freed(bytes, self.range.start, u64::MAX).is_some() => Err(Shortage::NotQuiet),
            None => Err(Shortage::UsedUp),
        }
    }

    /// The first place from `from` on that was freed before the meeting of that number.
    pub(super) fn find_freed(&self, bytes: u64, from: u64, meetings: u64) -> Option<u64> {
        let mut gap = from..from;
        let tail = (self.next, Freed { len: self.range.end - self.next, meetings: 0 });
        let quiet = self.freed.iter().map(|(&start, &freed)| (start, freed)).chain([tail]);
        for (start, freed) in quiet.filter(|(_, freed)| freed.meetings < meetings) {
            let (start, end) = (start.max(from), start + freed.len);
            gap = if gap.end == start { gap.start..end } else { start..end };
            if let Some(start) = fit(&gap, footprint(bytes)) {
                return Some(start);
            }
        }
        None
    }

    /// Takes the freed place that `find_freed` found.
    pub(super) fn take_freed(&mut self, start: u64, bytes: u64) -> u64 {
        let end = start + footprint(bytes);
        let touched: Vec<u64> = self.freed.range(..end).map(|(&start, _)| start).collect();
        for at in touched {
            let Freed { len, meetings } = self.freed[&at];
            if at + len <= start {
                continue;
            }
            self.freed.remove(&at);
            if at < start {
                self.freed.insert(at, Freed { len: start - at, meetings });
            }
            if at + len > end {
                self.freed.insert(end, Freed { len: at + len - end, meetings });
            }
        }
        self.next = self.next.max(end);
        start
    }

    /// Gives a place back, at a time when the job has met that often.
    pub(super) fn give_back(&mut self, start: u64, bytes: u64, meetings: u64) {
        self.freed.insert(start, Freed { len: footprint(bytes), meetings });
    }

    /// The error of a shortage.
    pub(super) fn error(&self, bytes: u64, shortage: &Shortage) -> Error {
        let range = self.range.end - self.range.start;
        let limit = match shortage {
            Shortage::UsedUp => format!("the range of addresses for such memory ({range} bytes)"),
            Shortage::NotQuiet => "the range of addresses, until the job meets in a barrier,".into(),
        };
        Cause::NoMemory { wanted: bytes, available: self.range.end - self.next, limit }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Range<u64> = PIECE..3 * PIECE;

    #[test]
    fn nothing_crosses_a_piece_that_need_not() {
        let mut zone = Zone::new(PIECE..20 * PIECE);
        for bytes in [1, GRANULE, PIECE - GRANULE, 2 * GRANULE, PIECE, 5, PIECE + 1, 7] {
            let start = zone.take(bytes, 0).unwrap();
            let (first, last) = (start / PIECE, (start + bytes - 1) / PIECE);
            assert!(if bytes > PIECE { start.is_multiple_of(PIECE) } else { first == last }, "{bytes}");
        }
    }

    #[test]
    fn freed_places_come_last_and_after_a_meeting() {
        let mut zone = Zone::new(SMALL);
        let first = zone.take(PIECE, 0).unwrap();
        zone.give_back(first, PIECE, 0);
        let second = zone.take(PIECE, 0).unwrap();
        assert_ne!(first, second);
        assert_eq!(zone.take(PIECE, 0), Err(Shortage::NotQuiet));
        assert_eq!(zone.take(PIECE, 1), Ok(first));
        assert_eq!(zone.take(1, 1), Err(Shortage::UsedUp));
        zone.give_back(first, PIECE, 1);
        zone.give_back(second, PIECE, 1);
        assert_eq!(zone.take(2 * PIECE, 2), Ok(first), "neighbours are joined");
    }

    #[test]
    fn a_freed_place_is_cut() {
        let mut zone = Zone::new(SMALL);
        let whole = zone.take(2 * PIECE, 0).unwrap();
        zone.give_back(whole, 2 * PIECE, 0);
        let parts: Vec<u64> = (0..4).map(|_| zone.take(PIECE / 2, 1).unwrap()).collect();
        assert_eq!(parts, [whole, whole + PIECE / 2, whole + PIECE, whole + PIECE / 2 * 3]);
        assert!(zone.take(1, 1).is_err());
        zone.give_back(parts[1], PIECE / 2, 1);
        zone.give_back(parts[2], PIECE / 2, 1);
        assert!(zone.take(PIECE, 2).is_err(), "a piece would lie across two");
        assert_eq!(zone.take(GRANULE, 2), Ok(parts[1]));
    }

    #[test]
    fn churn_never_ends_and_never_overlaps() {
        let mut zone = Zone::new(SMALL);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut random = 7_u64;
        for round in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bytes = (random >> 40) % (PIECE / 16) + 1;
            if live.len() == 8 {
                let (start, bytes) = live.swap_remove((random >> 20) as usize % 8);
                zone.give_back(start, bytes, round);
            }
            let start = zone.take(bytes, round + 1).unwrap();
            let end = start + bytes;
            assert!(start >= SMALL.start && end <= SMALL.end);
            assert!(live.iter().all(|&(other, len)| end <= other || other + len <= start), "overlap");
            live.push((start, bytes));
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let mut zone = Zone::new(SMALL);
        assert_eq!(zone.take(u64::MAX, 1), Err(Shortage::UsedUp));
        assert_eq!(zone.take(2 * PIECE + 1, 1), Err(Shortage::UsedUp));
    }
}
