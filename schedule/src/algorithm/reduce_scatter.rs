//! Reduce-scatter algorithms: each rank gets its block of the combined values, in place.

use super::{Algorithm, CollectiveKind, Make};
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

/// Each rank sends each block to its owner, which combines the blocks in the order of ranks.
pub(super) const PAIRWISE: Algorithm = algorithm("pairwise", |_| true, pairwise);
/// Ring: a block is combined from rank to rank, and ends at its owner. The operation must commute.
///
/// Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).
pub(super) const RING: Algorithm = algorithm("ring", |shape| !shape.in_order, ring);

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
    let (ranks, me) = (shape.ranks, part.rank());
    let (count, own) = (ranks as u64 - 1, shape.bytes_of(me));
    part.buffer("data", shape.buffer_bytes(me)[0]);
    // The receive buffer holds the block of the rank before this one first, then that of the rank before that one, and
    // so on.
    let incoming = part.scratch("incoming", own * count, TURNS);
    let sent = part.signal("sent", count);
    let combined = part.signal("combined", u64::from(count > 0));
    let arrived: Vec<_> = (1..ranks).map(|_| part.signal("arrived", 1)).collect();
    for step in 1..ranks {
        let to = (me + step) % ranks;
        let (at, bytes) = (shape.offset_of(to), shape.bytes_of(to));
        part.copy(started(), DATA.on(me, at), incoming.on(to, (step as u64 - 1) * bytes), bytes)
            .then(arrived[step - 1].on(to, 1))
            .then(sent.on(me, 1));
    }
    // Outwards from the own block: blocks of the ranks before as left operands, then those of the ranks after.
    let sources = (0..me).rev().map(|from| (from, true)).chain((me + 1..ranks).map(|from| (from, false)));
    let into = DATA.on(me, shape.offset_of(me));
    for (at, (from, in_front)) in sources.enumerate() {
        let step = (me + ranks - from) % ranks;
        let place = incoming.on(me, (step as u64 - 1) * own);
        let reduction = part.reduce(arrived[step - 1].reaches(1), place, into, own, in_front);
        if at + 2 == ranks {
            reduction.then(combined.on(me, 1));
        }
    }
    if count > 0 {
        part.finish(sent.reaches(count));
        part.finish(combined.reaches(1));
    }
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
