//! Finds the last step that wrote a range of bytes.

use super::Region;
use crate::step::BufferId;
use std::collections::BTreeMap;

/// The last writes to all buffers.
#[derive(Default, Debug)]
pub(super) struct Writes(BTreeMap<(u32, BufferId), WrittenRange>);

/// The last writes to one buffer of one rank.
#[derive(Debug)]
struct WrittenRange {
    /// The last write of all.
    last: (Region, usize),
    /// Maps the first byte of each range to its end and the last step that wrote it. Ranges do not overlap.
    bytes: BTreeMap<u64, (u64, usize)>,
}

fn buffer_of(region: &Region) -> (u32, BufferId) {
    (region.place.rank, region.place.buffer)
}

/// First byte, and end.
fn byte_range(region: &Region) -> (u64, u64) {
    (region.place.offset, region.place.offset + region.bytes)
}

impl Writes {
    /// Records that `step`, later than all before, writes to `region`, which is not empty.
    pub(super) fn add(&mut self, region: Region, step: usize) {
        let (start, end) = byte_range(&region);
        let empty = || WrittenRange { last: (region, step), bytes: BTreeMap::new() };
        let written = self.0.entry(buffer_of(&region)).or_insert_with(empty);
        written.last = (region, step);
        let bytes = &mut written.bytes;
        // The parts of an older range outside the region stay.
        if let Some((&before, &(until, by))) =
            bytes.range(..start).next_back().filter(|(_, one)| one.0 > start)
        {
            bytes.insert(before, (start, by));
            if until > end {
                bytes.insert(end, (until, by));
            }
        }
        while let Some((&covered, &(until, by))) = bytes.range(start..end).next() {
            bytes.remove(&covered);
            if until > end {
                bytes.insert(end, (until, by));
            }
        }
        bytes.insert(start, (end, step));
    }

    /// The last step that wrote to any byte of `region`.
    pub(super) fn last(&self, region: &Region) -> Option<usize> {
        let (start, end) = byte_range(region);
        let written = self.0.get(&buffer_of(region)).filter(|_| start < end)?;
        if written.last.0.overlaps(region) {
            return Some(written.last.1);
        }
        let before = written.bytes.range(..start).next_back().filter(|(_, (until, _))| *until > start);
        before.into_iter().chain(written.bytes.range(start..end)).map(|(_, &(_, step))| step).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_is_that_found_by_a_full_search() {
        let mut number = 1_u64;
        let mut below = |limit: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % limit
        };
        let (mut writes, mut all) = (Writes::default(), Vec::new());
        for step in 0..3000 {
            let mut region = |shortest: u64| {
                let place = BufferId(below(2) as u32).on(below(2) as usize, below(100));
                Region { place, bytes: shortest + below(30) }
            };
            let (read, write) = (region(0), region(1));
            let expected =
                all.iter().rposition(|one: &Region| one.overlaps(&read)).filter(|_| read.bytes > 0);
            assert_eq!(writes.last(&read), expected, "step {step}: {read:?}");
            writes.add(write, step);
            all.push(write);
        }
    }
}
