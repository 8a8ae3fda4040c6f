//! Recursive doubling: in round i, a rank exchanges its partial result with the rank 2^i away, and both combine.
//!
//! A rank combines its partial result *into* the receive buffer with its partner's values. So it never changes data
//! while they are sent, and no round waits until the data of earlier rounds have been sent.
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use super::super::doublings;
use super::fold::{Fold, Role};
use super::{Algorithm, TURNS, algorithm};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::combining_order::is_any_grouping;
use crate::shape::{DATA, Shape};
use crate::{BufferId, Location, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const DOUBLING: Algorithm = algorithm("recursive doubling", is_any_grouping, doubling);

fn doubling(shape: &Shape, part: &mut RankPart) {
    let bytes = shape.bytes_of(0);
    part.buffer("data", bytes);
    let doubling = Doubling::declare(NodeLeaders::all(shape.ranks), bytes, part);
    match doubling.fold.role(part.rank()) {
        Role::Folded(to) => doubling.fold.send_values(to, started(), part),
        Role::Active(number, folded) => {
            let (have, ready) = doubling.exchange((number, folded), started(), part);
            let done = doubling.copy_result(have, ready, part);
            if let Some(other) = folded {
                doubling.fold.send_result(other, done, (DATA.on(part.rank(), 0), DATA), part);
            }
        }
    }
}

/// One rank's part of recursive doubling.
pub(in super::super) struct Doubling {
    pub(in super::super) fold: Fold,
    bytes: u64,
    /// One receive buffer for each round.
    places: BufferId,
    combined: SignalId,
    sent: SignalId,
    done: SignalId,
    /// One signal for each round.
    arrived: Vec<SignalId>,
}

impl Doubling {
    /// Declares the buffers and signals.
    pub(in super::super) fn declare(among: NodeLeaders, bytes: u64, part: &mut RankPart) -> Doubling {
        let me = among.number_of(part.rank()).map(|_| part.rank());
        let fold = Fold::declare(among, bytes, TURNS, part);
        let rounds = doublings(fold.active_ranks);
        let (before, sends) = match me.map(|me| fold.role(me)) {
            Some(Role::Active(_, folded)) => (u64::from(folded.is_some()), rounds as u64),
            _ => (0, 0),
        };
        let places = part.scratch("incoming", bytes * sends, TURNS);
        let combined = part.signal("combined", before + sends);
        let sent = part.signal("sent", sends);
        let done = part.signal("done", u64::from(sends > 0));
        let arrived = (0..rounds).map(|_| part.signal("arrived", u64::from(sends > 0))).collect();
        Doubling { fold, bytes, places, combined, sent, done, arrived }
    }

    /// Location of the result on a rank that takes part in the rounds, if there are any: the receive buffer of the last
    /// round.
    pub(in super::super) fn result_on(&self, rank: usize) -> Location {
        self.places.on(rank, (self.arrived.len() as u64 - 1) * self.bytes)
    }

    /// Adds all rounds, for a rank that takes part in them. Returns the location of the result, and the trigger that is
    /// met when it is there.
    pub(in super::super) fn exchange(
        &self,
        (number, folded): (usize, Option<usize>),
        values_ready: StepTrigger,
        part: &mut RankPart,
    ) -> (Location, StepTrigger) {
        let me = part.rank();
        let before = u64::from(folded.is_some());
        if folded.is_some() {
            self.fold.combine_folded(self.combined, part);
        }
        let after = |counted: u64| if counted > 0 { self.combined.reaches(counted) } else { values_ready };
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

    /// Copies the result to the data, when the values there have been sent. Returns the trigger that is met when that
    /// is done.
    pub(in super::super) fn copy_result(
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
