//! Recursive doubling: in round i a rank exchanges all that it has with the one 2^i away, and both combine.
//!
//! What a rank has come to it combines *into* the place where its partner's values arrived, so what it sends is never
//! changed while it is read, and no round waits for what was sent to be gone.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use super::super::doublings;
use super::fold::{Fold, Role};
use super::{Algorithm, TURNS, algorithm};
use crate::algorithm::layout::leaders::Leaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, Location, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const DOUBLING: Algorithm = algorithm("recursive doubling", |_| true, doubling);

fn doubling(shape: &Shape, part: &mut RankPart) {
    let bytes = shape.bytes_of(0);
    part.buffer("data", bytes);
    let doubling = Doubling::name(Leaders::all(shape.ranks), bytes, part);
    match doubling.fold.role(part.rank()) {
        Role::Out(to) => doubling.fold.hand_out(to, started(), part),
        Role::In(number, folded) => {
            let (have, ready) = doubling.exchange((number, folded), started(), part);
            let done = doubling.keep(have, ready, part);
            if let Some(other) = folded {
                doubling.fold.hand_back(other, done, (DATA.on(part.rank(), 0), DATA), part);
            }
        }
    }
}

/// Recursive doubling among some ranks, as one has it.
pub(in super::super) struct Doubling {
    pub(in super::super) fold: Fold,
    bytes: u64,
    /// A place for what comes in a round.
    places: BufferId,
    combined: SignalId,
    sent: SignalId,
    done: SignalId,
    /// One a round.
    arrived: Vec<SignalId>,
}

impl Doubling {
    /// Names what it needs.
    pub(in super::super) fn name(among: Leaders, bytes: u64, part: &mut RankPart) -> Doubling {
        let me = among.number_of(part.rank()).map(|_| part.rank());
        let fold = Fold::name(among, bytes, TURNS, part);
        let rounds = doublings(fold.whole);
        let (before, sends) = match me.map(|me| fold.role(me)) {
            Some(Role::In(_, folded)) => (u64::from(folded.is_some()), rounds as u64),
            _ => (0, 0),
        };
        let places = part.scratch("places", bytes * sends, TURNS);
        let combined = part.signal("combined", before + sends);
        let sent = part.signal("sent", sends);
        let done = part.signal("done", u64::from(sends > 0));
        let arrived = (0..rounds).map(|_| part.signal("arrived", u64::from(sends > 0))).collect();
        Doubling { fold, bytes, places, combined, sent, done, arrived }
    }

    /// Where the result lies on a rank that goes on, where there are rounds: it arrived there, and was combined.
    pub(in super::super) fn result_on(&self, rank: usize) -> Location {
        self.places.on(rank, (self.arrived.len() as u64 - 1) * self.bytes)
    }

    /// All rounds, for a rank that goes on: where the result is, and when.
    pub(in super::super) fn exchange(
        &self,
        (number, folded): (usize, Option<usize>),
        had: StepTrigger,
        part: &mut RankPart,
    ) -> (Location, StepTrigger) {
        let me = part.rank();
        let before = u64::from(folded.is_some());
        if folded.is_some() {
            self.fold.take_in(self.combined, part);
        }
        let after = |counted: u64| if counted > 0 { self.combined.reaches(counted) } else { had };
        let mut have = DATA.on(me, 0);
        for (round, arrived) in self.arrived.iter().enumerate() {
            let partner = self.fold.rank_of(number ^ (1 << round));
            let at = round as u64 * self.bytes;
            part.copy(after(before + round as u64), have, self.places.on(partner, at), self.bytes)
                .then(arrived.on(partner, 1))
                .then(self.sent.on(me, 1));
            let into = self.places.on(me, at);
            part.reduce(arrived.reaches(1), have, into, self.bytes, me < partner)
                .then(self.combined.on(me, 1));
            have = into;
        }
        (have, after(before + self.arrived.len() as u64))
    }

    /// Brings the result to the data, when what was sent from there has gone. When that is done.
    pub(in super::super) fn keep(
        &self,
        have: Location,
        ready: StepTrigger,
        part: &mut RankPart,
    ) -> StepTrigger {
        let me = part.rank();
        let rounds = self.arrived.len() as u64;
        if rounds > 0 {
            part.join(self.sent.reaches(rounds));
            part.copy(ready, have, DATA.on(me, 0), self.bytes).then(self.done.on(me, 1));
            part.finish(self.done.reaches(1));
        }
        self.done.reaches(u64::from(rounds > 0))
    }
}
