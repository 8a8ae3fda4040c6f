//! barrier, bcast, reduce, allreduce, gather, allgather, alltoall, scatter, reduce_scatter: calls back to back, the
//! root another rank in each, the first and the last word of a block given and checked in each. A rank's time is the
//! mean of its calls; the figure is the slowest rank's.

use crate::case::Case;
use crate::harness::measure::{Measure, wrong};
use crate::harness::stopwatch::Stopwatch;
use tasuki::{Communicator, Job, Max, Rank, Sum};

/// Calls before those that count.
pub(crate) const WARM_UP: u64 = 20;
/// Where calls take long, of more ranks than processors or of long blocks, fewer are made: as many as take this time,
pub(crate) const TIME_MAX_NS: f64 = 3e8;
/// but no fewer than these.
pub(crate) const CALLS_MIN: u64 = 20;
/// A call's values are told from those of the next by more than there are ranks,
const CALL: u64 = 1 << 16;
/// and what is for one rank from what is for the next.
const TO: u64 = 1 << 40;

/// What ranks give and get in one call.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Words of a block.
    pub(crate) words: usize,
    /// Counts on through all repetitions, so that no value comes twice.
    pub(crate) number: u64,
    root: usize,
}

impl Round {
    /// Before the first call, of blocks of `bytes` bytes.
    pub(crate) fn new(job: &Job, bytes: u64) -> Round {
        let words = bytes as usize / size_of::<u64>();
        Round { rank: job.rank().index(), ranks: job.size(), words, number: 0, root: 0 }
    }

    /// Another one in each call.
    pub(crate) fn root(&self) -> usize {
        self.root
    }

    /// The next call.
    pub(crate) fn next(&mut self) {
        self.number += 1;
        self.root = if self.root + 1 == self.ranks { 0 } else { self.root + 1 };
    }

    /// The next one that has the same root.
    pub(crate) fn next_of_root(&mut self) {
        self.number += self.ranks as u64;
    }

    /// Whether this rank is it.
    pub(crate) fn is_root(&self) -> bool {
        self.rank == self.root()
    }

    /// Whose block is looked at where all come.
    pub(crate) fn looked_at(&self) -> usize {
        (self.number / self.ranks as u64 % self.ranks as u64) as usize
    }

    /// What a rank gives.
    pub(crate) fn value(&self, rank: usize) -> u64 {
        self.number * CALL + rank as u64
    }

    /// What it gives for one rank.
    pub(crate) fn value_for(&self, from: usize, to: usize) -> u64 {
        self.value(from) + to as u64 * TO
    }

    /// What all ranks' values come to,
    pub(crate) fn sum(&self) -> u64 {
        let ranks = self.ranks as u64;
        ranks * self.number * CALL + ranks * (ranks - 1) / 2
    }

    /// and those for one rank.
    pub(crate) fn sum_for(&self, to: usize) -> u64 {
        self.sum() + self.ranks as u64 * to as u64 * TO
    }
}

/// How a collective is called.
pub(crate) trait Play {
    /// Once: gives, calls, checks.
    fn play(&mut self, round: &Round) -> tasuki::Result<()>;
}

/// By the calls that return when it is over.
pub(crate) struct Calls<'j> {
    case: Case,
    world: &'j Communicator,
    /// One block, the same in each call.
    block: Vec<u64>,
    /// One for each rank, given and gotten, where there are so many.
    blocks: Vec<u64>,
    all: Vec<u64>,
}

impl<'j> Calls<'j> {
    /// Of blocks of `bytes` bytes.
    pub(crate) fn new(job: &'j Job, case: Case, bytes: u64) -> Calls<'j> {
        let words = bytes as usize / size_of::<u64>();
        let gives = matches!(case, Case::Alltoall | Case::Scatter | Case::ReduceScatter);
        let gets = matches!(case, Case::Alltoall | Case::Allgather | Case::Gather);
        let room = |is_there: bool| vec![0; if is_there { words * job.size() } else { 0 }];
        Calls { case, world: job.world(), block: vec![0; words], blocks: room(gives), all: room(gets) }
    }

    fn give(&mut self, value: u64) {
        let last = self.block.len() - 1;
        (self.block[0], self.block[last]) = (value, value);
    }

    fn give_all(&mut self, round: &Round) {
        for (to, block) in self.blocks.chunks_exact_mut(round.words).enumerate() {
            let value = round.value_for(round.rank, to);
            (block[0], block[round.words - 1]) = (value, value);
        }
    }

    fn expect(&self, block: Option<&[u64]>, value: u64) -> tasuki::Result<()> {
        let is_right =
            block.is_some_and(|block| block.first() == Some(&value) && block.last() == Some(&value));
        if is_right { Ok(()) } else { Err(wrong(&self.case.to_string())) }
    }

    fn expect_gathered(&self, round: &Round, value: impl Fn(usize) -> u64) -> tasuki::Result<()> {
        let rank = round.looked_at();
        self.expect(self.all.get(rank * round.words..(rank + 1) * round.words), value(rank))
    }
}

impl Play for Calls<'_> {
    fn play(&mut self, round: &Round) -> tasuki::Result<()> {
        let (world, root) = (self.world, Rank(round.root() as u32));
        match self.case {
            Case::Barrier => {}
            Case::Bcast if !round.is_root() => {}
            Case::Scatter if !round.is_root() => {}
            Case::Alltoall | Case::Scatter | Case::ReduceScatter => self.give_all(round),
            _ => self.give(round.value(round.rank)),
        }
        match self.case {
            Case::Bcast => {
                world.bcast(&mut self.block, root)?;
                self.expect(Some(&self.block), round.value(round.root()))
            }
            Case::Reduce => {
                world.reduce_in_place(&mut self.block, Sum, root)?;
                if round.is_root() { self.expect(Some(&self.block), round.sum()) } else { Ok(()) }
            }
            Case::Allreduce => {
                world.allreduce_in_place(&mut self.block, Sum)?;
                self.expect(Some(&self.block), round.sum())
            }
            Case::Gather => {
                world.gather_into(&self.block, &mut self.all, root)?;
                if round.is_root() { self.expect_gathered(round, |of| round.value(of)) } else { Ok(()) }
            }
            Case::Allgather => {
                world.allgather_into(&self.block, &mut self.all)?;
                self.expect_gathered(round, |of| round.value(of))
            }
            Case::Alltoall => {
                world.alltoall_into(&self.blocks, &mut self.all)?;
                self.expect_gathered(round, |of| round.value_for(of, round.rank))
            }
            Case::Scatter => {
                world.scatter_into(&self.blocks, &mut self.block, root)?;
                self.expect(Some(&self.block), round.value_for(round.root(), round.rank))
            }
            Case::ReduceScatter => {
                let sum = world.reduce_scatter(&self.blocks, Sum)?;
                self.expect(Some(&sum), round.sum_for(round.rank))
            }
            _ => world.barrier(),
        }
    }
}

/// One collective on all ranks of a job, again and again.
pub(crate) struct Collective<'j, P> {
    world: &'j Communicator,
    player: P,
    calls: u64,
    round: Round,
}

impl<'j, P: Play> Collective<'j, P> {
    /// `calls` calls, of blocks of `bytes` bytes.
    pub(crate) fn new(job: &'j Job, player: P, bytes: u64, calls: u64) -> Collective<'j, P> {
        Collective { world: job.world(), player, calls, round: Round::new(job, bytes) }
    }

    /// The mean of so many calls in ns.
    #[inline(never)]
    fn time(&mut self, calls: u64) -> tasuki::Result<f64> {
        self.world.barrier()?;
        let watch = Stopwatch::start();
        for _ in 0..calls {
            self.round.next();
            self.player.play(&self.round)?;
        }
        Ok(watch.ns(0) as f64 / calls as f64)
    }
}

/// The slowest rank's time. Collective.
pub(crate) fn slowest(world: &Communicator, mine: f64) -> tasuki::Result<f64> {
    let mut slowest = [mine];
    world.allreduce_in_place(&mut slowest, Max)?;
    Ok(slowest[0])
}

impl<P: Play> Measure for Collective<'_, P> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let warm = self.time(WARM_UP.min(self.calls))?;
        let affordable = (TIME_MAX_NS / slowest(self.world, warm)?.max(1.0)) as u64;
        let mean = self.time(self.calls.min(affordable.max(CALLS_MIN)))?;
        slowest(self.world, mean)
    }
}
