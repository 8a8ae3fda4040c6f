//! What is so little that its seal fits into the same line: who takes it sees by the seal that it is there.
//!
//! A line moves between processors as a whole. Bytes in one and the signal that tells of them in another are two moves;
//! where a rank lays out one line in a start, and tells of nothing else by the same signals, the number of the start
//! behind the bytes says the same.

use crate::plan::compile::steps::AllParts;
use crate::plan::setup::layout::PlacedPart;
use tasuki_core::engine::{BufferView, CachePolicy, Worker};
use tasuki_schedule::{BufferId, BufferKind, RankPart, START, Step, StepEffect, StepKind, StepTrigger};

/// Where the seal of a place lies: behind as many bytes.
pub(crate) const FLAG_OFFSET: u64 = 56;

/// What a rank seals in each start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FlaggedBuffer {
    /// The place where it lies.
    pub(crate) buffer: BufferId,
    /// The step that lays it out.
    pub(crate) step: usize,
    /// Whom it tells of that at once.
    tells: Vec<StepEffect>,
}

impl FlaggedBuffer {
    /// What a rank seals. None: it lays out nothing, more, or more often.
    pub(crate) fn of(parts: &AllParts, rank: u32) -> Option<FlaggedBuffer> {
        let part = parts.of(rank);
        let mut laid = part.steps().iter().enumerate().filter_map(|(at, step)| Some((at, lays(part, step)?)));
        let ((step, buffer), None) = (laid.next()?, laid.next()) else { return None };
        let own = |signal| signal == START || parts.raiser(rank, signal) == Some(rank);
        let at_once = part.steps()[step + 1..].iter();
        let at_once = at_once.take_while(|step| step.action == StepKind::Nothing && own(step.trigger.signal));
        let effects = part.steps()[step..=step].iter().chain(at_once).flat_map(Step::effects);
        let tells: Vec<StepEffect> = effects.filter(|effect| effect.rank != rank).collect();
        let is_little = part.rooms()[buffer.index()].bytes <= FLAG_OFFSET && !tells.is_empty();
        is_little.then_some(FlaggedBuffer { buffer, step, tells })
    }

    /// Whether a rank that waits for that to take bytes from that place may look at the seal instead.
    pub(crate) fn says(&self, rank: u32, trigger: StepTrigger, buffer: BufferId) -> bool {
        let StepTrigger { signal, count, lag } = trigger;
        buffer == self.buffer && lag == 0 && self.tells.contains(&StepEffect { rank, signal, amount: count })
    }
}

/// The place of its own where a step lays out something of the program's.
fn lays(part: &RankPart, step: &Step) -> Option<BufferId> {
    let StepKind::Copy { to, .. } = step.action else { return None };
    let is_place = part.rooms()[to.buffer.index()].used != BufferKind::User;
    (is_place && to.rank as usize == part.rank()).then_some(to.buffer)
}

/// There is no seal yet on places of this rank's own. Where they are out of reach there will be none.
pub(crate) fn open(worker: &Worker, own: &PlacedPart, part: &RankPart) {
    let zero = [0; size_of::<u64>()];
    for (buffer, room) in part.buffers() {
        let is_place = room.used != BufferKind::User && room.bytes > 0 && room.bytes <= FLAG_OFFSET;
        if is_place {
            let places = (0..room.used.times()).map(|turn| own.byte(buffer, FLAG_OFFSET, turn));
            places.for_each(|at| _ = worker.copy_out(BufferView::of(&zero), 0, at, 8, CachePolicy::Cached));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::selection::inline_schedule;
    use tasuki_schedule::{CollectiveKind, Shape};

    fn sealed(
        operation: CollectiveKind,
        ranks: usize,
        bytes: u64,
        rank: u32,
    ) -> Option<(FlaggedBuffer, RankPart)> {
        let schedule = inline_schedule(&Shape::new(operation, ranks, 0, bytes));
        let parts = AllParts::new(&schedule).expect("one rank raises each signal");
        Some((FlaggedBuffer::of(&parts, rank)?, parts.of(rank).clone()))
    }

    #[test]
    fn what_fits_a_line_and_is_laid_once_is_sealed() {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Reduce};
        let is_sealed = |operation, ranks, bytes, rank| sealed(operation, ranks, bytes, rank).is_some();
        for ranks in [2, 5] {
            assert!(is_sealed(Bcast, ranks, 56, 0) && !is_sealed(Bcast, ranks, 56, 1));
            assert!(!is_sealed(Bcast, ranks, 57, 0), "there is no room for the seal");
            assert!(is_sealed(Reduce, ranks, 8, 1) && !is_sealed(Reduce, ranks, 8, 0));
            assert!(is_sealed(Allreduce, ranks, 8, 1) && is_sealed(Allgather, ranks, 8, 1));
            assert!(!is_sealed(Barrier, ranks, 0, 1));
        }
        assert!(is_sealed(Alltoall, 2, 8, 0) && !is_sealed(Alltoall, 3, 8, 0), "it lays out twice");
    }

    #[test]
    fn a_seal_says_what_is_told_with_it_and_nothing_else() {
        let (sealed, part) = sealed(CollectiveKind::Bcast, 3, 8, 0).expect("it is sealed");
        let told = *sealed.tells.first().expect("others are told");
        let trigger = StepTrigger { signal: told.signal, count: told.amount, lag: 0 };
        assert!(sealed.says(told.rank, trigger, sealed.buffer));
        assert!(
            !sealed.says(told.rank, StepTrigger { lag: 1, ..trigger }, sealed.buffer),
            "of another start"
        );
        assert!(!sealed.says(told.rank, StepTrigger { count: 2, ..trigger }, sealed.buffer), "of more");
        assert!(!sealed.says(0, trigger, sealed.buffer), "nobody tells itself");
        let other = part.buffers().map(|(buffer, _)| buffer).find(|&buffer| buffer != sealed.buffer);
        assert!(!sealed.says(told.rank, trigger, other.expect("there is the data")), "of another place");
    }
}
