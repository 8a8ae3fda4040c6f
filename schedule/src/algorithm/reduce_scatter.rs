//! Reduce-scatter algorithms: each rank gets its block of the combined values, in place.

use super::{Algorithm, CollectiveKind, Make};
use crate::algorithm::layout::incoming_values::combine_incoming;
use crate::combining_order;
use crate::shape::{DATA, Shape};
use crate::{RankPart, StepTrigger, started};

/// Each rank sends each block to its owner, which combines the blocks.
pub(super) const PAIRWISE: Algorithm = algorithm("pairwise", |_| true, pairwise);
/// Ring: a block is combined from rank to rank, and ends at its owner. Each block is combined in another order.
///
/// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).
pub(super) const RING: Algorithm = algorithm("ring", |shape| !combining_order::is_demanded(shape), ring);

const fn algorithm(
    name: &'static str,
    fits: fn(&Shape) -> bool,
    make: fn(&Shape, &mut RankPart),
) -> Algorithm {
    Algorithm { name, collective: CollectiveKind::ReduceScatter, fits, make: Make::Whole(make) }
}

/// Number of copies of a receive buffer, used by successive starts in turn.
const TURNS: u32 = 2;

fn pairwise(shape: &Shape, part: &mut RankPart) {
    part.buffer("data", shape.buffer_bytes(part.rank())[0]);
    let blocks: Vec<(u64, u64)> =
        (0..shape.ranks).map(|rank| (shape.offset_of(rank), shape.bytes_of(rank))).collect();
    pairwise_steps(&blocks, part);
}

/// Adds the steps of a pairwise reduce-scatter. `blocks` holds offset and size of the block of each rank. Returns the
/// trigger that is met when the own block is combined.
pub(super) fn pairwise_steps(blocks: &[(u64, u64)], part: &mut RankPart) -> StepTrigger {
    let (ranks, me) = (blocks.len(), part.rank());
    let (count, (own_at, own)) = (ranks as u64 - 1, blocks[me]);
    // The receive buffer holds the block of the rank before this one first, then that of the rank before that one, and
    // so on.
    let incoming = part.scratch("incoming", own * count, TURNS);
    let sent = part.signal("sent", count);
    let combined = part.signal("combined", u64::from(count > 0));
    let arrived: Vec<_> = (1..ranks).map(|_| part.signal("arrived", 1)).collect();
    for step in 1..ranks {
        let to = (me + step) % ranks;
        let (at, bytes) = blocks[to];
        part.copy(started(), DATA.on(me, at), incoming.on(to, (step as u64 - 1) * bytes), bytes)
            .then(arrived[step - 1].on(to, 1))
            .then(sent.on(me, 1));
    }
    let step = |from: usize| (me + ranks - from) % ranks;
    let place = |from: usize| match step(from) {
        0 => DATA.on(me, own_at),
        step => incoming.on(me, (step as u64 - 1) * own),
    };
    let arrived = |from: usize| arrived[step(from) - 1].reaches(1);
    combine_incoming((ranks, own), place, arrived, part, |step, _, is_last| {
        if is_last {
            step.then(combined.on(me, 1));
        }
    });
    if count == 0 {
        return started();
    }
    part.finish(sent.reaches(count));
    part.finish(combined.reaches(1));
    combined.reaches(1)
}

fn ring(shape: &Shape, part: &mut RankPart) {
    let (ranks, me) = (shape.ranks, part.rank());
    let (steps, next) = (ranks - 1, (me + 1) % ranks);
    let count = steps as u64;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let incoming = part.scratch("incoming", if steps > 0 { shape.bytes_of_all() } else { 0 }, TURNS);
    let arrived = part.signal("arrived", count);
    let combined = part.signal("combined", count);
    let sent = part.signal("sent", count);
    let block = |rank: usize| (shape.offset_of(rank % ranks), shape.bytes_of(rank % ranks));
    for step in 0..steps {
        let ready = if step == 0 { started() } else { combined.reaches(step as u64) };
        let (at, bytes) = block(me + 2 * ranks - step - 1);
        part.copy(ready, DATA.on(me, at), incoming.on(next, at), bytes)
            .then(arrived.on(next, 1))
            .then(sent.on(me, 1));
        let (at, bytes) = block(me + 2 * ranks - step - 2);
        part.reduce(arrived.reaches(step as u64 + 1), incoming.on(me, at), DATA.on(me, at), bytes, true)
            .then(combined.on(me, 1));
    }
    if steps > 0 {
        part.finish(sent.reaches(count));
        part.finish(combined.reaches(count));
    }
}
