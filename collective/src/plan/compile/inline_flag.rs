//! Finds data that are short enough for an inline flag: a word in the cache line of the data that shows the receiver
//! that the data have arrived.
//!
//! A cache line moves between processors as a whole. Data in one line and a signal in another are two transfers. If a
//! rank copies only one line into its buffer in a start, and raises its signals for nothing else, it can write the
//! number of the start behind the data. The receiver waits for that number instead of the signal.

use crate::plan::compile::calls::AllParts;
use crate::plan::setup::layout::PlacedPart;
use tasuki_core::engine::{BufferView, CachePolicy, Worker};
use tasuki_schedule::{BufferId, BufferKind, RankPart, START, Step, StepEffect, StepKind, StepTrigger};

/// Offset of the inline flag in a buffer: it follows this many bytes of data.
pub(crate) const FLAG_OFFSET: u64 = 56;

/// A buffer into which a rank writes an inline flag in each start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FlaggedBuffer {
    /// The buffer with the data and the flag.
    pub(crate) buffer: BufferId,
    /// The step that copies the data into the buffer.
    pub(crate) step: usize,
    /// The signals of other ranks that it raises immediately after the copy.
    raised_at_once: Vec<StepEffect>,
}

impl FlaggedBuffer {
    /// Returns the flagged buffer of a rank. None: the rank copies no data into its buffers, too many bytes, or more
    /// than once.
    pub(crate) fn of(parts: &AllParts, rank: u32) -> Option<FlaggedBuffer> {
        let part = parts.of(rank);
        let mut copies =
            part.steps().iter().enumerate().filter_map(|(at, step)| Some((at, copied_into(part, step)?)));
        let ((step, buffer), None) = (copies.next()?, copies.next()) else { return None };
        let own = |signal| signal == START || parts.raiser(rank, signal) == Some(rank);
        let at_once = part.steps()[step + 1..].iter();
        let at_once = at_once.take_while(|step| step.action == StepKind::Nothing && own(step.trigger.signal));
        let effects = part.steps()[step..=step].iter().chain(at_once).flat_map(Step::effects);
        let raised_at_once: Vec<StepEffect> = effects.filter(|effect| effect.rank != rank).collect();
        let is_little =
            part.buffer_decls()[buffer.index()].bytes <= FLAG_OFFSET && !raised_at_once.is_empty();
        is_little.then_some(FlaggedBuffer { buffer, step, raised_at_once })
    }

    /// Returns true if `rank`, which waits for `trigger` to read from `buffer`, may wait for the flag instead.
    pub(crate) fn replaces_wait(&self, rank: u32, trigger: StepTrigger, buffer: BufferId) -> bool {
        let StepTrigger { signal, count, lag } = trigger;
        buffer == self.buffer
            && lag == 0
            && self.raised_at_once.contains(&StepEffect { rank, signal, amount: count })
    }
}

/// Returns the buffer of the plan on this rank into which a step copies data, if the step does that.
fn copied_into(part: &RankPart, step: &Step) -> Option<BufferId> {
    let StepKind::Copy { to, .. } = step.action else { return None };
    let is_place = part.buffer_decls()[to.buffer.index()].kind != BufferKind::User;
    (is_place && to.rank as usize == part.rank()).then_some(to.buffer)
}

/// Clears the flags in this rank's own buffers. Failures are ignored: if this rank cannot access the buffers by loads
/// and stores, no flags are used.
pub(crate) fn clear(worker: &Worker, own: &PlacedPart, part: &RankPart) {
    let zero = [0; size_of::<u64>()];
    for (buffer, room) in part.buffers() {
        let is_place = room.kind != BufferKind::User && room.bytes > 0 && room.bytes <= FLAG_OFFSET;
        if is_place {
            let places = (0..room.kind.times()).map(|turn| own.byte(buffer, FLAG_OFFSET, turn));
            places.for_each(|at| _ = worker.copy_out(BufferView::of(&zero), 0, at, 8, CachePolicy::Cached));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::selection::calling_thread_schedule;
    use tasuki_schedule::{CollectiveKind, Shape};

    fn flagged(
        collective: CollectiveKind,
        ranks: usize,
        bytes: u64,
        rank: u32,
    ) -> Option<(FlaggedBuffer, RankPart)> {
        let schedule = calling_thread_schedule(&Shape::new(collective, ranks, 0, bytes));
        let parts = AllParts::new(&schedule).expect("one rank raises each signal");
        Some((FlaggedBuffer::of(&parts, rank)?, parts.of(rank).clone()))
    }

    #[test]
    fn what_fits_a_line_and_is_copied_in_once_is_flagged() {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Reduce};
        let is_flagged = |collective, ranks, bytes, rank| flagged(collective, ranks, bytes, rank).is_some();
        for ranks in [2, 5] {
            assert!(is_flagged(Bcast, ranks, 56, 0) && !is_flagged(Bcast, ranks, 56, 1));
            assert!(!is_flagged(Bcast, ranks, 57, 0), "there is no room for the flag");
            assert!(is_flagged(Reduce, ranks, 8, 1) && !is_flagged(Reduce, ranks, 8, 0));
            assert!(is_flagged(Allreduce, ranks, 8, 1) && is_flagged(Allgather, ranks, 8, 1));
            assert!(!is_flagged(Barrier, ranks, 0, 1));
        }
        assert!(is_flagged(Alltoall, 2, 8, 0) && !is_flagged(Alltoall, 3, 8, 0), "it copies in twice");
    }

    #[test]
    fn a_flag_replaces_the_waits_for_what_is_raised_with_it_and_no_other() {
        let (flagged, part) = flagged(CollectiveKind::Bcast, 3, 8, 0).expect("it is flagged");
        let raised = *flagged.raised_at_once.first().expect("it raises signals of other ranks");
        let trigger = StepTrigger { signal: raised.signal, count: raised.amount, lag: 0 };
        assert!(flagged.replaces_wait(raised.rank, trigger, flagged.buffer));
        assert!(
            !flagged.replaces_wait(raised.rank, StepTrigger { lag: 1, ..trigger }, flagged.buffer),
            "of another start"
        );
        assert!(
            !flagged.replaces_wait(raised.rank, StepTrigger { count: 2, ..trigger }, flagged.buffer),
            "of more"
        );
        assert!(!flagged.replaces_wait(0, trigger, flagged.buffer), "no rank raises its own signal");
        let other = part.buffers().map(|(buffer, _)| buffer).find(|&buffer| buffer != flagged.buffer);
        assert!(
            !flagged.replaces_wait(raised.rank, trigger, other.expect("there is the data")),
            "of another place"
        );
    }
}
