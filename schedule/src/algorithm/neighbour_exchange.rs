//! Neighbour exchange: each rank writes its blocks to their receivers as soon as these are ready.

use super::{Algorithm, CollectiveKind, Make, signal_all};
use crate::RankPart;
use crate::neighbour_graph::Edge;
use crate::shape::{Counts, DATA, RESULT, Shape};

/// Writes each block directly to its receiver.
pub(super) const DIRECT: Algorithm = Algorithm {
    name: "direct",
    collective: CollectiveKind::Neighbours,
    fits: |shape| matches!(shape.counts, Counts::Graph(_)),
    make: Make::Whole(direct),
};

fn direct(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let [data, result] = shape.buffer_bytes(me);
    part.buffer("data", data);
    part.buffer("result", result);
    let Counts::Graph(neighbours) = &shape.counts else { return };
    let to_send = |(edge, from): (Edge, u64)| BlockToSend {
        to: edge.to,
        from,
        into: neighbours.slot_offset(edge.to, edge.slot),
        bytes: edge.bytes,
    };
    let sends: Vec<BlockToSend> = neighbours.sent_blocks(me).map(to_send).collect();
    let receives: Vec<(usize, usize)> =
        neighbours.received_blocks(me).map(|received| (received.from, received.number)).collect();
    put_blocks(part, &sends, &receives, neighbours.sent_blocks_max());
}

/// A block to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockToSend {
    /// The receiver.
    pub to: usize,
    /// Offset in the sender's [`DATA`], in bytes.
    pub from: u64,
    /// Offset in the receiver's [`RESULT`], in bytes.
    pub into: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Sends the blocks `sends`, each as soon as its receiver is ready, and receives the blocks `receives`, each given by
/// its sender and its index among the blocks of the sender. `most` is the largest number of blocks that any rank sends.
pub fn put_blocks(part: &mut RankPart, sends: &[BlockToSend], receives: &[(usize, usize)], most: usize) {
    let me = part.rank();
    let arrived = part.signal("arrived", receives.len() as u64);
    let sent = part.signal("sent", sends.len() as u64);
    // One signal for each block sent: in a sum, a neighbour that is ahead would count for another.
    let ready: Vec<_> = (0..most).map(|at| part.signal("ready", u64::from(at < sends.len()))).collect();
    signal_all(part, receives.iter().map(|&(from, number)| ready[number].on(from, 1)));
    for (&BlockToSend { to, from, into, bytes }, ready) in sends.iter().zip(&ready) {
        part.copy(ready.reaches(1), DATA.on(me, from), RESULT.on(to, into), bytes)
            .then(arrived.on(to, 1))
            .then(sent.on(me, 1));
    }
    if !receives.is_empty() {
        part.finish(arrived.reaches(receives.len() as u64));
    }
    if !sends.is_empty() {
        part.finish(sent.reaches(sends.len() as u64));
    }
}
