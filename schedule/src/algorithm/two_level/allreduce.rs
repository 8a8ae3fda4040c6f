//! The values of each node go up a binomial tree to its leader; leaders use recursive doubling; each rank copies the
//! result from its leader.
//!
//! The result lies in the leader's receive buffer of the last round, or in the buffer to which it was sent back. This
//! is no memory of the program, so the leader goes on while others copy. The buffer is written again only when the
//! leader has the next values of its ranks, which they bring after they have copied the result.

use super::super::signal_all;
use super::{Algorithm, CollectiveKind, algorithm, declare_node_tree, leaders};
use crate::algorithm::allreduce::{Doubling, Role};
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::shape::{DATA, Shape};
use crate::{BufferId, RankPart, SignalId, StepTrigger, started};

pub(in super::super) const ALLREDUCE: Algorithm = algorithm(CollectiveKind::Allreduce, allreduce);

fn allreduce(shape: &Shape, part: &mut RankPart) {
    let (me, bytes) = (part.rank(), shape.bytes_of(0));
    let nodes = leaders(shape, 0);
    let leader = nodes.leader_of(me);
    part.buffer("data", bytes);
    let up = declare_node_tree(shape, &nodes, part);
    let doubling = Doubling::declare(nodes, bytes, part);
    let is_out = matches!(doubling.fold.role(leader), Role::Folded(_));
    let back = part.scratch("back", if is_out && me == leader { bytes } else { 0 }, 1);
    let result_ready = part.signal("result_ready", u64::from(me != leader));
    let copied_out = part.signal("copied_out", u64::from(is_out || me != leader));
    let summed = up.add_steps(started(), bytes, part);
    let result = if is_out { back.on(leader, 0) } else { doubling.result_on(leader) };
    if let Some(values_ready) = summed {
        between((&nodes, &doubling), (back, result_ready), values_ready, part);
    }
    if is_out || me != leader {
        let ready = if me == leader { doubling.fold.result } else { result_ready };
        part.copy(ready.reaches(1), result, DATA.on(me, 0), bytes).then(copied_out.on(me, 1));
        part.finish(copied_out.reaches(1));
    }
}

/// Adds a leader's exchange between nodes; then it signals its node. A leader that takes part in the rounds has the
/// result in its data.
fn between(
    (nodes, doubling): (&NodeLeaders, &Doubling),
    (back, result_ready): (BufferId, SignalId),
    values_ready: StepTrigger,
    part: &mut RankPart,
) {
    let me = part.rank();
    let signal_node = |ready: StepTrigger, part: &mut RankPart| {
        part.join(ready);
        signal_all(part, nodes.followers(me).map(|rank| result_ready.on(rank, 1)));
    };
    match doubling.fold.role(me) {
        Role::Folded(to) => {
            doubling.fold.send_values(to, values_ready, part);
            signal_node(doubling.fold.result.reaches(1), part);
        }
        Role::Active(number, folded) => {
            let (have, ready) = doubling.exchange((number, folded), values_ready, part);
            if let Some(other) = folded {
                doubling.fold.send_result(other, ready, (have, back), part);
            }
            signal_node(ready, part);
            doubling.copy_result(have, ready, part);
        }
    }
}
