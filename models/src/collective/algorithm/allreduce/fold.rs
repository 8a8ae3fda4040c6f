//! Any number of ranks as a power of two: of the first few pairs, the lower rank hands its values to the higher one,
//! which goes on for both and hands the result back.

use crate::collective::shape::{DATA, Shape};
use crate::schedule::{Buffer, Part, Signal, Trigger, started};

/// How ranks are folded, as one of them has it.
pub(super) struct Fold {
    /// How many go on.
    pub(super) whole: usize,
    /// So many pairs become one each.
    pairs: usize,
    incoming: Buffer,
    folded: Signal,
    result: Signal,
    handed: Signal,
}

/// What becomes of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// It hands its values to that rank, and gets the result from there.
    Out(usize),
    /// It goes on with that number, for that other rank, too.
    In(usize, Option<usize>),
}

impl Fold {
    /// Names what it needs. Incoming values lie in turns.
    pub(super) fn name(shape: &Shape, turns: u32, part: &mut Part) -> Fold {
        let whole =
            if shape.ranks.is_power_of_two() { shape.ranks } else { shape.ranks.next_power_of_two() / 2 };
        let pairs = shape.ranks - whole;
        let is_pair = part.rank() < 2 * pairs;
        let is_even = part.rank().is_multiple_of(2);
        let (is_in, is_out) = (is_pair && !is_even, is_pair && is_even);
        let incoming = part.scratch("folded", if is_in { shape.bytes_of(0) } else { 0 }, turns);
        let folded = part.signal("folded", is_in.into());
        let result = part.signal("result", is_out.into());
        let handed = part.signal("handed", is_pair.into());
        Fold { whole, pairs, incoming, folded, result, handed }
    }

    /// What becomes of that rank.
    pub(super) fn role(&self, rank: usize) -> Role {
        match rank {
            _ if rank >= 2 * self.pairs => Role::In(rank - self.pairs, None),
            _ if rank.is_multiple_of(2) => Role::Out(rank + 1),
            _ => Role::In(rank / 2, Some(rank - 1)),
        }
    }

    /// Which rank goes on with that number.
    pub(super) fn rank_of(&self, number: usize) -> usize {
        if number < self.pairs { 2 * number + 1 } else { number + self.pairs }
    }

    /// The whole part of a rank that does not go on.
    pub(super) fn hand_out(&self, to: usize, shape: &Shape, part: &mut Part) {
        let (me, bytes) = (part.rank(), shape.bytes_of(0));
        part.copy(started(), DATA.on(me, 0), self.incoming.on(to, 0), bytes)
            .then(self.folded.on(to, 1))
            .then(self.handed.on(me, 1));
        part.finish(self.handed.reaches(1));
        part.finish(self.result.reaches(1));
    }

    /// Combines what another handed out with the own values; `combined` counts it.
    pub(super) fn take_in(&self, combined: Signal, shape: &Shape, part: &mut Part) {
        let me = part.rank();
        let (from, to) = (self.incoming.on(me, 0), DATA.on(me, 0));
        part.reduce(self.folded.reaches(1), from, to, shape.bytes_of(0), true).then(combined.on(me, 1));
    }

    /// Hands the result back when it is there.
    pub(super) fn hand_back(&self, to: usize, when: Trigger, shape: &Shape, part: &mut Part) {
        let me = part.rank();
        part.copy(when, DATA.on(me, 0), DATA.on(to, 0), shape.bytes_of(0))
            .then(self.result.on(to, 1))
            .then(self.handed.on(me, 1));
        part.finish(self.handed.reaches(1));
    }
}
