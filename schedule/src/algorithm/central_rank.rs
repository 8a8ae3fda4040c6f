//! Algorithms with a central rank: all ranks send to it, and it sends to all.
//!
//! They have the fewest hops, and the most work on one rank. This suits ranks that share a node, especially more ranks
//! than processors: the rank that comes last runs the remaining steps of the central rank, and each rank takes its turn
//! on a processor once.
//!
//! Incoming data go to receive buffers with several copies, which successive starts use in turn, so no sender waits for
//! a rank to be ready. A copy is used again when its owner has signalled that the start which last used it is done with
//! it. Each pair of ranks has a signal for that: in a sum, a rank that is ahead would count for another.

use super::{Algorithm, CollectiveKind, Make, signal_all};
use crate::algorithm::layout::incoming_values::combine_incoming;
use crate::combining_order::{self, Combination, combinations};
use crate::shape::{DATA, Shape};
use crate::{RankPart, SignalId, started};

/// All ranks signal rank 0, which signals all.
pub(super) const BARRIER: Algorithm = algorithm("central", CollectiveKind::Barrier, barrier);
/// The root copies its bytes into one staging buffer, and each rank copies them from there.
pub(super) const STAGED: Algorithm = algorithm("staged", CollectiveKind::Bcast, staged);
/// The root writes its bytes to a receive buffer of each rank.
pub(super) const EAGER: Algorithm = algorithm("eager", CollectiveKind::Bcast, eager);
/// Each rank writes its values to the root, which combines them.
pub(super) const REDUCE: Algorithm = algorithm("flat", CollectiveKind::Reduce, reduce);
/// The root reads and combines the values of each rank in place, and signals when it is done: no rank may change its
/// values before.
pub(super) const REDUCE_DIRECT: Algorithm = Algorithm {
    fits: combining_order::is_from_the_left,
    ..algorithm("direct", CollectiveKind::Reduce, reduce_direct)
};
/// Each rank writes its values to rank 0, which writes the result to all.
pub(super) const ALLREDUCE: Algorithm = algorithm("flat", CollectiveKind::Allreduce, allreduce);
/// Each rank writes its block to rank 0, which writes all blocks to all.
pub(super) const ALLGATHER: Algorithm = algorithm("flat", CollectiveKind::Allgather, allgather);

const fn algorithm(
    name: &'static str,
    collective: CollectiveKind,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, collective, fits: |_| true, make: Make::Whole(make) }
}

/// Number of copies of a receive buffer, used by successive starts in turn.
const TURNS: u32 = 4;

fn barrier(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    part.buffer("data", 0);
    let entered = part.signal("entered", if me == 0 { ranks as u64 } else { 0 });
    let release = part.signal("release", 1);
    part.join(started()).then(entered.on(0, 1));
    if me == 0 {
        part.join(entered.reaches(ranks as u64));
        signal_all(part, (1..ranks).chain([0]).map(|rank| release.on(rank, 1)));
    }
    part.finish(release.reaches(1));
}

/// Declares one signal on rank `centre` for each other rank.
fn declare_pair_signals(shape: &Shape, centre: usize, part: &mut RankPart) -> Vec<SignalId> {
    let is_centre = part.rank() == centre;
    let of = |rank: usize| u64::from(is_centre && rank != centre);
    (0..shape.ranks).map(|rank| part.signal("free", of(rank))).collect()
}

fn others(shape: &Shape, centre: usize) -> impl Iterator<Item = usize> + use<> {
    (0..shape.ranks).filter(move |&rank| rank != centre)
}

fn staged(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let is_root = me == root;
    part.buffer("data", bytes);
    let stage = part.scratch("stage", if is_root { bytes } else { 0 }, TURNS);
    let copied_in = part.signal("copied_in", u64::from(is_root));
    let staged = part.signal("staged", u64::from(!is_root));
    let copied_out = part.signal("copied_out", u64::from(!is_root));
    let free = declare_pair_signals(shape, root, part);
    if !is_root {
        part.copy(staged.reaches(1), stage.on(root, 0), DATA.on(me, 0), bytes)
            .then(copied_out.on(me, 1))
            .then(free[me].on(root, 1));
        part.finish(copied_out.reaches(1));
        return;
    }
    for rank in others(shape, root) {
        part.join(free[rank].reaches(1).lagging(TURNS));
    }
    part.copy(started(), DATA.on(me, 0), stage.on(me, 0), bytes).then(copied_in.on(me, 1));
    part.join(copied_in.reaches(1));
    signal_all(part, others(shape, root).map(|rank| staged.on(rank, 1)));
    part.finish(copied_in.reaches(1));
}

fn eager(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    let incoming = part.scratch("incoming", if is_root { 0 } else { bytes }, TURNS);
    let arrived = part.signal("arrived", u64::from(!is_root));
    let copied_out = part.signal("copied_out", u64::from(!is_root));
    let sent = part.signal("sent", if is_root { count } else { 0 });
    let free = declare_pair_signals(shape, root, part);
    if !is_root {
        part.copy(arrived.reaches(1), incoming.on(me, 0), DATA.on(me, 0), bytes)
            .then(copied_out.on(me, 1))
            .then(free[me].on(root, 1));
        part.finish(copied_out.reaches(1));
        return;
    }
    for rank in others(shape, root) {
        part.copy(free[rank].reaches(1).lagging(TURNS), DATA.on(me, 0), incoming.on(rank, 0), bytes)
            .then(arrived.on(rank, 1))
            .then(sent.on(me, 1));
    }
    if count > 0 {
        part.finish(sent.reaches(count));
    }
}

/// Combines the incoming values with the data of rank `centre`. Each step raises `free` at the rank whose receive
/// buffer it was the last to read; the last step raises `combined`.
fn combine(
    shape: &Shape,
    centre: usize,
    arrived: &[SignalId],
    (incoming, combined): (crate::BufferId, SignalId),
    free: Option<SignalId>,
    part: &mut RankPart,
) {
    let bytes = shape.bytes_of(0);
    let place = |rank: usize| match rank == centre {
        true => DATA.on(centre, 0),
        false => incoming.on(centre, rank as u64 * bytes),
    };
    let arrived = |rank: usize| arrived[rank].reaches(1);
    combine_incoming((shape.ranks, bytes), place, arrived, part, |step, from, is_last| {
        if let Some(free) = free {
            step.then(free.on(from, 1));
        }
        if is_last {
            step.then(combined.on(centre, 1));
        }
    });
}

fn reduce(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    let incoming = part.scratch("incoming", if is_root { bytes * shape.ranks as u64 } else { 0 }, TURNS);
    let combined = part.signal("combined", u64::from(is_root && count > 0));
    let free = part.signal("free", u64::from(!is_root));
    let sent = part.signal("sent", u64::from(!is_root));
    let arrived = declare_pair_signals(shape, root, part);
    if is_root {
        combine(shape, root, &arrived, (incoming, combined), Some(free), part);
        if count > 0 {
            part.finish(combined.reaches(1));
        }
        return;
    }
    part.copy(free.reaches(1).lagging(TURNS), DATA.on(me, 0), incoming.on(root, me as u64 * bytes), bytes)
        .then(arrived[me].on(root, 1))
        .then(sent.on(me, 1));
    part.finish(sent.reaches(1));
}

fn reduce_direct(shape: &Shape, part: &mut RankPart) {
    let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
    let (is_root, count) = (me == root, shape.ranks as u64 - 1);
    let is_demanded = combining_order::is_demanded(shape);
    // The root changes no values of others, so what comes before its own values is combined in a scratch buffer.
    let has_copy = is_root && is_demanded && root > 1;
    part.buffer("data", bytes);
    let first = part.scratch("first", if has_copy { bytes } else { 0 }, 1);
    // One signal for all ranks suffices: a rank that comes again has been signalled, so all ranks had come.
    let entered = part.signal("entered", if is_root { count } else { 0 });
    let copied_out = part.signal("copied_out", u64::from(!is_root));
    let copied_in = part.signal("copied_in", u64::from(has_copy));
    let combined = part.signal("combined", u64::from(is_root && count > 0));
    if !is_root {
        part.join(started()).then(entered.on(root, 1));
        part.finish(copied_out.reaches(1));
        return;
    }
    let entered = entered.reaches(count);
    if has_copy {
        part.copy(entered, DATA.on(0, 0), first.on(me, 0), bytes)
            .then(copied_out.on(0, 1))
            .then(copied_in.on(me, 1));
        part.join(copied_in.reaches(1));
    }
    let outwards = (0..root).rev().chain(root + 1..shape.ranks);
    let outwards = outwards.map(|from| Combination { from, to: root, in_front: from < root });
    let order = if is_demanded { combinations(shape.ranks, root) } else { outwards.collect() };
    let place = |rank: usize| if has_copy && rank == 0 { first.on(me, 0) } else { DATA.on(rank, 0) };
    for (number, Combination { from, to, in_front }) in order.into_iter().enumerate() {
        let step = part.reduce(entered, place(from), place(to), bytes, in_front);
        if !has_copy || from > 0 {
            step.then(copied_out.on(from, 1));
        }
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
    let (is_centre, count) = (me == 0, shape.ranks as u64 - 1);
    part.buffer("data", bytes);
    // One copy suffices: a rank that brings values again has the result, so all values have been combined.
    let incoming = part.scratch("incoming", if is_centre { bytes * shape.ranks as u64 } else { 0 }, 1);
    let combined = part.signal("combined", u64::from(is_centre && count > 0));
    let sent = part.signal("sent", if is_centre { count } else { 1 });
    let result = part.signal("result", u64::from(!is_centre));
    let arrived = declare_pair_signals(shape, 0, part);
    if !is_centre {
        part.copy(started(), DATA.on(me, 0), incoming.on(0, me as u64 * bytes), bytes)
            .then(arrived[me].on(0, 1))
            .then(sent.on(me, 1));
        part.finish(sent.reaches(1));
        part.finish(result.reaches(1));
        return;
    }
    combine(shape, 0, &arrived, (incoming, combined), None, part);
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
    let is_centre = me == 0;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    // Two copies: a rank that has all blocks may bring its next one while the result still goes to others.
    let row = part.scratch("row", if is_centre { all } else { 0 }, 2);
    let entered = part.signal("entered", if is_centre { ranks } else { 0 });
    let given = part.signal("given", 1);
    let gathered = part.signal("gathered", 1);
    let sent = part.signal("sent", if is_centre { ranks } else { 0 });
    let at = shape.offset_of(me);
    part.copy(started(), DATA.on(me, at), row.on(0, at), shape.bytes_of(me))
        .then(entered.on(0, 1))
        .then(given.on(me, 1));
    if is_centre {
        for rank in 0..shape.ranks {
            part.copy(entered.reaches(ranks), row.on(0, 0), DATA.on(rank, 0), all)
                .then(gathered.on(rank, 1))
                .then(sent.on(0, 1));
        }
        part.finish(sent.reaches(ranks));
    }
    part.finish(given.reaches(1));
    part.finish(gathered.reaches(1));
}
