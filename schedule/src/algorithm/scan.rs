//! Scans: each rank's result is what the ranks up to it, or before it, come to.
//!
//! In round i a rank gives what it has come to, which is of the 2^i ranks up to itself, to the one 2^i after it, where
//! it is combined in front of what that has. Values are combined into the place where they arrived, so what is sent is
//! not changed while it is read.
//!
//! Source: Hillis, Steele, "Data parallel algorithms" (1986).

use super::{Algorithm, CollectiveKind, Make, doublings, signal_all};
use crate::shape::{DATA, Shape};
use crate::{Location, RankPart, StepTrigger, started};

/// Up to each rank.
pub(super) const INCLUSIVE: Algorithm = Algorithm {
    name: "doubling",
    operation: CollectiveKind::Scan,
    fits: |_| true,
    make: Make::Whole(inclusive),
};
/// Up to the one before each rank: that is a scan of the values of those before.
pub(super) const EXCLUSIVE: Algorithm = Algorithm {
    name: "doubling",
    operation: CollectiveKind::Exscan,
    fits: |_| true,
    make: Make::Whole(exclusive),
};

/// Starts that a place serves in turn.
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
    let came = part.signal("came", has_before);
    let given = part.signal("given", has_next);
    let taken = part.signal("taken", has_next);
    if has_next == 1 {
        part.join(taken.reaches(1).lagging(TURNS));
        part.copy(started(), DATA.on(me, 0), before.on(me + 1, 0), bytes)
            .then(came.on(me + 1, 1))
            .then(given.on(me, 1));
        part.finish(given.reaches(1));
    }
    if has_before == 1 {
        part.join(came.reaches(1));
    }
    if has_next == 1 {
        part.join(given.reaches(1)); // the result takes the place of the own values
    }
    let done = rounds(shape, 1, before.on(me, 0), started(), part);
    if has_before == 1 {
        part.join(done);
        part.join(started()).then(taken.on(me - 1, 1));
    }
}

/// A scan among the ranks from `first` on, of what they have at `have` when `ready`; the result goes to the data. When
/// the rank has done with `have`.
fn rounds(
    shape: &Shape,
    first: usize,
    have: Location,
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
    let places = part.scratch("places", bytes * sources, TURNS);
    let combined = part.signal("combined", sources);
    let sent = part.signal("sent", targets);
    let done = part.signal("done", u64::from(is_moved));
    let arrived: Vec<_> = (0..rounds).map(|round| part.signal("arrived", has_source(round).into())).collect();
    let free: Vec<_> = (0..rounds).map(|round| part.signal("free", has_target(round).into())).collect();
    let (mut have, mut ready, mut count) = (have, ready, 0);
    for round in 0..rounds {
        let (target, at) = (me + (1 << round), round as u64 * bytes);
        if has_target(round) {
            part.join(free[round].reaches(1).lagging(TURNS));
            part.copy(ready, have, places.on(target, at), bytes)
                .then(arrived[round].on(target, 1))
                .then(sent.on(me, 1));
        }
        if has_source(round) {
            let into = places.on(me, at);
            part.join(ready);
            part.reduce(arrived[round].reaches(1), have, into, bytes, false).then(combined.on(me, 1));
            (have, count) = (into, count + 1);
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
    part.copy(ready, have, DATA.on(me, 0), bytes).then(done.on(me, 1));
    part.join(done.reaches(1));
    let sources = (0..rounds).filter(|&round| has_source(round));
    signal_all(part, sources.map(|round| free[round].on(me - (1 << round), 1)));
    part.finish(done.reaches(1));
    done.reaches(1)
}
