//! The work of the two-level algorithms in closed form: that between nodes, and that inside nodes.
//!
//! `k` ranks of a node, `m` of them without its leader, `p` of all; `nodes` nodes; `l` and `c` are the logarithm of
//! `nodes` to base 2, rounded down and up; `n` bytes as in `algorithm/work_formulas/mod.rs`.

use super::super::doublings;
use crate::algorithm::work_formulas::{Work, work};
use crate::shape::{CollectiveKind, Shape};

/// The work for a shape; `None` if there is no two-level algorithm for it.
pub(in super::super) fn of(shape: &Shape) -> Option<Work> {
    if !super::fits(shape) {
        return None;
    }
    let (ranks, per_node) = (shape.ranks, shape.placement.per_node);
    let count = ranks.div_ceil(per_node);
    let whole = (1 << count.ilog2()) as f64;
    let (p, k, nodes) = (ranks as f64, per_node as f64, count as f64);
    let (m, led, folded) = (k - 1.0, p - nodes, nodes - whole);
    // The depth of the tree inside a node.
    let (inner_l, inner_c) = (f64::from(per_node.ilog2()), doublings(per_node) as f64);
    let (l, c) = (f64::from(count.ilog2()), doublings(count) as f64);
    let fold = if folded > 0.0 { 1.0 } else { 0.0 };
    let n = shape.bytes_of_all() as f64 / p;
    Some(match shape.collective {
        CollectiveKind::Barrier => {
            let steps = (c + m / 2.0 + 2.0, 1.5 * led + nodes * (c + 1.0));
            work((c + 2.0, c + 2.0), steps, (0.0, 0.0)).between(c, 0.0)
        }
        CollectiveKind::Bcast => {
            let steps = (2.0 * c + 1.5 * m + 2.0, 3.5 * led + 5.0 * nodes);
            work((l + 1.0, l + 1.0), steps, ((c + 1.0) * n, (p + nodes - 1.0) * n))
                .between(l, c * n)
                .with_scratch(2.0 * n)
        }
        CollectiveKind::Reduce => {
            let (levels, most) = (inner_l + l, inner_c + c);
            let steps = (most + 1.0, 3.0 * (p - 1.0));
            work((levels, (most + 1.0) / 2.0), steps, (levels * n, (p - 1.0) * n))
                .combining(most * n, (p - 1.0) * n)
                .between(l, c * n)
                .with_scratch(2.0 * most * n)
        }
        CollectiveKind::Allreduce => {
            let steps = inner_c + m / 2.0 + 2.0 * l + 3.0 + 2.0 * fold;
            let all = 4.5 * led + nodes + whole * (2.0 * l + 2.0) + 4.0 * folded;
            let copied = 2.0 * led + whole * (l + 1.0) + 3.0 * folded;
            let longest = inner_l + l + 1.0 + 2.0 * fold;
            let rounds = (inner_c + 1.0) / 2.0 + 1.5 * c + 1.0;
            work((longest, rounds), (steps, all), (longest * n, copied * n))
                .combining((inner_c + l + fold) * n, (led + whole * l + folded) * n)
                .between(l + 2.0 * fold, (l + fold) * n)
                .with_scratch(2.0 * (inner_c + l + fold) * n)
        }
        CollectiveKind::Allgather => {
            let steps = (c + m / 2.0 + 5.0, 3.5 * p + nodes * (c + 1.0));
            let others = (nodes - 1.0) * k * n;
            work((c + 2.0, c + 2.0), steps, (n + others + p * n, (nodes + p) * p * n))
                .between(c, others)
                .with_scratch(2.0 * p * n)
        }
        _ => return None,
    })
}
