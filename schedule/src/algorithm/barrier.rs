//! The dissemination barrier: in round i, each rank signals the rank 2^i after it and waits for the signal of the rank
//! 2^i before it.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::{RankPart, SignalId, StepTrigger, started};

/// The dissemination barrier among all ranks.
pub(super) const DISSEMINATION: Algorithm = Algorithm {
    name: "dissemination",
    collective: CollectiveKind::Barrier,
    fits: |_| true,
    make: Make::Whole(|shape, part| {
        part.buffer("data", 0);
        let rounds = declare_rounds(shape.ranks, part);
        add_rounds(&NodeLeaders::all(shape.ranks), &rounds, started(), part);
        rounds.into_iter().for_each(|round| part.finish(round.reaches(1)));
    }),
};

/// Declares the signals of the rounds.
pub(super) fn declare_rounds(ranks: usize, part: &mut RankPart) -> Vec<SignalId> {
    let rounds = ranks.next_power_of_two().trailing_zeros();
    (0..rounds).map(|_| part.signal("round", 1)).collect()
}

/// Adds a barrier to the current queue: the steps after it begin when all ranks have come to their barrier. This rank
/// comes to it once `first` is met.
pub(super) fn barrier(ranks: usize, rounds: &[SignalId], first: StepTrigger, part: &mut RankPart) {
    let arrived = add_rounds(&NodeLeaders::all(ranks), rounds, first, part);
    part.join(arrived);
}

/// Adds the rounds of one member of `among`, which begin once `first` is met. Returns the trigger that is met when all
/// members have come.
pub(super) fn add_rounds(
    among: &NodeLeaders,
    rounds: &[SignalId],
    first: StepTrigger,
    part: &mut RankPart,
) -> StepTrigger {
    let number = among.node_of(part.rank());
    let mut arrived = first;
    for (round, signal) in rounds.iter().enumerate() {
        let to = among.rank_of((number + (1 << round)) % among.count());
        part.join(arrived).then(signal.on(to, 1));
        arrived = signal.reaches(1);
    }
    arrived
}
