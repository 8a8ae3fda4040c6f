//! Who was the last to write which bytes.

use super::Region;
use crate::step::BufferId;
use std::collections::BTreeMap;

/// The last writes of all buffers.
#[derive(Default, Debug)]
pub(super) struct Writes(BTreeMap<(u32, BufferId), WrittenRange>);

/// The last writes of one buffer of one rank.
#[derive(Debug)]
struct WrittenRange {
    /// The last one of all.
    last: (Region, usize),
    /// Bytes by where they begin: where they end, and the last step to write them. They do not overlap.
    bytes: BTreeMap<u64, (u64, usize)>,
}

fn home(region: &Region) -> (u32, BufferId) {
    (region.place.rank, region.place.buffer)
}

/// Where its bytes begin and end.
fn ends(region: &Region) -> (u64, u64) {
    (region.place.offset, region.place.offset + region.bytes)
}

impl Writes {
    /// A later step than all before writes there: some bytes.
    pub(super) fn add(&mut self, region: Region, step: usize) {
        let (start, end) = ends(&region);
        let fresh = || WrittenRange { last: (region, step), bytes: BTreeMap::new() };
        let written = self.0.entry(home(&region)).or_insert_with(fresh);
        written.last = (region, step);
        let bytes = &mut written.bytes;
        // What sticks out of the region on either side stays.
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

    /// The last step to write into that region.
    pub(super) fn last(&self, region: &Region) -> Option<usize> {
        let (start, end) = ends(region);
        let written = self.0.get(&home(region)).filter(|_| start < end)?;
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
    fn the_last_is_that_of_a_look_through_all() {
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
            let judge = all.iter().rposition(|one: &Region| one.overlaps(&read)).filter(|_| read.bytes > 0);
            assert_eq!(writes.last(&read), judge, "step {step}: {read:?}");
            writes.add(write, step);
            all.push(write);
        }
    }
}
