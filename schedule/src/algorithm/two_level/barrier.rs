//! All ranks of a node tell its leader; leaders disseminate; each tells its node.

use super::super::{doublings, signal_all};
use super::{Algorithm, CollectiveKind, algorithm, leaders};
use crate::algorithm::barrier::tell_rounds;
use crate::shape::Shape;
use crate::{RankPart, started};

pub(in super::super) const BARRIER: Algorithm = algorithm(CollectiveKind::Barrier, barrier);

fn barrier(shape: &Shape, part: &mut RankPart) {
    let me = part.rank();
    let nodes = leaders(shape, 0);
    let leader = nodes.leader_of(me);
    part.buffer("data", 0);
    let followers = if me == leader { nodes.followers(me).count() as u64 } else { 0 };
    let come = part.signal("come", followers);
    let go = part.signal("go", u64::from(me != leader));
    let rounds: Vec<_> =
        (0..doublings(nodes.count())).map(|_| part.signal("round", u64::from(me == leader))).collect();
    if me != leader {
        part.join(started()).then(come.on(leader, 1));
        part.finish(go.reaches(1));
        return;
    }
    let all_came = if followers > 0 { come.reaches(followers) } else { started() };
    let heard = tell_rounds(&nodes, &rounds, all_came, part);
    part.join(heard);
    signal_all(part, nodes.followers(me).map(|rank| go.on(rank, 1)));
    rounds.into_iter().for_each(|round| part.finish(round.reaches(1)));
    part.finish(all_came);
}
