//! Folding: reduces any number of ranks to a power of two. Of the first few pairs, the lower rank sends its values to
//! the higher one, which takes part in the rounds for both and sends the result back.

use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::shape::DATA;
use crate::{BufferId, Location, RankPart, SignalId, StepTrigger};

/// One rank's part of the folding.
pub(in super::super) struct Fold {
    among: NodeLeaders,
    bytes: u64,
    /// Number of ranks that take part in the rounds.
    pub(in super::super) active_ranks: usize,
    /// Number of pairs that are folded.
    pairs: usize,
    incoming: BufferId,
    folded: SignalId,
    /// Raised when the result has been sent back.
    pub(in super::super) result: SignalId,
    handed: SignalId,
}

/// The role of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Role {
    /// Sends its values to that rank, and gets the result from it.
    Folded(usize),
    /// Takes part in the rounds with that number, also for the other rank, if there is one.
    Active(usize, Option<usize>),
}

impl Fold {
    /// Declares the buffers and signals for `bytes` bytes. The receive buffer has `turns` copies.
    pub(super) fn declare(among: NodeLeaders, bytes: u64, turns: u32, part: &mut RankPart) -> Fold {
        let count = among.count();
        let active_ranks = if count.is_power_of_two() { count } else { count.next_power_of_two() / 2 };
        let pairs = count - active_ranks;
        let number = among.number_of(part.rank()).filter(|&number| number < 2 * pairs);
        let is_in = number.is_some_and(|number| !number.is_multiple_of(2));
        let is_out = number.is_some_and(|number| number.is_multiple_of(2));
        let incoming = part.scratch("folded", if is_in { bytes } else { 0 }, turns);
        let folded = part.signal("folded", is_in.into());
        let result = part.signal("result", is_out.into());
        let handed = part.signal("result_sent", (is_in || is_out).into());
        Fold { among, bytes, active_ranks, pairs, incoming, folded, result, handed }
    }

    /// The role of a member.
    pub(in super::super) fn role(&self, rank: usize) -> Role {
        let rank_of = |number: usize| self.among.rank_of(number);
        match self.among.node_of(rank) {
            number if number >= 2 * self.pairs => Role::Active(number - self.pairs, None),
            number if number.is_multiple_of(2) => Role::Folded(rank_of(number + 1)),
            number => Role::Active(number / 2, Some(rank_of(number - 1))),
        }
    }

    /// The rank that takes part in the rounds with that number.
    pub(super) fn rank_of(&self, number: usize) -> usize {
        let place = if number < self.pairs { 2 * number + 1 } else { number + self.pairs };
        self.among.rank_of(place)
    }

    /// Adds the steps of a rank that is folded: it sends its values once `values_ready` is met, and
    /// waits for the result.
    pub(in super::super) fn send_values(&self, to: usize, values_ready: StepTrigger, part: &mut RankPart) {
        let me = part.rank();
        part.copy(values_ready, DATA.on(me, 0), self.incoming.on(to, 0), self.bytes)
            .then(self.folded.on(to, 1))
            .then(self.handed.on(me, 1));
        part.finish(self.handed.reaches(1));
        part.finish(self.result.reaches(1));
    }

    /// Combines the values of the folded rank with the own values, and raises `combined`.
    pub(super) fn combine_folded(&self, combined: SignalId, part: &mut RankPart) {
        let me = part.rank();
        let (from, to) = (self.incoming.on(me, 0), DATA.on(me, 0));
        part.reduce(self.folded.reaches(1), from, to, self.bytes, true).then(combined.on(me, 1));
    }

    /// Sends the result, present once `when` is met, to the buffer `into` of the folded rank.
    pub(in super::super) fn send_result(
        &self,
        to: usize,
        when: StepTrigger,
        (from, into): (Location, BufferId),
        part: &mut RankPart,
    ) {
        let me = part.rank();
        part.copy(when, from, into.on(to, 0), self.bytes)
            .then(self.result.on(to, 1))
            .then(self.handed.on(me, 1));
        part.finish(self.handed.reaches(1));
    }
}
