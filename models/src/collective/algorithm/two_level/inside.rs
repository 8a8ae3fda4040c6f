//! The values of a node combined at its leader, in the order of ranks.
//!
//! Each lays its values out at the leader, in a place of its own, which starts take in turn where there are several: it
//! lays there again when the leader has combined what it laid so many starts before.

use super::super::flat;
use super::super::leaders::Leaders;
use crate::collective::shape::{DATA, Shape};
use crate::schedule::{Buffer, Part, Signal, Trigger, started};

/// As one rank has it.
pub(super) struct Inside {
    nodes: Leaders,
    bytes: u64,
    turns: u32,
    places: Buffer,
    combined: Signal,
    laid: Signal,
    /// Where a follower is told that its place is free.
    free: Option<Signal>,
    /// Of each rank of the node one.
    arrived: Vec<Signal>,
}

impl Inside {
    /// Names what it needs. One turn is for those who bring values again only when what was brought is combined.
    pub(super) fn name(shape: &Shape, nodes: Leaders, turns: u32, part: &mut Part) -> Inside {
        let (me, bytes) = (part.rank(), shape.bytes_of(0));
        let is_leader = nodes.number_of(me).is_some();
        let followers = if is_leader { nodes.followers(me).count() } else { 0 };
        let room = if followers > 0 { bytes * (followers as u64 + 1) } else { 0 };
        let places = part.scratch("laid", room, turns);
        let combined = part.signal("node combined", u64::from(followers > 0));
        let laid = part.signal("laid", u64::from(!is_leader));
        let free = (turns > 1).then(|| part.signal("place free", u64::from(!is_leader)));
        let (own, there) = (nodes.slot_of(me), nodes.ranks_of(nodes.node_of(me)).len());
        let of = |slot: usize| u64::from(is_leader && slot != own && slot < there);
        let arrived = (0..shape.placement.per_node).map(|slot| part.signal("came", of(slot))).collect();
        Inside { nodes, bytes, turns, places, combined, laid, free, arrived }
    }

    /// The leader combines; when its node's values are there. Others lay theirs out; when they are read.
    pub(super) fn combine(&self, part: &mut Part) -> Trigger {
        let (me, leader) = (part.rank(), self.nodes.leader_of(part.rank()));
        if me != leader {
            let slot = self.nodes.slot_of(me);
            let when = self.free.map_or(started(), |free| free.reaches(1).lagging(self.turns));
            part.copy(when, DATA.on(me, 0), self.places.on(leader, slot as u64 * self.bytes), self.bytes)
                .then(self.arrived[slot].on(leader, 1))
                .then(self.laid.on(me, 1));
            return self.laid.reaches(1);
        }
        let ranks = self.nodes.ranks_of(self.nodes.node_of(me));
        if ranks.len() == 1 {
            return started();
        }
        let into = (self.places, self.combined);
        flat::combine((ranks, me, self.bytes), &self.arrived, into, self.free, part);
        self.combined.reaches(1)
    }
}
