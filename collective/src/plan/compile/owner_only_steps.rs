//! Chooses the steps that only their own rank runs.
//!
//! A rank that raises a signal also runs the commands that wait for it, so that they run even if their owner computes.
//! This is useless if no other rank waits for the result, for example if a step copies received data to where its rank
//! reads them later. Such a step is left to its rank, which runs it when it waits, and the rank that raises the signal
//! does no additional work. A step is not urgent either if it only releases a buffer that a later start needs, because
//! the rank itself must make that start.

use crate::plan::compile::placement::PlacedParts;
use crate::plan::setup::layout::PlacedPart;
use tasuki_schedule::{RankPart, Step, StepKind, StepTrigger};

/// Longer copies are not left to their rank: another rank can run them while it computes.
const SHORT: u64 = 2048;

/// Returns for each signal of a part: true if neither a step nor the end of the same start waits for it.
pub(crate) fn late_signals(part: &RankPart) -> Box<[bool]> {
    let triggers =
        part.steps().iter().map(|step| step.trigger).chain(part.finish_conditions().iter().copied());
    without(part, triggers)
}

/// Returns for each signal of a part: true if no step in the same start waits for it.
pub(crate) fn signals_without_steps(part: &RankPart) -> Box<[bool]> {
    without(part, part.steps().iter().map(|step| step.trigger))
}

fn without(part: &RankPart, triggers: impl Iterator<Item = StepTrigger>) -> Box<[bool]> {
    let mut are_late = vec![true; part.signal_decls().len()];
    triggers.filter(|trigger| trigger.lag == 0).for_each(|trigger| are_late[trigger.signal.index()] = false);
    are_late.into()
}

impl PlacedParts<'_> {
    /// Returns for each step of a queue, in order: true if it is left to its rank, because no other rank waits for it
    /// or for a later step of the queue in the same start.
    pub(crate) fn left_to_owner(&self, part: &RankPart, steps: &[&Step]) -> Vec<bool> {
        let own = signals_without_steps(part);
        let mut are_left = vec![false; steps.len()];
        for (is_left, step) in are_left.iter_mut().zip(steps).rev() {
            if !self.may_be_left(part, step, &own) {
                break;
            }
            *is_left = true;
        }
        are_left
    }

    fn may_be_left(&self, part: &RankPart, step: &Step, own: &[bool]) -> bool {
        let is_own = |rank: u32| rank as usize == part.rank();
        let stays = match step.action {
            StepKind::Nothing => true,
            StepKind::Copy { to, bytes, .. } | StepKind::Reduce { to, bytes, .. } => {
                is_own(to.rank) && bytes <= SHORT
            }
        };
        let is_late = |placed: &PlacedPart, signal: usize| placed.late.get(signal).is_some_and(|&late| late);
        stays
            && step.effects().all(|effect| match is_own(effect.rank) {
                true => own[effect.signal.index()],
                false => {
                    let placed = self.others.get(&effect.rank);
                    placed.is_some_and(|placed| is_late(placed, effect.signal.index()))
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::compile::placement::named;
    use crate::plan::setup::layout::{DataPlacement, PlanAddress};
    use std::collections::BTreeMap;
    use tasuki_core::base::Rank;
    use tasuki_schedule::algorithm::ALGORITHMS;
    use tasuki_schedule::{CollectiveKind, Shape};

    /// Returns for each command of a rank that waits for something: true if it is left to its rank.
    fn left(collective: CollectiveKind, name: &str, rank: usize) -> Vec<bool> {
        let shape = Shape::new(collective, 4, 0, 8);
        let found = ALGORITHMS.iter().find(|one| (one.collective, one.name) == (collective, name));
        let schedule = found.expect("there is one").schedule(&shape, 1);
        let placed = |rank: u32| {
            PlacedPart::new(
                Rank::from_word(rank),
                PlanAddress { block: 0, signals: 0, starts: 0 },
                &schedule.part(rank as usize),
                DataPlacement::OfPlan,
            )
        };
        let part = schedule.part(rank);
        let others: BTreeMap<u32, PlacedPart> =
            named(&part).into_iter().map(|rank| (rank, placed(rank))).collect();
        let initial = vec![0; part.signal_decls().len()];
        let own = placed(rank as u32);
        let parts = PlacedParts { own: &own, initial: &initial, others: &others };
        let queues = parts.compile_queues(&part, None).expect("it can be compiled");
        let steps = queues.iter().flat_map(|queue| &queue.steps);
        steps.filter(|spec| spec.wait.is_some()).map(|spec| spec.is_left_to_owner).collect()
    }

    #[test]
    fn a_step_is_left_unless_other_ranks_wait_for_it() {
        let is_so = |all: Vec<bool>, how: bool| !all.is_empty() && all.into_iter().all(|is| is == how);
        assert!(
            is_so(left(CollectiveKind::Bcast, "eager", 0), false),
            "places that are free let the root go on"
        );
        assert!(is_so(left(CollectiveKind::Bcast, "eager", 1), true), "a leaf has nobody behind it");
        assert!(left(CollectiveKind::Bcast, "binary", 1).contains(&false), "in a tree others wait");
        assert!(
            left(CollectiveKind::Barrier, "central", 0).contains(&false),
            "others wait for the one in the middle"
        );
    }
}
