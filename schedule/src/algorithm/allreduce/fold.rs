//! Any number of ranks as a power of two: of the first few pairs, the lower rank hands its values to the higher one,
//! which goes on for both and hands the result back.

use crate::algorithm::layout::leaders::Leaders;
use crate::shape::DATA;
use crate::{BufferId, Location, RankPart, SignalId, StepTrigger};

/// CombineWith ranks are folded, as one of them has it.
pub(in super::super) struct Fold {
    among: Leaders,
    bytes: u64,
    /// CombineWith many go on.
    pub(in super::super) whole: usize,
    /// So many pairs become one each.
    pairs: usize,
    incoming: BufferId,
    folded: SignalId,
    /// What was handed out came back as the result.
    pub(in super::super) result: SignalId,
    handed: SignalId,
}

/// What becomes of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Role {
    /// It hands its values to that rank, and gets the result from there.
    Out(usize),
    /// It goes on with that number, for that other rank, too.
    In(usize, Option<usize>),
}

impl Fold {
    /// Names what it needs among these, each of which has so many bytes. Incoming values lie in turns.
    pub(super) fn name(among: Leaders, bytes: u64, turns: u32, part: &mut RankPart) -> Fold {
        let count = among.count();
        let whole = if count.is_power_of_two() { count } else { count.next_power_of_two() / 2 };
        let pairs = count - whole;
        let number = among.number_of(part.rank()).filter(|&number| number < 2 * pairs);
        let is_in = number.is_some_and(|number| !number.is_multiple_of(2));
        let is_out = number.is_some_and(|number| number.is_multiple_of(2));
        let incoming = part.scratch("folded", if is_in { bytes } else { 0 }, turns);
        let folded = part.signal("folded", is_in.into());
        let result = part.signal("result", is_out.into());
        let handed = part.signal("handed", (is_in || is_out).into());
        Fold { among, bytes, whole, pairs, incoming, folded, result, handed }
    }

    /// What becomes of that rank, one of these.
    pub(in super::super) fn role(&self, rank: usize) -> Role {
        let rank_of = |number: usize| self.among.rank_of(number);
        match self.among.node_of(rank) {
            number if number >= 2 * self.pairs => Role::In(number - self.pairs, None),
            number if number.is_multiple_of(2) => Role::Out(rank_of(number + 1)),
            number => Role::In(number / 2, Some(rank_of(number - 1))),
        }
    }

    /// Which rank goes on with that number.
    pub(super) fn rank_of(&self, number: usize) -> usize {
        let place = if number < self.pairs { 2 * number + 1 } else { number + self.pairs };
        self.among.rank_of(place)
    }

    /// What a rank that does not go on does: hands its values out when it has them, and gets the result.
    pub(in super::super) fn hand_out(&self, to: usize, had: StepTrigger, part: &mut RankPart) {
        let me = part.rank();
        part.copy(had, DATA.on(me, 0), self.incoming.on(to, 0), self.bytes)
            .then(self.folded.on(to, 1))
            .then(self.handed.on(me, 1));
        part.finish(self.handed.reaches(1));
        part.finish(self.result.reaches(1));
    }

    /// Combines what another handed out with the own values; `combined` counts it.
    pub(super) fn take_in(&self, combined: SignalId, part: &mut RankPart) {
        let me = part.rank();
        let (from, to) = (self.incoming.on(me, 0), DATA.on(me, 0));
        part.reduce(self.folded.reaches(1), from, to, self.bytes, true).then(combined.on(me, 1));
    }

    /// Hands the result back when it is there, to that buffer of the other.
    pub(in super::super) fn hand_back(
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
