//! Ring: each part of the values is combined from rank to rank around the ring, then distributed from rank to rank.
//!
//! Different parts are combined beginning at different ranks, so the operation must commute.
//!
//! Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009).

use super::{Algorithm, TURNS, algorithm};
use crate::combining_order;
use crate::shape::{DATA, Shape};
use crate::{RankPart, started};

pub(in super::super) const RING: Algorithm =
    algorithm("ring", |shape| !combining_order::is_demanded(shape), ring);

fn ring(shape: &Shape, part: &mut RankPart) {
    let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.bytes_of(0));
    let steps = ranks - 1;
    let (next, count) = ((me + 1) % ranks, steps as u64);
    part.buffer("data", bytes);
    let incoming = part.scratch("incoming", if steps > 0 { bytes } else { 0 }, TURNS);
    let arrived = part.signal("arrived", count);
    let combined = part.signal("combined", count);
    let gathered = part.signal("gathered", count);
    let sent = part.signal("sent", 2 * count);
    let cut = |block: usize| shape.cut(bytes, ranks as u64, block as u64);
    let part_of = |block: usize| (cut(block), cut(block + 1) - cut(block));
    for step in 0..steps {
        let ready = if step == 0 { started() } else { combined.reaches(step as u64) };
        let (at, len) = part_of((me + ranks - step) % ranks);
        part.copy(ready, DATA.on(me, at), incoming.on(next, at), len)
            .then(arrived.on(next, 1))
            .then(sent.on(me, 1));
        let (at, len) = part_of((me + 2 * ranks - step - 1) % ranks);
        part.reduce(arrived.reaches(step as u64 + 1), incoming.on(me, at), DATA.on(me, at), len, true)
            .then(combined.on(me, 1));
    }
    for step in 0..steps {
        let ready = if step == 0 { combined.reaches(count) } else { gathered.reaches(step as u64) };
        let (at, len) = part_of((me + 1 + ranks - step) % ranks);
        part.copy(ready, DATA.on(me, at), DATA.on(next, at), len)
            .then(gathered.on(next, 1))
            .then(sent.on(me, 1));
    }
    if steps > 0 {
        part.finish(gathered.reaches(count));
        part.finish(sent.reaches(2 * count));
    }
}
