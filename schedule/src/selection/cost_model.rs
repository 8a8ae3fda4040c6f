//! The cost model: estimates the time of a start from the work of an algorithm and the cost parameters.
//!
//! If each rank has a processor of its own, the critical path counts: its hand-overs, steps and bytes, one after the
//! other. If ranks share processors, each round takes a turn of all ranks that share one, and the work of all ranks is
//! spread over the processors. Any waiting rank may make a copy; steps and reductions of a queue are sequential, so
//! they take at least the time of the critical path.
//!
//! If several ranks share each of several nodes, hand-overs between nodes and the bytes that the busiest node sends or
//! receives have costs of their own. If the placement of ranks is unknown, all hand-overs cost the same.

use super::Selection;
use super::cost_parameters::COUNT;
use crate::algorithm::{Load, Work};

/// The most members of an algorithm in which each member has a signal or buffer for each other one: memory grows with
/// their number.
const ALL_PAIRS_MEMBERS_MAX: usize = 32;
/// Bytes of scratch memory that an algorithm may have if another one needs less: more than that leaves the processors'
/// caches between two starts.
const SCRATCH_MAX: f64 = (1 << 20) as f64;

/// How often some work incurs each cost: hand-overs, hand-overs between nodes, turns, steps, bytes copied, bytes
/// combined, bytes carried between nodes.
pub(super) type Shares = [f64; COUNT];

impl Selection {
    /// How often some work incurs each cost among `ranks` ranks. Uses only additions, products and quotients, which
    /// give the same result on all processors.
    pub(super) fn shares(&self, work: &Work, ranks: usize) -> Shares {
        let sharing = self.per_processor.max(1);
        let processors = ranks.div_ceil(sharing) as f64;
        let is_shared = sharing > 1;
        let spread = |load: Load| if is_shared { load.all / processors } else { load.longest };
        let in_order = |load: Load| spread(load).max(load.longest);
        let hops = work.hops - work.between;
        let (hops, turns) = if is_shared { (0.0, work.rounds * sharing as f64) } else { (hops, 0.0) };
        let (steps, combined) = (in_order(work.steps), in_order(work.combined));
        [hops, work.between, turns, steps, spread(work.copied), combined, work.carried]
    }

    /// The estimated time of some work among `ranks` ranks, in ns.
    pub(super) fn time(&self, work: &Work, ranks: usize) -> f64 {
        let shares = self.shares(work, ranks);
        shares.into_iter().zip(self.costs.prices()).map(|(share, price)| share * price).sum()
    }
}

/// Returns true if the work is a candidate among `ranks` ranks: `least` is the scratch memory of the most frugal
/// algorithm.
pub(super) fn is_candidate(work: &Work, ranks: usize, least: f64) -> bool {
    work.scratch <= least.max(SCRATCH_MAX) && (!work.has_signal_per_rank || ranks <= ALL_PAIRS_MEMBERS_MAX)
}
