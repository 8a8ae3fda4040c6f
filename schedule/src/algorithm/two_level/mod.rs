//! Two-level algorithms: one rank of each node, its leader, takes part in the exchange between nodes; the ranks of a
//! node use shared memory.
//!
//! A hand-over between nodes is expensive, and all ranks of a node that communicate with other nodes share its link. So
//! only one rank of each node does. Inside a node, each rank copies its data from its leader's memory, so all ranks
//! copy in parallel; values are combined up a tree.
//!
//! The leader is the root on the root's node, and the first rank on other nodes.
//!
//! Sources: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting hierarchy in parallel computer networks
//! to optimize collective operation performance" (2000); Traff, "Efficient allgather for regular SMP-clusters" (2006).
//!
//! ```text
//! barrier, bcast, reduce, allreduce, allgather   one file each        work_formulas   their work
//! ```

mod allgather;
mod allreduce;
mod barrier;
mod bcast;
mod reduce;
mod work_formulas;

pub(super) use allgather::ALLGATHER;
pub(super) use allreduce::ALLREDUCE;
pub(super) use barrier::BARRIER;
pub(super) use bcast::BCAST;
pub(super) use reduce::REDUCE;
pub(super) use work_formulas::of as work_of;

use super::{Algorithm, CollectiveKind, Make};
use crate::RankPart;
use crate::algorithm::layout::node_leaders::NodeLeaders;
use crate::algorithm::reduce::ReductionTree;
use crate::combining_order;
use crate::shape::Shape;

const fn algorithm(collective: CollectiveKind, make: fn(&Shape, &mut RankPart)) -> Algorithm {
    Algorithm { name: "two-level", collective, fits, make: Make::Whole(make) }
}

/// Number of copies of a buffer, used by successive starts in turn.
const TURNS: u32 = 2;

/// Returns true if several ranks share each of several nodes. Values are combined first on each node, which is not the
/// combining order.
fn fits(shape: &Shape) -> bool {
    shape.placement.shares_nodes(shape.ranks) && !combining_order::is_demanded(shape)
}

/// Declares the buffers and signals of the reduction within a node: a binomial tree rooted at its leader.
fn declare_node_tree(shape: &Shape, nodes: &NodeLeaders, part: &mut RankPart) -> ReductionTree {
    let node = nodes.on_node(nodes.node_of(part.rank()));
    ReductionTree::declare(shape, &node, node.node_of(nodes.leader_of(part.rank())), part)
}

/// The leaders, one of which is `root`.
fn leaders(shape: &Shape, root: usize) -> NodeLeaders {
    NodeLeaders::of_nodes(shape.ranks, shape.placement.per_node, root)
}
