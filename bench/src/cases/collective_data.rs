//! What collective operations are given and must give: another value in each call, the first and the last word of a
//! block written and checked; and the loop that times calls back to back, the root another rank in each.

use super::{Stopwatch, expect};
use tasuki::{Communicator, Job, Max};

/// Calls that warm up.
pub(crate) const WARM_UP: u64 = 20;
/// A loop of more than this is made shorter, but not below so many calls.
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
    /// By the name of its call.
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

/// A call is known by its number; a value names the call and the rank that gives it, and who it is for.
const CALL: u64 = 1 << 16;
const FOR: u64 = 1 << 40;

/// One call of many.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Words of a block.
    pub(crate) words: usize,
    pub(crate) number: u64,
    pub(crate) root: usize,
}

impl Round {
    /// Before the first call.
    pub(crate) fn new(job: &Job, bytes: u64) -> Round {
        let words = bytes as usize / size_of::<u64>();
        Round { rank: job.rank().index(), ranks: job.size(), words, number: 0, root: 0 }
    }

    /// The next call, with the next root.
    pub(crate) fn next(&mut self) {
        self.number += 1;
        self.root = if self.root + 1 == self.ranks { 0 } else { self.root + 1 };
    }

    pub(crate) fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// Whose block is checked in this call.
    pub(crate) fn checked(&self) -> usize {
        (self.number / self.ranks as u64 % self.ranks as u64) as usize
    }

    /// What a rank gives.
    pub(crate) fn value(&self, rank: usize) -> u64 {
        self.number * CALL + rank as u64
    }

    /// What a rank gives for another.
    pub(crate) fn value_for(&self, from: usize, to: usize) -> u64 {
        self.value(from) + to as u64 * FOR
    }

    /// The sum of what all give.
    pub(crate) fn sum(&self) -> u64 {
        let ranks = self.ranks as u64;
        ranks * self.number * CALL + ranks * (ranks - 1) / 2
    }

    /// The sum of what all give for one.
    pub(crate) fn sum_for(&self, to: usize) -> u64 {
        self.sum() + self.ranks as u64 * to as u64 * FOR
    }

    /// Writes the two words of a block that are looked at.
    pub(crate) fn give(block: &mut [u64], value: u64) {
        let last = block.len() - 1;
        (block[0], block[last]) = (value, value);
    }

    /// Checks them.
    pub(crate) fn check(block: &[u64], value: u64) -> tasuki::Result<()> {
        expect((block.first(), block.last()), (Some(&value), Some(&value)), "a collective operation")
    }
}

/// The largest of what the ranks give.
pub(crate) fn slowest(world: &Communicator, mine: f64) -> tasuki::Result<f64> {
    let mut slowest = [mine];
    world.allreduce_in_place(&mut slowest, Max)?;
    Ok(slowest[0])
}

/// The mean time of calls, after some that warm up; `time` returns that of so many on this rank, in ns. As many calls
/// are made as were asked for and take no more than a third of a second. The slowest rank's time counts.
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

/// One repetition of calls back to back.
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
