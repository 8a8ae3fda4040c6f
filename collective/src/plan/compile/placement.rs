//! Where the parts lie that a rank's part refers to, and which parts these are.

use crate::plan::setup::layout::{PlacedPart, common_multiple};
use std::collections::BTreeMap;
use tasuki_core::base::Cause;
use tasuki_core::engine::executor::PerStart;
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::{Location, RankPart, StepKind, StepTrigger};

/// The addresses of a rank's part and of those that it refers to.
pub(crate) struct PlacedParts<'l> {
    /// This rank's part.
    pub(crate) own: &'l PlacedPart,
    /// The initial counters of this rank's signals.
    pub(crate) initial: &'l [u64],
    /// This rank's part and all parts that it refers to, by their rank in the schedule.
    pub(crate) others: &'l BTreeMap<u32, PlacedPart>,
}

impl PlacedParts<'_> {
    /// Returns the number of starts after which all buffers are back at their first copy. The steps of so many starts
    /// are compiled, because in each of them a buffer may have another address.
    pub(crate) fn turns(&self) -> u64 {
        self.others.values().map(|placed| placed.layout.turns).fold(1, common_multiple)
    }

    /// Returns the count that a trigger of the part waits for in a start, and in those that repeat it after `turns`
    /// starts.
    pub(crate) fn count(&self, part: &RankPart, trigger: StepTrigger, start: u64, turns: u64) -> PerStart {
        let StepTrigger { signal, count, lag } = trigger;
        let per_start = part.signal_decls()[signal.index()].per_start;
        let starts = start.wrapping_sub(lag.into()).wrapping_mul(per_start);
        let first = self.initial[signal.index()].wrapping_add(starts).wrapping_add(count);
        PerStart { first, more: turns * per_start }
    }

    /// Returns the address of a location in a start.
    pub(crate) fn byte(&self, place: Location, start: u64) -> Result<GlobalAddress, Cause> {
        let Location { rank, buffer, offset } = place;
        let home = self.placed(rank)?.layout.home(buffer, rank, start);
        Ok(self.placed(home)?.byte(buffer, offset, start))
    }

    pub(crate) fn placed(&self, rank: u32) -> Result<&PlacedPart, Cause> {
        self.others.get(&rank).ok_or_else(|| {
            Cause::Bug(format!(
                "rank {} lacks the address of the part of rank {rank} of its schedule",
                self.own.rank
            ))
        })
    }
}

/// Returns the ranks whose parts a part refers to, and its own rank.
pub(crate) fn named(part: &RankPart) -> Vec<u32> {
    let mut ranks = vec![part.rank() as u32];
    for step in part.steps() {
        ranks.extend(step.effects().map(|effect| effect.rank));
        if let StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } = step.action {
            ranks.extend([from, to].iter().flat_map(|place| homes(part, place)));
        }
    }
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Returns the ranks whose memory may hold a location. They differ if two ranks swap the buffer.
fn homes(part: &RankPart, place: &Location) -> [u32; 2] {
    let room = part.buffer_decls().get(place.buffer.index());
    [0, 1].map(|start| room.map_or(place.rank, |room| room.kind.home(place.rank, start).0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::started;

    #[test]
    fn a_rank_that_swaps_a_buffer_is_named() {
        let mut part = RankPart::new(0);
        let (data, own, stage) =
            (part.buffer("data", 8), part.scratch("own", 8, 2), part.swapped("stage", 8, 1));
        part.copy(started(), data.on(0, 0), own.on(0, 0), 8);
        assert_eq!(named(&part), [0]);
        part.copy(started(), data.on(0, 0), stage.on(0, 0), 8);
        assert_eq!(named(&part), [0, 1]);
    }
}
