//! Two levels: between nodes one rank of each, its leader, takes part in the proper tree, doubling or exchange; inside
//! a node memory is shared.
//!
//! Between nodes a hand-over is dear, and all ranks of a node that exchange with those of another share what leads
//! there: so no more than one of them does. Inside, each rank copies what it gets from where its leader has it, so all
//! that wait copy side by side; values are combined up a tree, by all that are in its way.
//!
//! The leader is the root on the root's node, the first rank elsewhere. Ranks of a node are consecutive: combined by
//! node and then over nodes, values are combined in the order of ranks.
//!
//! Sources: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting hierarchy in parallel computer networks
//! to optimize collective operation performance" (2000); Traff, "Efficient allgather for regular SMP-clusters" (2006).
//!
//! ```text
//! barrier, bcast, reduce, allreduce, allgather   one each        work   what they have to do
//! ```

mod allgather;
mod allreduce;
mod barrier;
mod bcast;
mod reduce;
mod work;

pub(super) use allgather::ALLGATHER;
pub(super) use allreduce::ALLREDUCE;
pub(super) use barrier::BARRIER;
pub(super) use bcast::BCAST;
pub(super) use reduce::REDUCE;
pub(super) use work::of as work_of;

use super::{Algorithm, CollectiveKind, Make};
use crate::RankPart;
use crate::algorithm::layout::leaders::Leaders;
use crate::algorithm::reduce::Up;
use crate::shape::Shape;

const fn algorithm(operation: CollectiveKind, make: fn(&Shape, &mut RankPart)) -> Algorithm {
    Algorithm { name: "two-level", operation, fits, make: Make::Whole(make) }
}

/// Starts that a place serves in turn.
const TURNS: u32 = 2;

/// Several ranks share each of several nodes.
fn fits(shape: &Shape) -> bool {
    shape.placement.shares_nodes(shape.ranks)
}

/// Names what a node's values go up by, a binomial tree from its leader on.
fn name_up(nodes: &Leaders, bytes: u64, part: &mut RankPart) -> Up {
    let node = nodes.on_node(nodes.node_of(part.rank()));
    Up::name(&node, node.node_of(nodes.leader_of(part.rank())), bytes, part)
}

/// The leaders, one of which is that rank.
fn leaders(shape: &Shape, root: usize) -> Leaders {
    Leaders::of_nodes(shape.ranks, shape.placement.per_node, root)
}
