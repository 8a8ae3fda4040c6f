//! Down a binomial tree of leaders, and each rank copies from where its leader got the bytes; the root lays them out
//! for its node.
//!
//! Bytes come to places of a leader's own, which starts take in turn, so nobody waits for a rank to be ready. A leader
//! lets its parent write there again when all of its node have copied, and all below it have been sent to: in a queue
//! of its own, so that a slow one keeps nobody but the start that would write there.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, TURNS, algorithm, leaders};
use crate::algorithm::layout::leaders::Leaders;
use crate::algorithm::layout::tree::Tree;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const BCAST: Algorithm = algorithm(CollectiveKind::Bcast, bcast);

fn bcast(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let nodes = leaders(shape, shape.root);
    let down = Down::name(shape, nodes, part);
    if me == shape.root {
        down.send(started(), part);
        down.lay(part);
        return;
    }
    if me == nodes.leader_of(me) {
        let there = down.there.reaches(1);
        down.send(there, part);
        down.tell(there, part);
        part.copy(there, down.place.on(me, 0), DATA.on(me, 0), bytes).then(down.taken.on(me, 1));
        down.let_go(part);
    } else {
        let leader = nodes.leader_of(me);
        part.copy(down.told.reaches(1), down.place.on(leader, 0), DATA.on(me, 0), bytes)
            .then(down.taken.on(me, 1))
            .then(down.copied[nodes.slot_of(me)].on(leader, 1));
    }
    part.finish(down.taken.reaches(1));
}

/// As one rank has it.
struct Down {
    nodes: Leaders,
    root: usize,
    bytes: u64,
    /// Whom a leader sends to, and which of its children each is: the one with most below it first.
    children: Vec<(usize, usize)>,
    place: BufferId,
    /// The bytes are there.
    there: SignalId,
    told: SignalId,
    taken: SignalId,
    sent: SignalId,
    /// Of each rank of the node: it has copied.
    copied: Vec<SignalId>,
    /// Of each child: its place is free.
    free: Vec<SignalId>,
}

impl Down {
    fn name(shape: &Shape, nodes: Leaders, part: &mut RankPart) -> Down {
        let (me, root, bytes) = (part.rank(), shape.root, shape.bytes_of(0));
        let is_leader = nodes.leader_of(me) == me;
        let followers = if is_leader { nodes.followers(me).count() } else { 0 };
        let has_place = is_leader && (me != root || followers > 0);
        part.buffer("data", bytes);
        let place = part.scratch("place", if has_place { bytes } else { 0 }, TURNS);
        let (count, first) = (nodes.count(), nodes.node_of(root));
        let at = (nodes.node_of(me) + count - first) % count;
        let children = if is_leader { Tree::Binomial.children(at, count) } else { Vec::new() };
        let number = |child: usize| (nodes.rank_of((child + first) % count), child.trailing_zeros() as usize);
        let children: Vec<(usize, usize)> = children.into_iter().map(number).collect();
        let there = part.signal("there", u64::from(has_place));
        let told = part.signal("available", u64::from(!is_leader));
        let taken = part.signal("taken", u64::from(me != root));
        let sent = part.signal("sent", children.len() as u64);
        let (own, on_node) = (nodes.slot_of(me), nodes.ranks_of(nodes.node_of(me)).len());
        let of = |slot: usize| u64::from(is_leader && slot != own && slot < on_node);
        let copied = (0..shape.placement.per_node).map(|slot| part.signal("copied", of(slot))).collect();
        let of = |number: usize| u64::from(children.iter().any(|child| child.1 == number));
        let free = (0..doublings(count)).map(|number| part.signal("free", of(number))).collect();
        Down { nodes, root, bytes, children, place, there, told, taken, sent, copied, free }
    }

    /// Sends to all below, when the bytes are there.
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

    /// Tells the node that the bytes are there.
    fn tell(&self, there: StepTrigger, part: &mut RankPart) {
        let followers = self.nodes.followers(part.rank());
        if followers.clone().next().is_some() {
            part.join(there);
            signal_all(part, followers.map(|rank| self.told.on(rank, 1)));
        }
    }

    /// The root lays its bytes out for its node.
    fn lay(&self, part: &mut RankPart) {
        let me = part.rank();
        let followers = self.nodes.followers(me);
        if followers.clone().next().is_some() {
            for rank in followers {
                part.join(self.copied[self.nodes.slot_of(rank)].reaches(1).lagging(TURNS));
            }
            part.copy(started(), DATA.on(me, 0), self.place.on(me, 0), self.bytes).then(self.there.on(me, 1));
            self.tell(self.there.reaches(1), part);
            part.finish(self.there.reaches(1));
        }
        part.finish(self.sent.reaches(self.children.len() as u64));
    }

    /// Tells the parent that a leader's place is free, when all have read it.
    fn let_go(&self, part: &mut RankPart) {
        let me = part.rank();
        let (count, first) = (self.nodes.count(), self.nodes.node_of(self.root));
        let at = (self.nodes.node_of(me) + count - first) % count;
        let Some(parent) = Tree::Binomial.parent(at) else { return };
        let parent = self.nodes.rank_of((parent + first) % count);
        part.in_queue(1);
        for rank in self.nodes.followers(me) {
            part.join(self.copied[self.nodes.slot_of(rank)].reaches(1));
        }
        if !self.children.is_empty() {
            part.join(self.sent.reaches(self.children.len() as u64));
        }
        part.join(self.taken.reaches(1)).then(self.free[at.trailing_zeros() as usize].on(parent, 1));
    }
}
