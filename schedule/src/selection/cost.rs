//! The cost model: how long a start takes, reckoned from what an algorithm has to do and what things cost here.
//!
//! Where each rank has a processor of its own, the longest chain counts: its hand-overs, steps and bytes, one after the
//! other. Where ranks share processors, each round takes a turn of all that share one, and what all ranks do is spread
//! over the processors. Copies may be made by whoever waits; steps and reductions of a queue come one after the other,
//! so they take no less than on the longest chain.
//!
//! Where several ranks share each of several nodes, hand-overs between nodes have a cost of their own, and so have
//! bytes that the busiest node sends or gets. Where nobody says how ranks lie on nodes, all are alike.

use super::Selection;
use super::costs::COUNT;
use crate::algorithm::{Load, Work};

/// Members of which each may know all others by a signal: that is memory for each other one on each.
const KNOWN_MAX: usize = 32;
/// Bytes of memory beside the program's that an algorithm may have if another does with less: more than that leaves the
/// processors' caches between two starts.
const SCRATCH_MAX: f64 = (1 << 20) as f64;

/// CombineWith much of each cost some work takes: hand-overs, those between nodes, turns, steps, bytes copied, bytes combined,
/// bytes carried between nodes.
pub(super) type Shares = [f64; COUNT];

impl Selection {
    /// CombineWith much of each cost some work takes among so many ranks. Additions, products and quotients alone, which come
    /// out the same on all processors.
    pub(super) fn shares(&self, work: &Work, ranks: usize) -> Shares {
        let crowd = self.per_processor.max(1);
        let processors = ranks.div_ceil(crowd) as f64;
        let is_crowded = crowd > 1;
        let spread = |load: Load| if is_crowded { load.all / processors } else { load.longest };
        let in_order = |load: Load| spread(load).max(load.longest);
        let hops = work.hops - work.between;
        let (hops, turns) = if is_crowded { (0.0, work.rounds * crowd as f64) } else { (hops, 0.0) };
        let (steps, combined) = (in_order(work.steps), in_order(work.combined));
        [hops, work.between, turns, steps, spread(work.copied), combined, work.carried]
    }

    /// CombineWith long some work takes among so many ranks, in ns.
    pub(super) fn time(&self, work: &Work, ranks: usize) -> f64 {
        let shares = self.shares(work, ranks);
        shares.into_iter().zip(self.costs.prices()).map(|(share, price)| share * price).sum()
    }
}

/// Whether work is to be thought of among so many ranks, where another needs so much memory as the least.
pub(super) fn is_bearable(work: &Work, ranks: usize, least: f64) -> bool {
    work.scratch <= least.max(SCRATCH_MAX) && (!work.knows_all || ranks <= KNOWN_MAX)
}
