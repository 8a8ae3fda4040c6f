//! The cost of a fuzzy barrier, in two cases. The first is a rank that starts the barrier after all others: the time
//! from its start until it finds the barrier complete. The second is a barrier beside work that takes longer than the
//! barrier: the total time less the time of the work. The median of the second counts, because a rank that lost its
//! processor during its work has hidden nothing.

use super::collective_data::mean_of_calls;
use super::{Figures, Setup, Stopwatch, figure};
use std::time::Duration;
use tasuki::{Rank, Request};

const CALLS: u64 = 1_000;
/// How long the work beside a barrier takes.
const WORK: Duration = Duration::from_micros(20);

/// Rank 0 starts a barrier that all others have started.
pub(crate) fn late<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, world, clock_ns, times) = (s.job, s.world(), Stopwatch::cost_ns(), s.effort.times(CALLS));
    let once = move || -> tasuki::Result<u64> {
        let is_late = job.rank() == Rank(0);
        let early = (!is_late).then(|| world.fuzzy_barrier()).transpose()?;
        world.barrier()?;
        if let Some(mut early) = early {
            return early.wait().map(|()| 0);
        }
        let watch = Stopwatch::start();
        let mut barrier = world.fuzzy_barrier()?;
        while !barrier.test() {
            std::hint::spin_loop();
        }
        Ok(watch.ns(clock_ns))
    };
    let time = move |calls: u64| {
        world.barrier()?;
        Ok((0..calls).map(|_| once()).sum::<tasuki::Result<u64>>()? as f64 / calls as f64)
    };
    Ok(vec![figure("", move || mean_of_calls(world, times, time))])
}

/// All ranks work between start and wait.
pub(crate) fn hidden<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, world, clock_ns, times) = (s.job, s.world(), Stopwatch::cost_ns(), s.effort.times(CALLS));
    let once = move |_| -> tasuki::Result<u64> {
        let watch = Stopwatch::start();
        let mut barrier = world.fuzzy_barrier()?;
        let work = Stopwatch::start();
        job.compute(WORK);
        let worked = work.ns(0);
        barrier.wait()?;
        Ok(watch.ns(worked + 2 * clock_ns))
    };
    let time = move |calls: u64| {
        world.barrier()?;
        let mut each = (0..calls).map(once).collect::<tasuki::Result<Vec<u64>>>()?;
        each.sort_unstable();
        Ok(each[each.len() / 2] as f64)
    };
    Ok(vec![figure("", move || mean_of_calls(world, times, time))])
}
