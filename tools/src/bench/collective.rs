//! barrier, bcast, reduce, allreduce, gather, allgather: calls back to back, the root another rank in each, eight
//! bytes of the result checked in each. A rank's time is the mean of its calls; the figure is the slowest rank's.

use super::case::Case;
use super::clock::Stopwatch;
use super::measure::{Measure, wrong};
use tasuki::{Communicator, Job, Max, Rank, Sum};

/// Calls before those that count.
pub(super) const WARM_UP: u64 = 20;
/// Where calls take long, with more ranks than processors, fewer are made: as many as take this time,
pub(super) const TIME_MAX_NS: f64 = 2e9;
/// but no fewer than these.
pub(super) const CALLS_MIN: u64 = 20;
/// A call's values are told from those of the next by more than there are ranks.
const CALL: u64 = 1 << 16;

/// One kind of call on all ranks of a job.
pub(super) struct Collective<'j> {
    case: Case,
    world: &'j Communicator,
    rank: u64,
    ranks: u64,
    calls: u64,
    /// Counts on through all repetitions, so that no value comes twice.
    done: u64,
}

impl<'j> Collective<'j> {
    /// `calls` calls.
    pub(super) fn new(job: &'j Job, case: Case, calls: u64) -> Collective<'j> {
        let (rank, ranks) = (u64::from(job.rank().0), job.size() as u64);
        Collective { case, world: job.world(), rank, ranks, calls, done: 0 }
    }

    fn root(&self) -> Rank {
        Rank((self.done % self.ranks) as u32)
    }

    fn value(&self, rank: u64) -> u64 {
        self.done * CALL + rank
    }

    fn sum(&self) -> u64 {
        self.ranks * self.done * CALL + self.ranks * (self.ranks - 1) / 2
    }

    /// Looks at one of the gathered values, another in each call.
    fn expect_gathered(&self, all: &[u64]) -> tasuki::Result<()> {
        let rank = (self.done / self.ranks) % self.ranks;
        self.expect(all.get(rank as usize), self.value(rank))
    }

    fn expect(&self, got: Option<&u64>, value: u64) -> tasuki::Result<()> {
        if got == Some(&value) { Ok(()) } else { Err(wrong(&self.case.to_string())) }
    }

    fn call(&self) -> tasuki::Result<()> {
        let (root, mine) = (self.root(), [self.value(self.rank)]);
        match self.case {
            Case::Bcast => {
                let mut values = mine;
                self.world.bcast(&mut values, root)?;
                self.expect(values.first(), self.value(u64::from(root.0)))
            }
            Case::Reduce => match self.world.reduce(&mine, Sum, root)? {
                Some(sum) => self.expect(sum.first(), self.sum()),
                None => Ok(()),
            },
            Case::Allreduce => {
                let mut values = mine;
                self.world.allreduce_in_place(&mut values, Sum)?;
                self.expect(values.first(), self.sum())
            }
            Case::Gather => match self.world.gather(&mine, root)? {
                Some(all) => self.expect_gathered(&all),
                None => Ok(()),
            },
            Case::Allgather => self.expect_gathered(&self.world.allgather(&mine)?),
            _ => self.world.barrier(),
        }
    }

    /// The mean of so many calls in ns.
    #[inline(never)]
    fn time(&mut self, calls: u64) -> tasuki::Result<f64> {
        self.world.barrier()?;
        let watch = Stopwatch::start();
        for _ in 0..calls {
            self.done += 1;
            self.call()?;
        }
        Ok(watch.ns(0) as f64 / calls as f64)
    }

    fn slowest(&self, mean: f64) -> tasuki::Result<f64> {
        let mut slowest = [mean];
        self.world.allreduce_in_place(&mut slowest, Max)?;
        Ok(slowest[0])
    }
}

impl Measure for Collective<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let warm = self.time(WARM_UP.min(self.calls))?;
        let affordable = (TIME_MAX_NS / self.slowest(warm)?.max(1.0)) as u64;
        let mean = self.time(self.calls.min(affordable.max(CALLS_MIN)))?;
        self.slowest(mean)
    }
}
