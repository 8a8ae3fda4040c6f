//! One rank in the middle: everybody tells it, and it tells everybody.
//!
//! No algorithm has fewer hops, and none has a rank that does more. That suits ranks which share a node, above all more
//! ranks than processors: whoever comes last runs what is left of the rank in the middle, and each rank takes its turn
//! on a processor once.
//!
//! What comes in goes to places of the receiver's own, which starts take in turn, so nobody waits for a rank to be
//! ready; a place is used again when its owner has said, for the start so many before, that it is free. Each pair has
//! a signal for that: added up, one that is ahead would stand for another.

use super::{Algorithm, CollectiveKind, Make, signal_all};
use crate::shape::{DATA, Shape};
use crate::{RankPart, SignalId, started};

/// All tell rank 0, which tells all.
pub(super) const BARRIER: Algorithm = algorithm("central", CollectiveKind::Barrier, barrier);
/// The root lays its bytes out once, and everybody takes them from there: one copy for each, by whoever it is for.
pub(super) const STAGED: Algorithm = algorithm("staged", CollectiveKind::Bcast, staged);
/// The root gives each its bytes.
pub(super) const EAGER: Algorithm = algorithm("eager", CollectiveKind::Bcast, eager);
/// Everybody gives the root its values, which are combined outwards from its own.
pub(super) const REDUCE: Algorithm = algorithm("flat", CollectiveKind::Reduce, reduce);
/// The root combines everybody's values where they lie, and says when it has: nobody else may change them before.
pub(super) const REDUCE_DIRECT: Algorithm = algorithm("direct", CollectiveKind::Reduce, reduce_direct);
/// Everybody gives rank 0 its values, and gets the result from there.
pub(super) const ALLREDUCE: Algorithm = algorithm("flat", CollectiveKind::Allreduce, allreduce);
/// Everybody gives rank 0 its block, and gets all from there.
pub(super) const ALLGATHER: Algorithm = algorithm("flat", CollectiveKind::Allgather, allgather);

const fn algorithm(
    name: &'static str,
    operation: CollectiveKind,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, operation, fits: |_| true, make: Make::Whole(make) }
}

/// Starts that a place serves in turn.
const TURNS: u32 = 4;

fn barrier(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    part.buffer("data", 0);
    let come = part.signal("come", if me == 0 { ranks as u64 } else { 0 });
    let go = part.signal("go", 1);
    part.join(started()).then(come.on(0, 1));
    if me == 0 {
        part.join(come.reaches(ranks as u64));
        signal_all(part, (1..ranks).chain([0]).map(|rank| go.on(rank, 1)));
    }
    part.finish(go.reaches(1));
}

/// The signals by which the other ranks tell that one that its places with them, or theirs with it, are free.
fn name_free(shape: &Shape, middle: usize, part: &mut RankPart) -> Vec<SignalId> {
    let is_middle = part.rank() == middle;
    let of = |rank: usize| u64::from(is_middle && rank != middle);
    (0..shape.ranks).map(|rank| part.signal("free", of(rank))).collect()
}

fn others(shape: &Shape, middle: usize) -> impl Iterator<Item = usize> + use<> {
    (0..shape.ranks).filter(move |&rank| rank != middle)
}

fn staged(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let is_root = me == root;
    part.buffer("data", bytes);
    let stage = part.scratch("stage", if is_root { bytes } else { 0 }, TURNS);
    let laid = part.signal("copied_in", u64::from(is_root));
    let staged = part.signal("staged", u64::from(!is_root));
    let taken = part.signal("taken", u64::from(!is_root));
    let free = name_free(shape, root, part);
    if !is_root {
        part.copy(staged.reaches(1), stage.on(root, 0), DATA.on(me, 0), bytes)
            .then(taken.on(me, 1))
            .then(free[me].on(root, 1));
        part.finish(taken.reaches(1));
        return;
    }
    for rank in others(shape, root) {
        part.join(free[rank].reaches(1).lagging(TURNS));
    }
    part.copy(started(), DATA.on(me, 0), stage.on(me, 0), bytes).then(laid.on(me, 1));
    part.join(laid.reaches(1));
    signal_all(part, others(shape, root).map(|rank| staged.on(rank, 1)));
    part.finish(laid.reaches(1));
}

fn eager(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    let place = part.scratch("place", if is_root { 0 } else { bytes }, TURNS);
    let arrived = part.signal("arrived", u64::from(!is_root));
    let taken = part.signal("taken", u64::from(!is_root));
    let sent = part.signal("sent", if is_root { count } else { 0 });
    let free = name_free(shape, root, part);
    if !is_root {
        part.copy(arrived.reaches(1), place.on(me, 0), DATA.on(me, 0), bytes)
            .then(taken.on(me, 1))
            .then(free[me].on(root, 1));
        part.finish(taken.reaches(1));
        return;
    }
    for rank in others(shape, root) {
        part.copy(free[rank].reaches(1).lagging(TURNS), DATA.on(me, 0), place.on(rank, 0), bytes)
            .then(arrived.on(rank, 1))
            .then(sent.on(me, 1));
    }
    if count > 0 {
        part.finish(sent.reaches(count));
    }
}

/// All ranks but that one, outwards from it, and whether they come before it.
fn outwards(ranks: usize, middle: usize) -> impl Iterator<Item = (usize, bool)> {
    let before = (0..middle).rev().map(|from| (from, true));
    before.chain((middle + 1..ranks).map(|from| (from, false)))
}

/// Combines what all others bring with the data of the rank in the middle, in the order of ranks: those before it from
/// the nearest on, in front; then those after it. What each step raises besides, by whose values it combined. The last
/// one says so.
fn combine(
    shape: &Shape,
    middle: usize,
    arrived: &[SignalId],
    (places, combined): (crate::BufferId, SignalId),
    free: Option<SignalId>,
    part: &mut RankPart,
) {
    let bytes = shape.bytes_of(0);
    for (number, (from, in_front)) in outwards(shape.ranks, middle).enumerate() {
        let place = places.on(middle, from as u64 * bytes);
        let step = part.reduce(arrived[from].reaches(1), place, DATA.on(middle, 0), bytes, in_front);
        if let Some(free) = free {
            step.then(free.on(from, 1));
        }
        if number + 2 == shape.ranks {
            step.then(combined.on(middle, 1));
        }
    }
}

fn reduce(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    let places = part.scratch("places", if is_root { bytes * shape.ranks as u64 } else { 0 }, TURNS);
    let combined = part.signal("combined", u64::from(is_root && count > 0));
    let free = part.signal("free", u64::from(!is_root));
    let sent = part.signal("sent", u64::from(!is_root));
    let arrived = name_free(shape, root, part);
    if is_root {
        combine(shape, root, &arrived, (places, combined), Some(free), part);
        if count > 0 {
            part.finish(combined.reaches(1));
        }
        return;
    }
    part.copy(free.reaches(1).lagging(TURNS), DATA.on(me, 0), places.on(root, me as u64 * bytes), bytes)
        .then(arrived[me].on(root, 1))
        .then(sent.on(me, 1));
    part.finish(sent.reaches(1));
}

fn reduce_direct(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    // One signal for all: who comes again has been told, and so all had come.
    let come = part.signal("come", if is_root { count } else { 0 });
    let taken = part.signal("taken", u64::from(!is_root));
    let combined = part.signal("combined", u64::from(is_root && count > 0));
    if !is_root {
        part.join(started()).then(come.on(root, 1));
        part.finish(taken.reaches(1));
        return;
    }
    for (number, (from, in_front)) in outwards(shape.ranks, root).enumerate() {
        let step = part.reduce(come.reaches(count), DATA.on(from, 0), DATA.on(root, 0), bytes, in_front);
        step.then(taken.on(from, 1));
        if number + 2 == shape.ranks {
            step.then(combined.on(root, 1));
        }
    }
    if count > 0 {
        part.finish(combined.reaches(1));
    }
}

fn allreduce(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let (is_middle, count) = (me == 0, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    // Once: who brings values again has the result, for which all were combined.
    let places = part.scratch("places", if is_middle { bytes * shape.ranks as u64 } else { 0 }, 1);
    let combined = part.signal("combined", u64::from(is_middle && count > 0));
    let sent = part.signal("sent", if is_middle { count } else { 1 });
    let result = part.signal("result", u64::from(!is_middle));
    let arrived = name_free(shape, 0, part);
    if !is_middle {
        part.copy(started(), DATA.on(me, 0), places.on(0, me as u64 * bytes), bytes)
            .then(arrived[me].on(0, 1))
            .then(sent.on(me, 1));
        part.finish(sent.reaches(1));
        part.finish(result.reaches(1));
        return;
    }
    combine(shape, 0, &arrived, (places, combined), None, part);
    for rank in others(shape, 0) {
        part.copy(combined.reaches(1), DATA.on(0, 0), DATA.on(rank, 0), bytes)
            .then(result.on(rank, 1))
            .then(sent.on(0, 1));
    }
    if count > 0 {
        part.finish(sent.reaches(count));
    }
}

fn allgather(shape: &Shape, part: &mut RankPart) {
    let (me, ranks, all) = (part.rank(), shape.ranks as u64, shape.bytes_of_all());
    let is_middle = me == 0;
    part.buffer("data", shape.rooms(me)[0]);
    // Twice: one that has all may bring its next block while others are still given theirs.
    let row = part.scratch("row", if is_middle { all } else { 0 }, 2);
    let come = part.signal("come", if is_middle { ranks } else { 0 });
    let given = part.signal("given", 1);
    let gathered = part.signal("gathered", 1);
    let sent = part.signal("sent", if is_middle { ranks } else { 0 });
    let at = shape.offset_of(me);
    part.copy(started(), DATA.on(me, at), row.on(0, at), shape.bytes_of(me))
        .then(come.on(0, 1))
        .then(given.on(me, 1));
    if is_middle {
        for rank in 0..shape.ranks {
            part.copy(come.reaches(ranks), row.on(0, 0), DATA.on(rank, 0), all)
                .then(gathered.on(rank, 1))
                .then(sent.on(0, 1));
        }
        part.finish(sent.reaches(ranks));
    }
    part.finish(given.reaches(1));
    part.finish(gathered.reaches(1));
}
