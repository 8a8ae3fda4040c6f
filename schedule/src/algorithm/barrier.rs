//! The dissemination barrier: in round i each rank tells the one 2^i further on, and hears from the one 2^i before it.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::layout::leaders::Leaders;
use crate::{RankPart, SignalId, StepTrigger, started};

/// Rounds of telling and hearing.
pub(super) const DISSEMINATION: Algorithm = Algorithm {
    name: "dissemination",
    operation: CollectiveKind::Barrier,
    fits: |_| true,
    make: Make::Whole(|shape, part| {
        part.buffer("data", 0);
        let rounds = name_rounds(shape.ranks, part);
        tell_rounds(&Leaders::all(shape.ranks), &rounds, started(), part);
        rounds.into_iter().for_each(|round| part.finish(round.reaches(1)));
    }),
};

/// Names the signals of the rounds.
pub(super) fn name_rounds(ranks: usize, part: &mut RankPart) -> Vec<SignalId> {
    let rounds = ranks.next_power_of_two().trailing_zeros();
    (0..rounds).map(|_| part.signal("round", 1)).collect()
}

/// What comes behind these steps in their queue begins when all ranks have come there, and that has happened.
pub(super) fn meet(ranks: usize, rounds: &[SignalId], first: StepTrigger, part: &mut RankPart) {
    let heard = tell_rounds(&Leaders::all(ranks), rounds, first, part);
    part.join(heard);
}

/// One of these ranks tells in each round, when it has heard in the one before. When it has heard of all others.
pub(super) fn tell_rounds(
    among: &Leaders,
    rounds: &[SignalId],
    first: StepTrigger,
    part: &mut RankPart,
) -> StepTrigger {
    let number = among.node_of(part.rank());
    let mut heard = first;
    for (round, signal) in rounds.iter().enumerate() {
        let to = among.rank_of((number + (1 << round)) % among.count());
        part.join(heard).then(signal.on(to, 1));
        heard = signal.reaches(1);
    }
    heard
}
