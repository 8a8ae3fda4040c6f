//! Scans by doubling.
//!
//! In round i, a rank sends its partial result, which covers up to 2^i ranks ending at itself, to the rank 2^i after
//! it. The receiver combines it as the left operand with its own partial result, into the receive buffer. So data are
//! not changed while they are sent.
//!
//! Source: Hillis, Steele, "Data parallel algorithms" (1986).

use crate::algorithm::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::combining_order::is_any_grouping;
use crate::shape::{DATA, Shape};
use crate::{Location, RankPart, StepTrigger, started};

/// Inclusive scan.
pub(in super::super) const INCLUSIVE: Algorithm = Algorithm {
    name: "doubling",
    collective: CollectiveKind::Scan,
    fits: is_any_grouping,
    make: Make::Whole(inclusive),
};
/// Exclusive scan: an inclusive scan over the values of the rank before.
pub(in super::super) const EXCLUSIVE: Algorithm = Algorithm {
    name: "doubling",
    collective: CollectiveKind::Exscan,
    fits: is_any_grouping,
    make: Make::Whole(exclusive),
};

/// Number of copies of a receive buffer, used by successive starts in turn.
const TURNS: u32 = 2;

fn inclusive(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    part.buffer("data", shape.bytes_of(0));
    rounds(shape, 0, DATA.on(me, 0), started(), part);
}

fn exclusive(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    part.buffer("data", bytes);
    let (has_before, has_next) = (u64::from(me > 0), u64::from(me + 1 < shape.ranks));
    let before = part.scratch("before", bytes * has_before, TURNS);
    let arrived_before = part.signal("arrived_before", has_before);
    let sent_own = part.signal("sent_own", has_next);
    let copied_out = part.signal("copied_out", has_next);
    if has_next == 1 {
        part.join(copied_out.reaches(1).lagging(TURNS));
        part.copy(started(), DATA.on(me, 0), before.on(me + 1, 0), bytes)
            .then(arrived_before.on(me + 1, 1))
            .then(sent_own.on(me, 1));
        part.finish(sent_own.reaches(1));
    }
    if has_before == 1 {
        part.join(arrived_before.reaches(1));
    }
    if has_next == 1 {
        part.join(sent_own.reaches(1)); // the result overwrites the own values
    }
    let done = rounds(shape, 1, before.on(me, 0), started(), part);
    if has_before == 1 {
        part.join(done);
        part.join(started()).then(copied_out.on(me - 1, 1));
    }
}

/// Adds an inclusive scan among the ranks from `first` on. The values of each rank lie at `operand`
/// once `ready` is met; the result goes to the data. Returns the trigger that is met when the rank
/// no longer needs `operand`.
fn rounds(
    shape: &Shape,
    first: usize,
    operand: Location,
    ready: StepTrigger,
    part: &mut RankPart,
) -> StepTrigger {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.bytes_of(0));
    let rounds = doublings(ranks - first);
    let takes_part = me >= first;
    let has_source = |round: usize| takes_part && me - first >= 1 << round;
    let has_target = |round: usize| takes_part && me + (1 << round) < ranks;
    let sources = (0..rounds).filter(|&round| has_source(round)).count() as u64;
    let targets = (0..rounds).filter(|&round| has_target(round)).count() as u64;
    let is_moved = takes_part && (first > 0 || sources > 0);
    let incoming = part.scratch("incoming", bytes * sources, TURNS);
    let combined = part.signal("combined", sources);
    let sent = part.signal("sent", targets);
    let done = part.signal("done", u64::from(is_moved));
    let arrived: Vec<_> = (0..rounds).map(|round| part.signal("arrived", has_source(round).into())).collect();
    let free: Vec<_> = (0..rounds).map(|round| part.signal("free", has_target(round).into())).collect();
    let (mut operand, mut ready, mut count) = (operand, ready, 0);
    for round in 0..rounds {
        let (target, at) = (me + (1 << round), round as u64 * bytes);
        if has_target(round) {
            part.join(free[round].reaches(1).lagging(TURNS));
            part.copy(ready, operand, incoming.on(target, at), bytes)
                .then(arrived[round].on(target, 1))
                .then(sent.on(me, 1));
        }
        if has_source(round) {
            let into = incoming.on(me, at);
            part.join(ready);
            part.reduce(arrived[round].reaches(1), operand, into, bytes, false).then(combined.on(me, 1));
            (operand, count) = (into, count + 1);
            ready = combined.reaches(count);
        }
    }
    if targets > 0 {
        part.join(sent.reaches(targets));
        part.finish(sent.reaches(targets));
    }
    if !is_moved {
        return started();
    }
    part.copy(ready, operand, DATA.on(me, 0), bytes).then(done.on(me, 1));
    part.join(done.reaches(1));
    let sources = (0..rounds).filter(|&round| has_source(round));
    signal_all(part, sources.map(|round| free[round].on(me - (1 << round), 1)));
    part.finish(done.reaches(1));
    done.reaches(1)
}
