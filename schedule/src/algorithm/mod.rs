//! Algorithms: each makes the part of one rank of a collective, from the shape alone. One file each.

pub(crate) mod allgather;
pub(crate) mod allreduce;
pub(crate) mod alltoall;
pub(crate) mod barrier;
pub(crate) mod bcast;
pub(crate) mod copy_in_copy_out;
pub(crate) mod flat;
pub(crate) mod gather;
pub(crate) mod layout;
pub(crate) mod neighbours;
pub(crate) mod reduce;
pub(crate) mod reduce_scatter;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod two_level;
pub(crate) mod work;

pub use alltoall::put_all;
pub use bcast::session::streams;
pub use neighbours::{GivenBlock, put_blocks};
pub use work::{Load, Work};

use crate::selection::Selection;
use crate::shape::{CollectiveKind, Shape};
use crate::{RankPart, Schedule, StepEffect, started};

/// A way to do a collective.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub operation: CollectiveKind,
    /// Whether it does it for such a shape.
    pub fits: fn(&Shape) -> bool,
    /// CombineWith the part of a rank is made.
    make: Make,
}

/// CombineWith the part of a rank is made.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// What moves, moves whole.
    Whole(fn(&Shape, &mut RankPart)),
    /// It moves in so many segments.
    Cut(fn(&Shape, u64, &mut RankPart)),
}

/// All of them.
pub const ALGORITHMS: &[Algorithm] = &[
    barrier::DISSEMINATION,
    flat::BARRIER,
    two_level::BARRIER,
    bcast::tree::BINARY,
    bcast::tree::BINOMIAL,
    bcast::tree::CHAIN,
    bcast::tree::PIPELINED,
    bcast::scatter_allgather::SCATTER_ALLGATHER,
    flat::STAGED,
    flat::EAGER,
    bcast::trinaryx3::BUCKET,
    bcast::trinaryx3::TWO_PHASE,
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
    copy_in_copy_out::BCAST,
    copy_in_copy_out::SCATTER,
    copy_in_copy_out::GATHER,
    copy_in_copy_out::REDUCE,
    copy_in_copy_out::ALLREDUCE,
    copy_in_copy_out::SHARED,
    copy_in_copy_out::REDUCE_SCATTER,
    copy_in_copy_out::ALLGATHER,
    copy_in_copy_out::ALLTOALL,
    copy_in_copy_out::SCAN,
    copy_in_copy_out::EXSCAN,
    copy_in_copy_out::BARRIER,
    bcast::split_copy::BCAST,
];

/// Steps that raise all of these, as soon as those before them in their queue have begun.
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

/// CombineWith often 1 must be doubled to be no less than that.
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
        matches!(self.name, "copy in copy out" | "all to all" | "reduce scatter allgather" | "split copy")
    }

    /// The schedule of a shape, cut into so many segments where the algorithm cuts.
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
