//! Neighbour exchange: each rank writes its blocks to their receivers as soon as these are ready.

use super::{Algorithm, CollectiveKind, Make, signal_all};
use crate::RankPart;
use crate::neighbour_graph::Edge;
use crate::shape::{Counts, DATA, RESULT, Shape};

/// Writes each block directly to its receiver.
pub(super) const DIRECT: Algorithm = Algorithm {
    name: "direct",
    operation: CollectiveKind::Neighbours,
    fits: |shape| matches!(shape.counts, Counts::Graph(_)),
    make: Make::Whole(direct),
};

fn direct(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let [data, result] = shape.rooms(me);
    part.buffer("data", data);
    part.buffer("result", result);
    let Counts::Graph(neighbours) = &shape.counts else { return };
    let given = |(edge, from): (Edge, u64)| GivenBlock {
        to: edge.to,
        from,
        into: neighbours.slot_offset(edge.to, edge.slot),
        bytes: edge.bytes,
    };
    let gives: Vec<GivenBlock> = neighbours.given(me).map(given).collect();
    let gets: Vec<(usize, usize)> = neighbours.got(me).map(|got| (got.from, got.number)).collect();
    put_blocks(part, &gives, &gets, neighbours.given_max());
}

/// A block to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GivenBlock {
    /// The receiver.
    pub to: usize,
    /// Offset in the sender's [`DATA`], in bytes.
    pub from: u64,
    /// Offset in the receiver's [`RESULT`], in bytes.
    pub into: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Sends the blocks `gives`, each as soon as its receiver is ready, and receives the blocks `gets`, each given by its
/// sender and its index among the blocks of the sender. `most` is the largest number of blocks that any rank sends.
pub fn put_blocks(part: &mut RankPart, gives: &[GivenBlock], gets: &[(usize, usize)], most: usize) {
    let me = part.rank();
    let arrived = part.signal("arrived", gets.len() as u64);
    let sent = part.signal("sent", gives.len() as u64);
    // One signal for each block sent: in a sum, a neighbour that is ahead would count for another.
    let ready: Vec<_> = (0..most).map(|at| part.signal("ready", u64::from(at < gives.len()))).collect();
    signal_all(part, gets.iter().map(|&(from, number)| ready[number].on(from, 1)));
    for (&GivenBlock { to, from, into, bytes }, ready) in gives.iter().zip(&ready) {
        part.copy(ready.reaches(1), DATA.on(me, from), RESULT.on(to, into), bytes)
            .then(arrived.on(to, 1))
            .then(sent.on(me, 1));
    }
    if !gets.is_empty() {
        part.finish(arrived.reaches(gets.len() as u64));
    }
    if !gives.is_empty() {
        part.finish(sent.reaches(gives.len() as u64));
    }
}
