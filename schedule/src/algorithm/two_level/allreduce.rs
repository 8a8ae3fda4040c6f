//! Each node's values up a binomial tree to its leader, recursive doubling between leaders, and each rank copies the
//! result from where its leader has it.
//!
//! The result lies where the last round combined it, or where it was handed back: no program's memory, so the leader
//! goes on while others copy. It is written again when the leader has their next values, which they bring when they
//! have the result.

use super::super::signal_all;
use super::{Algorithm, CollectiveKind, algorithm, leaders, name_up};
use crate::algorithm::allreduce::{Doubling, Role};
use crate::algorithm::layout::leaders::Leaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const ALLREDUCE: Algorithm = algorithm(CollectiveKind::Allreduce, allreduce);

fn allreduce(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let nodes = leaders(shape, 0);
    let leader = nodes.leader_of(me);
    part.buffer("data", bytes);
    let up = name_up(&nodes, bytes, part);
    let doubling = Doubling::name(nodes, bytes, part);
    let is_out = matches!(doubling.fold.role(leader), Role::Out(_));
    let back = part.scratch("back", if is_out && me == leader { bytes } else { 0 }, 1);
    let told = part.signal("result laid", u64::from(me != leader));
    let taken = part.signal("taken", u64::from(is_out || me != leader));
    let summed = up.climb(started(), bytes, part);
    let result = if is_out { back.on(leader, 0) } else { doubling.result_on(leader) };
    if let Some(had) = summed {
        between((&nodes, &doubling), (back, told), had, part);
    }
    if is_out || me != leader {
        let ready = if me == leader { doubling.fold.result } else { told };
        part.copy(ready.reaches(1), result, DATA.on(me, 0), bytes).then(taken.on(me, 1));
        part.finish(taken.reaches(1));
    }
}

/// What a leader does between nodes; then it tells its own. One that went on has the result in its data.
fn between(
    (nodes, doubling): (&Leaders, &Doubling),
    (back, told): (BufferId, SignalId),
    had: StepTrigger,
    part: &mut RankPart,
) {
    let me = part.rank();
    let tell = |ready: StepTrigger, part: &mut RankPart| {
        part.join(ready);
        signal_all(part, nodes.followers(me).map(|rank| told.on(rank, 1)));
    };
    match doubling.fold.role(me) {
        Role::Out(to) => {
            doubling.fold.hand_out(to, had, part);
            tell(doubling.fold.result.reaches(1), part);
        }
        Role::In(number, folded) => {
            let (have, ready) = doubling.exchange((number, folded), had, part);
            if let Some(other) = folded {
                doubling.fold.hand_back(other, ready, (have, back), part);
            }
            tell(ready, part);
            doubling.keep(have, ready, part);
        }
    }
}
