//! Which algorithm is taken for a shape: the one that is forced, if it fits; else the one that the cost model finds the
//! quickest here.
//!
//! ```text
//! costs      what things cost on a machine            cost       how long an algorithm takes, by them
//! fit        costs from what was measured             calls      what calls take, and plans that nobody helps with
//! ```
//!
//! What an algorithm has to do is in `algorithm/work.rs`, in closed form: to choose takes no schedule, however many
//! ranks there are.

mod calls;
mod cost;
mod costs;
mod fit;
mod forced;

use crate::algorithm::{Algorithm, Work};
use crate::shape::Shape;

pub use calls::{BLOCKS_MAX, Cut, MEMBERS_MAX, PIECE, TOLD_MAX, VALUE_BYTES_MAX, for_calls, shown_for_calls};
pub use costs::Costs;
pub use fit::Measurement;
pub use forced::Forced;

/// What algorithms are chosen by. All members must have the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// What things cost.
    pub costs: Costs,
    /// What is taken wherever it fits, whatever it costs.
    pub forced: Forced,
    /// CombineWith many ranks of the job share a processor; 1: each has its own.
    pub per_processor: usize,
    /// Ranks reach each other's memory, and nobody but they themselves goes on with their plans: there is no helper.
    pub has_no_helper: bool,
}

impl Default for Selection {
    /// Each rank has a processor of its own, and there may be helpers.
    fn default() -> Selection {
        Selection {
            costs: Costs::default(),
            forced: Forced::default(),
            per_processor: 1,
            has_no_helper: false,
        }
    }
}

impl Selection {
    /// What is taken for a shape. Takes no time worth speaking of.
    pub fn choose(&self, shape: &Shape) -> &'static Algorithm {
        if let Some(cut) = self.walk(shape, false) {
            return calls::algorithm(&cut.one);
        }
        let forced = self.forced.of(shape.operation).filter(|algorithm| (algorithm.fits)(shape));
        forced.unwrap_or_else(|| match self.is_combined_there(shape) {
            true => calls::named(shape.operation, "direct"),
            false => self.quickest(shape),
        })
    }

    /// CombineWith long a start takes by an algorithm, in ns; `None` where that depends on more than the shape's sizes.
    pub fn estimate(&self, algorithm: &Algorithm, shape: &Shape) -> Option<f64> {
        algorithm.work(shape).map(|work| self.time(&work, shape.ranks))
    }

    fn quickest(&self, shape: &Shape) -> &'static Algorithm {
        let is_one = |algorithm: &&Algorithm| (algorithm.fits)(shape) && !algorithm.is_for_calls();
        let fitting = || shape.operation.algorithms().filter(is_one);
        let works = || fitting().filter_map(|one| one.work(shape).map(|work| (one, work)));
        let least = works().map(|(_, work)| work.scratch).fold(f64::INFINITY, f64::min);
        let rank = |one: &Work, other: &Work| {
            let (a, b) = (self.time(one, shape.ranks), self.time(other, shape.ranks));
            let by_time = a.total_cmp(&b).then(one.scratch.total_cmp(&other.scratch));
            by_time.then(one.copied.longest.total_cmp(&other.copied.longest))
        };
        let bearable = works().filter(|(_, work)| cost::is_bearable(work, shape.ranks, least));
        let quickest = bearable.min_by(|(_, one), (_, other)| rank(one, other)).map(|(one, _)| one);
        quickest.or_else(|| fitting().next()).expect("each operation has an algorithm for all shapes")
    }
}

#[cfg(test)]
mod tests;
