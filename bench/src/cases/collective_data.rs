//! The data of collective operations. Each call has other values than the calls before it; the first and the last word
//! of each block are written and checked. The file also contains the loop that times consecutive calls, each with
//! another root.

use super::{Stopwatch, expect};
use tasuki::collective::Max;
use tasuki::{Communicator, Job};

/// Number of warm-up calls.
pub(crate) const WARM_UP: u64 = 20;
/// The loop makes fewer calls if it would take longer than this, but at least `CALLS_MIN`.
const TIME_MAX_NS: f64 = 3e8;
const CALLS_MIN: u64 = 20;

/// The collective operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Allgather,
    Alltoall,
    Scatter,
    ReduceScatter,
}

impl Operation {
    /// Returns the operation of the call with this name.
    pub(crate) fn named(name: &str) -> Operation {
        match name {
            "bcast" => Operation::Bcast,
            "reduce" => Operation::Reduce,
            "allreduce" => Operation::Allreduce,
            "gather" => Operation::Gather,
            "allgather" => Operation::Allgather,
            "alltoall" => Operation::Alltoall,
            "scatter" => Operation::Scatter,
            "reduce_scatter" => Operation::ReduceScatter,
            _ => Operation::Barrier,
        }
    }
}

/// A value encodes the number of its call, as a multiple of `CALL`; the rank for which it is contributed, as a multiple
/// of `FOR`; and the rank that contributes it.
const CALL: u64 = 1 << 16;
const FOR: u64 = 1 << 40;

/// One of many calls.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Number of words in a block.
    pub(crate) words: usize,
    pub(crate) number: u64,
    pub(crate) root: usize,
}

impl Round {
    /// Returns the state before the first call.
    pub(crate) fn new(job: &Job, bytes: u64) -> Round {
        let words = bytes as usize / size_of::<u64>();
        Round { rank: job.rank().index(), ranks: job.size(), words, number: 0, root: 0 }
    }

    /// Goes on to the next call, which has another root.
    pub(crate) fn next(&mut self) {
        self.number += 1;
        self.root = if self.root + 1 == self.ranks { 0 } else { self.root + 1 };
    }

    pub(crate) fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// Returns the rank whose block is checked in this call.
    pub(crate) fn checked(&self) -> usize {
        (self.number / self.ranks as u64 % self.ranks as u64) as usize
    }

    /// Returns the value that a rank contributes.
    pub(crate) fn value(&self, rank: usize) -> u64 {
        self.number * CALL + rank as u64
    }

    /// Returns the value that a rank contributes for another rank.
    pub(crate) fn value_for(&self, from: usize, to: usize) -> u64 {
        self.value(from) + to as u64 * FOR
    }

    /// Returns the sum of the values that all ranks contribute.
    pub(crate) fn sum(&self) -> u64 {
        let ranks = self.ranks as u64;
        ranks * self.number * CALL + ranks * (ranks - 1) / 2
    }

    /// Returns the sum of the values that all ranks contribute for one rank.
    pub(crate) fn sum_for(&self, to: usize) -> u64 {
        self.sum() + self.ranks as u64 * to as u64 * FOR
    }

    /// Writes the first and the last word of a block, which are the words that are checked.
    pub(crate) fn give(block: &mut [u64], value: u64) {
        let last = block.len() - 1;
        (block[0], block[last]) = (value, value);
    }

    /// Checks the first and the last word of a block.
    pub(crate) fn check(block: &[u64], value: u64) -> tasuki::Result<()> {
        expect((block.first(), block.last()), (Some(&value), Some(&value)), "a collective operation")
    }
}

/// Returns the largest of the values that the ranks pass.
pub(crate) fn slowest(world: &Communicator, mine: f64) -> tasuki::Result<f64> {
    let mut slowest = [mine];
    world.allreduce(&mut slowest, Max)?;
    Ok(slowest[0])
}

/// Returns the mean time of a call after some warm-up calls. `time` makes a number of calls and returns their mean time
/// on this rank, in ns. The loop makes as many calls as were asked for, or fewer if those would take more than a third
/// of a second. The result is the time of the slowest rank.
pub(crate) fn mean_of_calls(
    world: &Communicator,
    calls: u64,
    mut time: impl FnMut(u64) -> tasuki::Result<f64>,
) -> tasuki::Result<f64> {
    let (watch, warm) = (Stopwatch::start(), WARM_UP.min(calls));
    time(warm)?;
    let each = slowest(world, watch.ns(0) as f64 / warm as f64)?;
    let mean = time(calls.min(((TIME_MAX_NS / each.max(1.0)) as u64).max(CALLS_MIN)))?;
    slowest(world, mean)
}

/// Returns the function that makes one repetition of consecutive calls.
pub(crate) fn back_to_back<'j>(
    job: &'j Job,
    bytes: u64,
    calls: u64,
    mut play: impl FnMut(&Round) -> tasuki::Result<()> + 'j,
) -> impl FnMut() -> tasuki::Result<f64> + 'j {
    let (world, mut round) = (job.world(), Round::new(job, bytes));
    move || mean_of_calls(world, calls, |calls| run(world, &mut round, calls, &mut play))
}

#[inline(never)]
fn run(
    world: &Communicator,
    round: &mut Round,
    calls: u64,
    play: &mut impl FnMut(&Round) -> tasuki::Result<()>,
) -> tasuki::Result<f64> {
    world.barrier()?;
    let watch = Stopwatch::start();
    for _ in 0..calls {
        round.next();
        play(round)?;
    }
    Ok(watch.ns(0) as f64 / calls as f64)
}
