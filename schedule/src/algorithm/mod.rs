//! Collective algorithms: each computes the part of one rank from the shape alone.

pub(crate) mod allgather;
pub(crate) mod allreduce;
pub(crate) mod alltoall;
pub(crate) mod barrier;
pub(crate) mod bcast;
pub(crate) mod central_rank;
pub(crate) mod copy_in_copy_out;
pub(crate) mod gather;
pub(crate) mod layout;
pub(crate) mod neighbour_exchange;
pub(crate) mod reduce;
pub(crate) mod reduce_scatter;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod two_level;
pub(crate) mod work_formulas;

pub use alltoall::put_all;
pub use bcast::session_mode::streams;
pub use neighbour_exchange::{BlockToSend, put_blocks};
pub use work_formulas::{Load, Work};

use crate::shape::{CollectiveKind, Shape};
use crate::{RankPart, Schedule, StepEffect, started};

/// A collective algorithm.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{ALGORITHMS, Algorithm, CollectiveKind, Shape};
/// let shape = Shape::new(CollectiveKind::Allreduce, 6, 0, 1024);
/// let fits = |one: &&Algorithm| one.collective == shape.collective && (one.fits)(&shape);
/// for algorithm in ALGORITHMS.iter().filter(fits) {
///     println!("{}: {} steps", algorithm.name, algorithm.schedule(&shape, 1).check()?.steps);
/// }
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name.
    pub name: &'static str,
    /// The collective that it implements.
    pub collective: CollectiveKind,
    /// Returns true if the algorithm supports the shape.
    pub fits: fn(&Shape) -> bool,
    /// Computes the part of a rank.
    make: Make,
}

/// The function that computes the part of a rank.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// Moves data as a whole.
    Whole(fn(&Shape, &mut RankPart)),
    /// Moves data in segments, whose number is the second argument.
    Cut(fn(&Shape, u64, &mut RankPart)),
}

/// All algorithms.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{ALGORITHMS, CollectiveKind};
/// let of_bcast = ALGORITHMS.iter().filter(|algorithm| algorithm.collective == CollectiveKind::Bcast);
/// let names: Vec<_> = of_bcast.map(|algorithm| algorithm.name).collect();
/// assert!(names.contains(&"binomial"));
/// ```
pub const ALGORITHMS: &[Algorithm] = &[
    barrier::DISSEMINATION,
    central_rank::BARRIER,
    two_level::BARRIER,
    bcast::tree::BINARY,
    bcast::tree::BINOMIAL,
    bcast::tree::CHAIN,
    bcast::tree::PIPELINED,
    bcast::scatter_allgather::SCATTER_ALLGATHER,
    central_rank::STAGED,
    central_rank::EAGER,
    bcast::trinaryx3::BUCKET,
    bcast::trinaryx3::TWO_PHASE,
    two_level::BCAST,
    allgather::RING,
    allgather::DOUBLING,
    allgather::BRUCK,
    allgather::LISTS,
    central_rank::ALLGATHER,
    two_level::ALLGATHER,
    reduce::TREE,
    central_rank::REDUCE,
    central_rank::REDUCE_DIRECT,
    two_level::REDUCE,
    allreduce::TREE,
    allreduce::DOUBLING,
    allreduce::RING,
    allreduce::RABENSEIFNER,
    allreduce::PAIRWISE,
    central_rank::ALLREDUCE,
    two_level::ALLREDUCE,
    gather::BINOMIAL,
    gather::FLAT,
    scatter::BINOMIAL,
    scatter::FLAT,
    alltoall::PAIRWISE,
    alltoall::BRUCK,
    reduce_scatter::PAIRWISE,
    reduce_scatter::RING,
    scan::doubling::INCLUSIVE,
    scan::doubling::EXCLUSIVE,
    scan::tree::INCLUSIVE,
    scan::tree::EXCLUSIVE,
    neighbour_exchange::DIRECT,
    copy_in_copy_out::BCAST,
    copy_in_copy_out::SCATTER,
    copy_in_copy_out::GATHER,
    copy_in_copy_out::REDUCE,
    copy_in_copy_out::ALLREDUCE,
    copy_in_copy_out::REDUCE_SCATTER_ALLGATHER,
    copy_in_copy_out::REDUCE_SCATTER,
    copy_in_copy_out::ALLGATHER,
    copy_in_copy_out::ALLTOALL,
    copy_in_copy_out::SCAN,
    copy_in_copy_out::EXSCAN,
    copy_in_copy_out::BARRIER,
    bcast::put_and_get::BCAST,
];

/// Adds steps that apply all these effects, as soon as the steps before them in their queue have begun.
fn signal_all(part: &mut RankPart, effects: impl Iterator<Item = StepEffect>) {
    let mut effects = effects;
    while let Some(effect) = effects.next() {
        let step = part.join(started());
        step.then(effect);
        if let Some(second) = effects.next() {
            step.then(second);
        }
    }
}

/// The logarithm of `ranks` to base 2, rounded up.
fn doublings(ranks: usize) -> usize {
    ranks.next_power_of_two().trailing_zeros() as usize
}

impl Algorithm {
    /// The work of the algorithm for a shape, without segments; `None` if it depends on more than the sizes. Builds no
    /// schedule.
    pub fn work(&self, shape: &Shape) -> Option<Work> {
        work_formulas::of(self, shape)
    }

    /// Returns true if the calling thread runs the algorithm's steps: in calls, and in plans that each rank runs alone.
    pub(super) fn is_inline(&self) -> bool {
        matches!(self.name, "copy in copy out" | "all to all" | "reduce scatter allgather" | "put and get")
    }

    /// The schedule for a shape. `segments` counts if the algorithm moves data in segments.
    pub fn schedule(&self, shape: &Shape, segments: u64) -> Schedule {
        let (make, of, for_contract) = (self.make, shape.clone(), shape.clone());
        let part = move |part: &mut RankPart| match make {
            Make::Whole(make) => make(&of, part),
            Make::Cut(make) => make(&of, segments, part),
        };
        Schedule::new(self.name, shape.ranks, part, move |rank| for_contract.contract(rank))
    }
}

#[cfg(test)]
mod tests;
