//! Exchanges among neighbours: each puts its blocks where they belong as soon as all of its neighbours are ready.

use super::{Algorithm, Make, Operation, tell_all};
use crate::collective::shape::{Counts, DATA, RESULT, Shape};
use crate::schedule::Part;

/// Straight to each.
pub(super) const DIRECT: Algorithm = Algorithm {
    name: "direct",
    operation: Operation::Neighbours,
    fits: |shape| matches!(shape.counts, Counts::Graph(_)),
    make: Make::Whole(direct),
};

fn direct(shape: &Shape, part: &mut Part) {
    let me = part.rank();
    let [data, result] = shape.rooms(me);
    part.buffer("data", data);
    part.buffer("result", result);
    let Counts::Graph(neighbours) = &shape.counts else { return };
    let (gives, gets) = (neighbours.given(me).count() as u64, neighbours.got(me).count() as u64);
    let arrived = part.signal("arrived", gets);
    let sent = part.signal("sent", gives);
    // One for each block that is given: one neighbour that is ahead would stand for another.
    let most = (0..shape.ranks).map(|rank| neighbours.given(rank).count()).max().unwrap_or(0);
    let ready: Vec<_> = (0..most as u64).map(|at| part.signal("ready", u64::from(at < gives))).collect();
    tell_all(part, neighbours.got(me).map(|got| ready[got.number].on(got.from, 1)));
    for ((edge, at), ready) in neighbours.given(me).zip(&ready) {
        let into = neighbours.slot_offset(edge.to, edge.slot);
        part.copy(ready.reaches(1), DATA.on(me, at), RESULT.on(edge.to, into), edge.bytes)
            .then(arrived.on(edge.to, 1))
            .then(sent.on(me, 1));
    }
    if gets > 0 {
        part.finish(arrived.reaches(gets));
    }
    if gives > 0 {
        part.finish(sent.reaches(gives));
    }
}
