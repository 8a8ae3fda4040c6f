//! All ranks of a node signal its leader; leaders run a dissemination barrier; each leader signals its node.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, algorithm, leaders};
use crate::algorithm::barrier::add_rounds;
use crate::shape::Shape;
use crate::{RankPart, started};

pub(in super::super) const BARRIER: Algorithm = algorithm(CollectiveKind::Barrier, barrier);

fn barrier(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let nodes = leaders(shape, 0);
    let leader = nodes.leader_of(me);
    part.buffer("data", 0);
    let followers = if me == leader { nodes.followers(me).count() as u64 } else { 0 };
    let entered = part.signal("entered", followers);
    let release = part.signal("release", u64::from(me != leader));
    let rounds: Vec<_> =
        (0..doublings(nodes.count())).map(|_| part.signal("round", u64::from(me == leader))).collect();
    if me != leader {
        part.join(started()).then(entered.on(leader, 1));
        part.finish(release.reaches(1));
        return;
    }
    let node_entered = if followers > 0 { entered.reaches(followers) } else { started() };
    let all_entered = add_rounds(&nodes, &rounds, node_entered, part);
    part.join(all_entered);
    signal_all(part, nodes.followers(me).map(|rank| release.on(rank, 1)));
    rounds.into_iter().for_each(|round| part.finish(round.reaches(1)));
    part.finish(node_entered);
}
