//! Selects the algorithm for a shape: the forced algorithm if it supports the shape, otherwise the one that the cost
//! model estimates to be the quickest.
//!
//! ```text
//! cost_parameters   the parameters of the cost model    cost_model      the estimated time of an algorithm
//! fitting           parameters from measurements        calling_thread  algorithms that calling threads run
//! forced_algorithms the algorithms that the user has chosen
//! ```
//!
//! The work of an algorithm is computed in closed form by `algorithm/work_formulas`, so a selection builds no schedule.

mod calling_thread;
mod cost_model;
mod cost_parameters;
mod fitting;
mod forced_algorithms;

use crate::algorithm::{Algorithm, Work};
use crate::shape::Shape;

pub use calling_thread::{
    BLOCKS_BYTES_MAX, MEMBERS_MAX, MESSAGE_BYTES_MAX, PIECE_BYTES_MAX, Pieces, VALUE_BYTES_MAX,
    calling_thread_schedule,
};
pub use cost_parameters::CostParameters;
pub use fitting::Measurement;
pub use forced_algorithms::Forced;

/// The parameters of the selection. They must be equal on all members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The parameters of the cost model.
    pub costs: CostParameters,
    /// Algorithms that are used wherever they support the shape, whatever they cost.
    pub forced: Forced,
    /// Number of ranks of the job that share a processor; 1 if each rank has its own.
    pub per_processor: usize,
    /// True if ranks access each other's memory and no helper thread runs plans: only the ranks themselves do.
    pub has_no_helper: bool,
}

impl Default for Selection {
    /// One processor for each rank; helpers may run plans.
    fn default() -> Selection {
        Selection {
            costs: CostParameters::default(),
            forced: Forced::default(),
            per_processor: 1,
            has_no_helper: false,
        }
    }
}

impl Selection {
    /// Selects the algorithm for a shape. The time is negligible, however many ranks there are.
    pub fn choose(&self, shape: &Shape) -> &'static Algorithm {
        if let Some(pieces) = self.calling_thread_pieces(shape, false) {
            return calling_thread::algorithm(&pieces.shape);
        }
        let forced = self.forced.of(shape.collective).filter(|algorithm| (algorithm.fits)(shape));
        forced.unwrap_or_else(|| match self.is_combined_in_place(shape) {
            true => calling_thread::named(shape.collective, "direct"),
            false => self.quickest(shape),
        })
    }

    /// The estimated time of a start, in ns; `None` if it depends on more than the sizes of the shape.
    pub fn estimate(&self, algorithm: &Algorithm, shape: &Shape) -> Option<f64> {
        algorithm.work(shape).map(|work| self.time(&work, shape.ranks))
    }

    fn quickest(&self, shape: &Shape) -> &'static Algorithm {
        let is_one = |algorithm: &&Algorithm| (algorithm.fits)(shape) && !algorithm.is_inline();
        let fitting = || shape.collective.algorithms().filter(is_one);
        let works = || fitting().filter_map(|one| one.work(shape).map(|work| (one, work)));
        let least = works().map(|(_, work)| work.scratch).fold(f64::INFINITY, f64::min);
        let rank = |one: &Work, other: &Work| {
            let (a, b) = (self.time(one, shape.ranks), self.time(other, shape.ranks));
            let by_time = a.total_cmp(&b).then(one.scratch.total_cmp(&other.scratch));
            by_time.then(one.copied.longest.total_cmp(&other.copied.longest))
        };
        let bearable = works().filter(|(_, work)| cost_model::is_candidate(work, shape.ranks, least));
        let quickest = bearable.min_by(|(_, one), (_, other)| rank(one, other)).map(|(one, _)| one);
        quickest.or_else(|| fitting().next()).expect("each collective has an algorithm for all shapes")
    }
}

impl Algorithm {
    /// The algorithm for a shape by the default parameters: one processor for each rank, nothing measured or forced.
    pub fn choose(shape: &Shape) -> &'static Algorithm {
        Selection::default().choose(shape)
    }
}

#[cfg(test)]
mod tests;
