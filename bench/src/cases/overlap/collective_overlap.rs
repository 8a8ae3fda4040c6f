//! overlap_coll: two ranks share a processor and work; a helper on another one moves their plans on. How much processor
//! time do start and wait take them, against the time of the collective where nobody works?

use crate::case::Case;
use crate::cases::collective::calls::{Collective, Round, slowest};
use crate::cases::collective::persistent::Plans;
use crate::cases::memory::rank_memory;
use crate::cases::overlap::stencil::{IN_L1, Stencil};
use crate::harness::measure::Measure;
use crate::harness::process_role::ProcessRole;
use crate::harness::repetition::Summary;
use crate::result::figure::Event;
use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use tasuki::{Job, Rank};

/// Ranks of the case.
pub(crate) const RANKS: usize = 2;
/// What is prepared,
const OPERATIONS: [Case; 2] = [Case::Bcast, Case::Allreduce];
/// of blocks of so many bytes.
const SIZES: [u64; 2] = [8 << 10, 1 << 20];
/// Rounds that do not count: each root's plan touches its memory for the first time.
const WARM_UP: u64 = RANKS as u64;
/// Looks at the clock that tell what one costs.
const LOOKS: u64 = 1000;

/// How much is done for a figure.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct OverlapEffort {
    /// Starts beside work.
    pub(crate) rounds: u64,
    /// Values that are worked out in each: longer than the kernel lets one rank have the processor.
    pub(crate) points: u64,
    /// Starts without work.
    pub(crate) calls: u64,
}

impl OverlapEffort {
    /// What figures for people are made with.
    pub(crate) const FULL: OverlapEffort = OverlapEffort { rounds: 8, points: 48 << 20, calls: 200 };
}

/// A figure of one job.
pub(crate) struct OverlapFigure {
    /// Its row's variant,
    pub(crate) variant: String,
    /// bytes of a block,
    pub(crate) bytes: u64,
    /// and time in ns.
    pub(crate) ns: f64,
}

/// Processor time that this thread has taken, in ns.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// That of a call, and of a look at the clock.
fn processor_ns_of(call: impl FnOnce() -> tasuki::Result<()>) -> tasuki::Result<f64> {
    let begin = processor_ns();
    call()?;
    Ok((processor_ns() - begin) as f64)
}

/// What a look at it costs.
fn look_ns() -> f64 {
    let begin = processor_ns();
    let end = (0..LOOKS).fold(begin, |_, _| processor_ns());
    (end - begin) as f64 / LOOKS as f64
}

/// Both ranks run this; the first one tells.
pub(crate) fn app(job: &Job, effort: OverlapEffort, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    for operation in OPERATIONS {
        for bytes in SIZES {
            let plans = Plans::new(job, operation, bytes)?;
            let alone = Collective::new(job, plans, bytes, effort.calls).measure()?;
            let beside = beside(job, operation, bytes, effort)?;
            for (variant, ns) in [("alone", alone), ("beside", beside)] {
                if job.rank() == Rank(0) {
                    tell(Event::Report(format!("{operation}_{variant} {bytes}"), ns as u64));
                }
            }
        }
    }
    Ok(())
}

/// The processor time of start and wait beside work, in the middle of so many rounds, on the rank that needs more. The
/// clock's own is taken off: after work not even that is in the caches, and a look takes longer than one of many.
fn beside(job: &Job, operation: Case, bytes: u64, effort: OverlapEffort) -> tasuki::Result<f64> {
    let (mut plans, mut work) = (Plans::new(job, operation, bytes)?, Stencil::new(IN_L1));
    let (mut round, look) = (Round::new(job, bytes), look_ns());
    let (mut took, mut clock) = (Vec::new(), Vec::new());
    for _ in 0..WARM_UP + effort.rounds {
        round.next();
        plans.give(&round)?;
        job.barrier()?;
        let start = processor_ns_of(|| plans.start(&round))? - look;
        work.work(effort.points);
        took.push(start + processor_ns_of(|| plans.wait(&round))?);
        plans.expect(&round)?;
        work.work(effort.points);
        clock.push(processor_ns_of(|| Ok(()))?);
    }
    let middle = |rounds: Vec<f64>| Summary::of(rounds.into_iter().skip(WARM_UP as usize).collect(), true);
    let took = middle(took).map_or(0.0, |took| took.median) - middle(clock).map_or(0.0, |clock| clock.median);
    slowest(job.world(), took.max(1.0))
}

/// Where the ranks are bound, and which helper they have: one for both, on a processor of its own.
pub(crate) fn options(processors: &[usize]) -> anyhow::Result<[String; 4]> {
    ensure!(processors.len() >= 2, "ranks and their helper need two processors");
    let bound = vec![processors[0].to_string(); RANKS].join(",");
    Ok(["--bind".into(), bound, "--helper".into(), format!("node:{}", processors[1])])
}

/// Runs such a job on two of these processors once.
pub(crate) fn take(processors: &[usize], effort: OverlapEffort) -> anyhow::Result<Vec<OverlapFigure>> {
    let options = options(processors)?;
    let command = ProcessRole::OverlapColl(effort).run(RANKS, &options.each_ref().map(String::as_str))?;
    let of = |(what, ns): (String, u64)| {
        let (variant, bytes) = what.split_once(' ').with_context(|| format!("a rank told {what}"))?;
        Ok(OverlapFigure { variant: variant.into(), bytes: bytes.parse()?, ns: ns as f64 })
    };
    rank_memory::reports(command, RANKS)?.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn both_plans_are_measured_alone_and_beside_work() {
        let told = Mutex::new(Vec::new());
        let effort = OverlapEffort { rounds: 2, points: 1000, calls: 3 };
        tasuki::local(RANKS, |job| app(job, effort, &|event| told.lock().unwrap().push(event))).unwrap();
        let names: Vec<String> = told
            .into_inner()
            .unwrap()
            .into_iter()
            .filter_map(|event| match event {
                Event::Report(what, ns) if ns > 0 => Some(what),
                _ => None,
            })
            .collect();
        assert_eq!(names.len(), 2 * OPERATIONS.len() * SIZES.len());
        assert!(
            names.contains(&"bcast_alone 8192".into()) && names.contains(&"allreduce_beside 1048576".into())
        );
    }
}
