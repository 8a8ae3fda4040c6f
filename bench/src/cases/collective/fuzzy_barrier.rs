//! fuzzy, fuzzy_hidden: what a fuzzy barrier costs a rank for which all others are there already, from its start until
//! it is found over; and what one costs beside work that takes longer, with that work taken off. Of the latter the
//! median counts: where a rank lost its processor in the midst of its work nothing was hidden.

use crate::case::Case;
use crate::cases::collective::calls::{CALLS_MIN, TIME_MAX_NS, WARM_UP};
use crate::harness::measure::Measure;
use crate::harness::stopwatch::Stopwatch;
use std::time::Duration;
use tasuki::{Communicator, Job, Max, Rank};

/// Work beside a barrier: longer than any takes where each rank has a processor.
const WORK: Duration = Duration::from_micros(20);

/// Barriers one after the other, on all ranks of a job.
pub(crate) struct Fuzzy<'j> {
    case: Case,
    job: &'j Job,
    world: &'j Communicator,
    calls: u64,
    clock_ns: u64,
}

impl<'j> Fuzzy<'j> {
    /// `calls` barriers.
    pub(crate) fn new(job: &'j Job, case: Case, calls: u64) -> Fuzzy<'j> {
        Fuzzy { case, job, world: job.world(), calls, clock_ns: Stopwatch::cost_ns() }
    }

    /// The time of one, on the rank that comes last; 0 on the others.
    fn late(&self) -> tasuki::Result<u64> {
        let is_late = self.job.rank() == Rank(0);
        let early = (!is_late).then(|| self.world.fuzzy_barrier()).transpose()?;
        self.world.barrier()?;
        if let Some(early) = early {
            return early.wait().map(|()| 0);
        }
        let watch = Stopwatch::start();
        let barrier = self.world.fuzzy_barrier()?;
        while !barrier.is_done()? {
            std::hint::spin_loop();
        }
        Ok(watch.ns(self.clock_ns))
    }

    /// The time of one beside work, without that work.
    fn hidden(&self) -> tasuki::Result<u64> {
        let watch = Stopwatch::start();
        let barrier = self.world.fuzzy_barrier()?;
        let work = Stopwatch::start();
        self.job.compute(WORK);
        let worked = work.ns(0);
        barrier.wait()?;
        Ok(watch.ns(worked + 2 * self.clock_ns))
    }

    /// The mean or the median of so many in ns, on the slowest rank.
    fn time(&self, calls: u64) -> tasuki::Result<f64> {
        self.world.barrier()?;
        let own = if self.case == Case::Fuzzy {
            let took: u64 = (0..calls).map(|_| self.late()).sum::<tasuki::Result<u64>>()?;
            took as f64 / calls as f64
        } else {
            let mut each = (0..calls).map(|_| self.hidden()).collect::<tasuki::Result<Vec<u64>>>()?;
            each.sort_unstable();
            each[each.len() / 2] as f64
        };
        let mut slowest = [own];
        self.world.allreduce_in_place(&mut slowest, Max)?;
        Ok(slowest[0])
    }
}

impl Measure for Fuzzy<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let watch = Stopwatch::start();
        let calls = WARM_UP.min(self.calls);
        self.time(calls)?;
        let mut each = [watch.ns(0) as f64 / calls as f64];
        self.world.allreduce_in_place(&mut each, Max)?;
        let affordable = (TIME_MAX_NS / each[0].max(1.0)) as u64;
        self.time(self.calls.min(affordable.max(CALLS_MIN)))
    }
}
