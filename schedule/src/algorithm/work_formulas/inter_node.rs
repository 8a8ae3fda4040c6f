//! Inter-node work of algorithms that ignore the placement: hand-overs between nodes on the critical path, and bytes of
//! the busiest node. Both are zero unless several ranks share each of several nodes.
//!
//! Exchanges at doubling distances between halves of blocks stay inside a node as long as the block size divides the
//! ranks of the node. Exchanges from each rank to the one at a doubling distance after it leave a node at its end, and
//! a chain of them leaves it once. In a ring, the hops from the last rank of a node to the first one of the next leave
//! the node. All other hand-overs are assumed to leave it.
//!
//! `p` ranks, `k` on each of `nodes` nodes; `n` bytes as in `work_formulas/mod.rs`.

use crate::algorithm::layout::tree::Tree;
use crate::algorithm::scan::tree::prefix_levels_max;
use crate::algorithm::{Algorithm, CollectiveKind, Work, doublings};
use crate::combining_order;
use crate::shape::Shape;

/// Adds the inter-node part to some work.
pub(crate) fn with(work: Work, bytes: f64, algorithm: &Algorithm, shape: &Shape) -> Work {
    let (ranks, per_node) = (shape.ranks, shape.placement.per_node);
    if !shape.placement.shares_nodes(ranks) {
        return work;
    }
    let mut levels = Levels::of(ranks, per_node);
    levels.is_ordered = combining_order::is_demanded(shape);
    work.between(work.hops * levels.share(algorithm), bytes * levels.carried(algorithm))
}

/// Rounds with doubling distances.
struct Levels {
    p: f64,
    k: f64,
    nodes: f64,
    /// All rounds.
    c: f64,
    /// Rounds that leave a node: from each rank to the one at that distance after it, and between halves of blocks.
    around: f64,
    far: f64,
    /// Rounds inside a node that leave it because some ranks were folded before.
    crossed: f64,
    /// Groups of a node's ranks within which all exchanges at doubling distances stay.
    parts: f64,
    /// True if values go up the tree of the combining order.
    is_ordered: bool,
    /// The levels of that tree, and the children of rank 0 on other nodes.
    depth: f64,
    outside: f64,
}

impl Levels {
    fn of(ranks: usize, per_node: usize) -> Levels {
        let (c, inside) = (doublings(ranks), per_node.trailing_zeros() as usize);
        let around = (c + 1).saturating_sub(per_node.ilog2() as usize).min(c);
        Levels {
            p: ranks as f64,
            k: per_node as f64,
            nodes: ranks.div_ceil(per_node) as f64,
            c: c as f64,
            around: around as f64,
            far: c.saturating_sub(inside) as f64,
            crossed: inside.saturating_sub((ranks - (1 << ranks.ilog2())).trailing_zeros() as usize) as f64,
            parts: (per_node >> inside) as f64,
            is_ordered: false,
            depth: prefix_levels_max(ranks) as f64,
            outside: Tree::GROUPS.children(0, ranks).iter().filter(|&&child| child >= per_node).count()
                as f64,
        }
    }

    /// The share of the hand-overs on the critical path that leads to another node.
    fn share(&self, algorithm: &Algorithm) -> f64 {
        let is_scan = matches!(algorithm.collective, CollectiveKind::Scan | CollectiveKind::Exscan);
        match algorithm.name {
            "tree" if self.is_ordered || is_scan => 1.0,
            "ring" | "chain" => self.nodes / self.p,
            "scatter+allgather" => {
                let (tree, ring) = (2.0 * self.c, self.p - 1.0);
                (tree * self.far / self.c + ring * self.nodes / self.p) / (tree + ring)
            }
            "dissemination" | "bruck" | "command lists" | "doubling" => self.around / self.c,
            "binary" | "pipelined" | "binomial" | "tree" => self.far / self.c,
            "recursive doubling" | "rabenseifner" => (self.far + self.crossed) / self.c,
            _ => 1.0,
        }
    }

    /// The bytes that the busiest node sends or receives, in units of the message or block size.
    fn carried(&self, algorithm: &Algorithm) -> f64 {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Bcast, ReduceScatter};
        let Levels { p, k, nodes, around, far, crossed, parts, is_ordered, depth, outside, .. } = *self;
        let others = p - k;
        match (algorithm.collective, algorithm.name) {
            (CollectiveKind::Barrier, _) => 0.0,
            (Bcast, "chain") => 1.0,
            (Bcast, "binary" | "pipelined") => k + 1.0,
            (Bcast, "scatter+allgather") => 2.0 * (1.0 - 1.0 / nodes),
            (Allreduce, "ring") => 2.0,
            (Allreduce, "rabenseifner") => 2.0 * parts * (1.0 - 1.0 / nodes) + crossed,
            (Allreduce, "recursive doubling") => k * far,
            (Allreduce, "pairwise") => 2.0 * k * others / p,
            (Allreduce, "tree") if is_ordered => outside + far,
            (Allreduce, "tree") => 2.0 * far,
            (Allreduce, _) => 2.0 * others,
            (Allgather | ReduceScatter, "ring") => p - 1.0,
            (Allgather, "flat") => p * others,
            (Allgather | ReduceScatter, _) => k * others,
            (Alltoall, "bruck") => k * p / 2.0 * around,
            (Alltoall, _) => k * others,
            (CollectiveKind::Scan | CollectiveKind::Exscan, "tree") => outside * (depth + 1.0) / 2.0,
            (CollectiveKind::Scan | CollectiveKind::Exscan, _) => k * around,
            (CollectiveKind::Reduce, "tree") if is_ordered => outside,
            (_, "tree") | (Bcast, "binomial") => far,
            _ => others,
        }
    }
}
