//! Each rank lays its block out at its leader; leaders exchange what their nodes have at distances that double, as in
//! Bruck's algorithm; each rank copies all from its leader.
//!
//! A leader's row has the blocks from its own node's on, around the end. Two starts take it in turn: who brings a block
//! again has all of the start in between, so everybody has brought for that, and was through with the one before.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, TURNS, algorithm, leaders};
use crate::algorithm::layout::leaders::Leaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const ALLGATHER: Algorithm = algorithm(CollectiveKind::Allgather, allgather);

fn allgather(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let row = NodeBlocks { shape, nodes: leaders(shape, 0) };
    let (leader, node) = (row.nodes.leader_of(me), row.nodes.node_of(me));
    let is_leader = me == leader;
    part.buffer("data", shape.rooms(me)[0]);
    let blocks = part.scratch("row", if is_leader { shape.bytes_of_all() } else { 0 }, TURNS);
    let there = row.nodes.ranks_of(node).len() as u64;
    let come = part.signal("come", if is_leader { there } else { 0 });
    let given = part.signal("given", 1);
    let full = part.signal("full", u64::from(!is_leader));
    let pieces = row.pieces(node);
    let placed = part.signal("placed", pieces.len() as u64);
    let rounds = doublings(row.nodes.count());
    let sent = part.signal("sent", if is_leader { rounds as u64 } else { 0 });
    let arrived: Vec<SignalId> = (0..rounds).map(|_| part.signal("arrived", u64::from(is_leader))).collect();

    let (own, first) = (shape.offset_of(me), row.nodes.ranks_of(node).start);
    let at = own - shape.offset_of(first);
    part.copy(started(), DATA.on(me, own), blocks.on(leader, at), shape.bytes_of(me))
        .then(come.on(leader, 1))
        .then(given.on(me, 1));
    let mut ready = full.reaches(1);
    if is_leader {
        ready = row.exchange(blocks, come.reaches(there), (&arrived, sent), part);
        part.join(ready);
        signal_all(part, row.nodes.followers(me).map(|rank| full.on(rank, 1)));
        part.finish(sent.reaches(rounds as u64));
    }
    for &(from, to, bytes) in &pieces {
        part.copy(ready, blocks.on(leader, from), DATA.on(me, to), bytes).then(placed.on(me, 1));
    }
    part.finish(given.reaches(1));
    part.finish(placed.reaches(pieces.len() as u64));
}

/// The rows of leaders.
struct NodeBlocks<'s> {
    shape: &'s Shape,
    nodes: Leaders,
}

impl NodeBlocks<'_> {
    /// Where the data of a node begin among those of all; of the one behind the last: their end.
    fn offset(&self, node: usize) -> u64 {
        self.shape.offset_of(self.nodes.ranks_of(node).start.min(self.shape.ranks))
    }

    /// Bytes of so many nodes from that one on, around the end.
    fn bytes(&self, node: usize, count: usize) -> u64 {
        let (nodes, end) = (self.nodes.count(), node + count);
        let around = self.offset(end.saturating_sub(nodes).min(node));
        self.offset(end.min(nodes)) - self.offset(node) + around
    }

    /// What a rank of a node copies: from where in the row, to where, how much.
    fn pieces(&self, node: usize) -> Vec<(u64, u64, u64)> {
        let (own, all) = (self.offset(node), self.shape.bytes_of_all());
        let mut pieces = vec![(0, own, all - own)];
        if node > 0 {
            pieces.push((all - own, 0, own));
        }
        pieces
    }

    /// Leaders exchange what they have. When this one has all.
    fn exchange(
        &self,
        blocks: BufferId,
        first: StepTrigger,
        (arrived, sent): (&[SignalId], SignalId),
        part: &mut RankPart,
    ) -> StepTrigger {
        let (me, nodes) = (part.rank(), self.nodes.count());
        let node = self.nodes.node_of(me);
        let mut heard = first;
        for (round, arrived) in arrived.iter().enumerate() {
            let have = 1 << round;
            let to = (node + nodes - have) % nodes;
            let bytes = self.bytes(node, have.min(nodes - have));
            let there = self.nodes.rank_of(to);
            part.copy(heard, blocks.on(me, 0), blocks.on(there, self.bytes(to, have)), bytes)
                .then(arrived.on(there, 1))
                .then(sent.on(me, 1));
            heard = arrived.reaches(1);
        }
        heard
    }
}
