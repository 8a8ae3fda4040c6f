//! What passes between nodes, of algorithms that do not look at them: hand-overs of the longest chain, and bytes of the
//! busiest node, where several ranks share each of several nodes. Elsewhere nothing is known of nodes, and it is zero.
//!
//! Distances that double are inside a node as long as blocks of so many ranks divide it; those from each rank to one
//! so much further on leave it at its end, and a chain of them once. Of a ring the hops between the last rank of a node
//! and the first one of the next leave it. All others are taken to.
//!
//! `p` ranks, `k` on each of `nodes`; `n` bytes as in `work.rs`.

use crate::algorithm::{Algorithm, CollectiveKind, Work, doublings};
use crate::shape::Shape;

/// The work with what passes between nodes.
pub(crate) fn with(work: Work, bytes: f64, algorithm: &Algorithm, shape: &Shape) -> Work {
    let (ranks, per_node) = (shape.ranks, shape.placement.per_node);
    if !shape.placement.shares_nodes(ranks) {
        return work;
    }
    let levels = Levels::of(ranks, per_node);
    work.between(work.hops * levels.share(algorithm.name), bytes * levels.carried(algorithm))
}

/// Levels of doubling distances.
struct Levels {
    p: f64,
    k: f64,
    nodes: f64,
    /// Of all.
    c: f64,
    /// Of those that leave a node, from each rank to one so much further on, or between halves of blocks.
    around: f64,
    far: f64,
    /// Of those inside a node that are not where some ranks became one with others before.
    crossed: f64,
    /// Blocks of a node that stay inside.
    parts: f64,
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
        }
    }

    /// Which share of the hand-overs one after the other leads to another node.
    fn share(&self, name: &str) -> f64 {
        match name {
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

    /// CombineWith many times its bytes, or blocks, go out of the busiest node, or into it, one after the other.
    fn carried(&self, algorithm: &Algorithm) -> f64 {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Bcast, ReduceScatter};
        let Levels { p, k, nodes, around, far, crossed, parts, .. } = *self;
        let others = p - k;
        match (algorithm.operation, algorithm.name) {
            (CollectiveKind::Barrier, _) => 0.0,
            (Bcast, "chain") => 1.0,
            (Bcast, "binary" | "pipelined") => k + 1.0,
            (Bcast, "scatter+allgather") => 2.0 * (1.0 - 1.0 / nodes),
            (Allreduce, "ring") => 2.0,
            (Allreduce, "rabenseifner") => 2.0 * parts * (1.0 - 1.0 / nodes) + crossed,
            (Allreduce, "recursive doubling") => k * far,
            (Allreduce, "tree") => 2.0 * far,
            (Allreduce, _) => 2.0 * others,
            (Allgather | ReduceScatter, "ring") => p - 1.0,
            (Allgather, "flat") => p * others,
            (Allgather | ReduceScatter, _) => k * others,
            (Alltoall, "bruck") => k * p / 2.0 * around,
            (Alltoall, _) => k * others,
            (CollectiveKind::Scan | CollectiveKind::Exscan, _) => k * around,
            (_, "tree") | (Bcast, "binomial") => far,
            _ => others,
        }
    }
}
