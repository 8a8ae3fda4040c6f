//! The bytes go down a binomial tree of leaders, and each rank copies them from its leader; the root copies them into a
//! staging buffer for its node.
//!
//! Leaders receive into scratch buffers, which successive starts use in turn, so no sender waits for a rank to be
//! ready. A leader allows its parent to write a copy again when all ranks of its node have copied and it has sent to
//! all its children. It does so in a queue of its own, so a slow rank delays only the start that would write this copy.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, TURNS, algorithm, leaders};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::algorithm::layout::tree::Tree;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const BCAST: Algorithm = algorithm(CollectiveKind::Bcast, bcast);

fn bcast(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let nodes = leaders(shape, shape.root);
    let tree = BroadcastTree::declare(shape, nodes, part);
    if me == shape.root {
        tree.send(started(), part);
        tree.copy_in(part);
        return;
    }
    if me == nodes.leader_of(me) {
        let there = tree.there.reaches(1);
        tree.send(there, part);
        tree.signal_node(there, part);
        part.copy(there, tree.place.on(me, 0), DATA.on(me, 0), bytes).then(tree.copied_out.on(me, 1));
        tree.signal_free(part);
    } else {
        let leader = nodes.leader_of(me);
        part.copy(tree.available.reaches(1), tree.place.on(leader, 0), DATA.on(me, 0), bytes)
            .then(tree.copied_out.on(me, 1))
            .then(tree.copied[nodes.index_on_node(me)].on(leader, 1));
    }
    part.finish(tree.copied_out.reaches(1));
}

/// One rank's part of the broadcast.
struct BroadcastTree {
    nodes: NodeLeaders,
    root: usize,
    bytes: u64,
    /// The children of a leader, each with its index: the child with the largest subtree comes first.
    children: Vec<(usize, usize)>,
    place: BufferId,
    /// Raised when the bytes have arrived in `place`.
    there: SignalId,
    available: SignalId,
    copied_out: SignalId,
    sent: SignalId,
    /// For each rank of the node: raised when it has copied.
    copied: Vec<SignalId>,
    /// For each child: raised when its buffer is free.
    free: Vec<SignalId>,
}

impl BroadcastTree {
    fn declare(shape: &Shape, nodes: NodeLeaders, part: &mut RankPart) -> BroadcastTree {
        let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
        let is_leader = nodes.leader_of(me) == me;
        let followers = if is_leader { nodes.followers(me).count() } else { 0 };
        let has_place = is_leader && (me != root || followers > 0);
        part.buffer("data", bytes);
        let place = part.scratch("incoming", if has_place { bytes } else { 0 }, TURNS);
        let (count, first) = (nodes.count(), nodes.node_of(root));
        let at = (nodes.node_of(me) + count - first) % count;
        let children = if is_leader { Tree::BINOMIAL.children(at, count) } else { Vec::new() };
        let number = |child: usize| (nodes.rank_of((child + first) % count), child.trailing_zeros() as usize);
        let children: Vec<(usize, usize)> = children.into_iter().map(number).collect();
        let there = part.signal("there", u64::from(has_place));
        let available = part.signal("available", u64::from(!is_leader));
        let copied_out = part.signal("copied_out", u64::from(me != root));
        let sent = part.signal("sent", children.len() as u64);
        let (own, on_node) = (nodes.index_on_node(me), nodes.ranks_of(nodes.node_of(me)).len());
        let of = |slot: usize| u64::from(is_leader && slot != own && slot < on_node);
        let copied = (0..shape.placement.per_node).map(|slot| part.signal("copied", of(slot))).collect();
        let of = |number: usize| u64::from(children.iter().any(|child| child.1 == number));
        let free = (0..doublings(count)).map(|number| part.signal("free", of(number))).collect();
        BroadcastTree {
            nodes,
            root,
            bytes,
            children,
            place,
            there,
            available,
            copied_out,
            sent,
            copied,
            free,
        }
    }

    /// Sends to all children, once the bytes have arrived.
    fn send(&self, ready: StepTrigger, part: &mut RankPart) {
        let me = part.rank();
        let from = if me == self.root { DATA } else { self.place };
        for &(child, number) in &self.children {
            part.join(self.free[number].reaches(1).lagging(TURNS));
            part.copy(ready, from.on(me, 0), self.place.on(child, 0), self.bytes)
                .then(self.there.on(child, 1))
                .then(self.sent.on(me, 1));
        }
    }

    /// Signals the ranks of the node that the bytes have arrived.
    fn signal_node(&self, there: StepTrigger, part: &mut RankPart) {
        let followers = self.nodes.followers(part.rank());
        if followers.clone().next().is_some() {
            part.join(there);
            signal_all(part, followers.map(|rank| self.available.on(rank, 1)));
        }
    }

    /// Copies the root's bytes into the staging buffer for its node.
    fn copy_in(&self, part: &mut RankPart) {
        let me = part.rank();
        let followers = self.nodes.followers(me);
        if followers.clone().next().is_some() {
            for rank in followers {
                part.join(self.copied[self.nodes.index_on_node(rank)].reaches(1).lagging(TURNS));
            }
            part.copy(started(), DATA.on(me, 0), self.place.on(me, 0), self.bytes).then(self.there.on(me, 1));
            self.signal_node(self.there.reaches(1), part);
            part.finish(self.there.reaches(1));
        }
        part.finish(self.sent.reaches(self.children.len() as u64));
    }

    /// Signals the parent that a leader's buffer is free, when all readers are done.
    fn signal_free(&self, part: &mut RankPart) {
        let me = part.rank();
        let (count, first) = (self.nodes.count(), self.nodes.node_of(self.root));
        let at = (self.nodes.node_of(me) + count - first) % count;
        let Some(parent) = Tree::BINOMIAL.parent(at) else { return };
        let parent = self.nodes.rank_of((parent + first) % count);
        part.in_queue(1);
        for rank in self.nodes.followers(me) {
            part.join(self.copied[self.nodes.index_on_node(rank)].reaches(1));
        }
        if !self.children.is_empty() {
            part.join(self.sent.reaches(self.children.len() as u64));
        }
        part.join(self.copied_out.reaches(1)).then(self.free[at.trailing_zeros() as usize].on(parent, 1));
    }
}
