//! Each rank writes its block to its leader; leaders exchange the blocks of their nodes at doubling distances, as in
//! Bruck's algorithm; each rank copies all blocks from its leader.
//!
//! A leader's row begins with the blocks of its own node and wraps around. Successive starts use two copies of it in
//! turn. A rank that writes a block again has all blocks of the start in between, so all ranks have written for that
//! start and were done with the one before.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, TURNS, algorithm, leaders};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const ALLGATHER: Algorithm = algorithm(CollectiveKind::Allgather, allgather);

fn allgather(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let row = NodeBlocks { shape, nodes: leaders(shape, 0) };
    let (leader, node) = (row.nodes.leader_of(me), row.nodes.node_of(me));
    let is_leader = me == leader;
    part.buffer("data", shape.buffer_bytes(me)[0]);
    let blocks = part.scratch("row", if is_leader { shape.bytes_of_all() } else { 0 }, TURNS);
    let node_ranks = row.nodes.ranks_of(node).len() as u64;
    let arrived_on_node = part.signal("entered", if is_leader { node_ranks } else { 0 });
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
        .then(arrived_on_node.on(leader, 1))
        .then(given.on(me, 1));
    let mut ready = full.reaches(1);
    if is_leader {
        ready = row.exchange(blocks, arrived_on_node.reaches(node_ranks), (&arrived, sent), part);
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
    nodes: NodeLeaders,
}

impl NodeBlocks<'_> {
    /// Offset of the blocks of a node among the blocks of all ranks; for the node number after the last: their end.
    fn offset(&self, node: usize) -> u64 {
        self.shape.offset_of(self.nodes.ranks_of(node).start.min(self.shape.ranks))
    }

    /// Bytes of the blocks of `count` nodes from `node` on, wrapping around.
    fn bytes(&self, node: usize, count: usize) -> u64 {
        let (nodes, end) = (self.nodes.count(), node + count);
        let around = self.offset(end.saturating_sub(nodes).min(node));
        self.offset(end.min(nodes)) - self.offset(node) + around
    }

    /// The copies that a rank of a node makes from the row to its data: (source offset, destination offset, bytes).
    fn pieces(&self, node: usize) -> Vec<(u64, u64, u64)> {
        let (own, all) = (self.offset(node), self.shape.bytes_of_all());
        let mut pieces = vec![(0, own, all - own)];
        if node > 0 {
            pieces.push((all - own, 0, own));
        }
        pieces
    }

    /// Adds the exchange between leaders. Returns the trigger that is met when this leader has all blocks.
    fn exchange(
        &self,
        blocks: BufferId,
        first: StepTrigger,
        (arrived, sent): (&[SignalId], SignalId),
        part: &mut RankPart,
    ) -> StepTrigger {
        let (me, nodes) = (part.rank(), self.nodes.count());
        let node = self.nodes.node_of(me);
        let mut ready = first;
        for (round, arrived) in arrived.iter().enumerate() {
            let have = 1 << round;
            let to = (node + nodes - have) % nodes;
            let bytes = self.bytes(node, have.min(nodes - have));
            let partner = self.nodes.rank_of(to);
            part.copy(ready, blocks.on(me, 0), blocks.on(partner, self.bytes(to, have)), bytes)
                .then(arrived.on(partner, 1))
                .then(sent.on(me, 1));
            ready = arrived.reaches(1);
        }
        ready
    }
}
