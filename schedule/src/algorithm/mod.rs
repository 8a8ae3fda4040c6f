//! Algorithms: each makes the part of one rank of a collective, from the shape alone. One file each.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod between;
mod broadcast;
mod flat;
mod gather;
mod halves;
mod laid;
mod leaders;
mod neighbours;
mod pairs;
mod reduce;
mod reduce_scatter;
mod rows;
mod scan;
mod scatter;
mod scatter_allgather;
mod session;
mod trees;
mod trinaryx3;
mod two_level;
mod work;

pub use alltoall::give_all;
pub use neighbours::{Given, give_straight};
pub use session::streams;
pub use work::{Load, Work};

use crate::selection::Selection;
use crate::shape::{Operation, Shape};
use crate::{Effect, Part, Schedule, started};

/// A way to do a collective.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub operation: Operation,
    /// Whether it does it for such a shape.
    pub fits: fn(&Shape) -> bool,
    /// How the part of a rank is made.
    make: Make,
}

/// How the part of a rank is made.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// What moves, moves whole.
    Whole(fn(&Shape, &mut Part)),
    /// It moves in so many segments.
    Cut(fn(&Shape, u64, &mut Part)),
}

/// All of them.
pub const ALGORITHMS: &[Algorithm] = &[
    barrier::DISSEMINATION,
    flat::BARRIER,
    two_level::BARRIER,
    broadcast::BINARY,
    broadcast::BINOMIAL,
    broadcast::CHAIN,
    broadcast::PIPELINED,
    scatter_allgather::SCATTER_ALLGATHER,
    flat::STAGED,
    flat::EAGER,
    trinaryx3::BUCKET,
    trinaryx3::TWO_PHASE,
    two_level::BCAST,
    allgather::RING,
    allgather::DOUBLING,
    allgather::BRUCK,
    allgather::LISTS,
    flat::ALLGATHER,
    two_level::ALLGATHER,
    reduce::TREE,
    flat::REDUCE,
    flat::REDUCE_DIRECT,
    two_level::REDUCE,
    allreduce::TREE,
    allreduce::DOUBLING,
    allreduce::RING,
    allreduce::RABENSEIFNER,
    flat::ALLREDUCE,
    two_level::ALLREDUCE,
    gather::BINOMIAL,
    gather::FLAT,
    scatter::BINOMIAL,
    scatter::FLAT,
    alltoall::PAIRWISE,
    alltoall::BRUCK,
    reduce_scatter::PAIRWISE,
    reduce_scatter::RING,
    scan::INCLUSIVE,
    scan::EXCLUSIVE,
    neighbours::DIRECT,
    laid::BCAST,
    laid::SCATTER,
    laid::GATHER,
    laid::REDUCE,
    laid::ALLREDUCE,
    laid::SHARED,
    laid::REDUCE_SCATTER,
    laid::ALLGATHER,
    laid::ALLTOALL,
    laid::SCAN,
    laid::EXSCAN,
    laid::BARRIER,
    halves::BCAST,
];

/// Steps that raise all of these, as soon as those before them in their queue have begun.
fn tell_all(part: &mut Part, effects: impl Iterator<Item = Effect>) {
    let mut effects = effects;
    while let Some(effect) = effects.next() {
        let step = part.join(started());
        step.then(effect);
        if let Some(second) = effects.next() {
            step.then(second);
        }
    }
}

/// How often 1 must be doubled to be no less than that.
fn doublings(ranks: usize) -> usize {
    ranks.next_power_of_two().trailing_zeros() as usize
}

impl Algorithm {
    /// What is taken for a shape where nothing was measured or forced, and each rank has a processor of its own.
    pub fn choose(shape: &Shape) -> &'static Algorithm {
        Selection::default().choose(shape)
    }

    /// What it has to do for a shape, whole; `None` where that depends on more than the shape's sizes. Makes no
    /// schedule.
    pub fn work(&self, shape: &Shape) -> Option<Work> {
        work::of(self, shape)
    }

    /// Whether it is for calls, and plans that each rank runs alone.
    pub(super) fn is_for_calls(&self) -> bool {
        matches!(self.name, "laid" | "told" | "shared" | "halves")
    }

    /// The schedule of a shape, cut into so many segments where the algorithm cuts.
    pub fn schedule(&self, shape: &Shape, segments: u64) -> Schedule {
        let (make, of, for_contract) = (self.make, shape.clone(), shape.clone());
        let part = move |part: &mut Part| match make {
            Make::Whole(make) => make(&of, part),
            Make::Cut(make) => make(&of, segments, part),
        };
        Schedule::new(self.name, shape.ranks, part, move |rank| for_contract.contract(rank))
    }
}

#[cfg(test)]
mod proofs;
#[cfg(test)]
mod rooted;
#[cfg(test)]
mod textbook;
#[cfg(test)]
mod turning;
