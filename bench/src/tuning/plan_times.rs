//! Times from which follows what things cost here, for the model by which plans choose their algorithms: jobs whose
//! ranks have a processor each, and jobs whose ranks share two, start plans by algorithms that are forced.

use crate::case::Case;
use crate::cases::collective::calls::Collective;
use crate::cases::collective::persistent::{OPERATIONS, Plans};
use crate::cases::memory::rank_memory;
use crate::harness::measure::Measure;
use crate::harness::process_role::ProcessRole;
use crate::result::figure::Event;
use crate::tuning::cost_fit::Timed;
use anyhow::ensure;
use tasuki::{Job, Rank};

/// What is forced in a job: together, algorithms that differ in what they need most.
const FORCED: [&str; 3] = [
    "barrier=dissemination,bcast=eager,reduce=flat,allreduce=flat,allgather=flat,alltoall=pairwise",
    "barrier=central,bcast=binomial,reduce=tree,allreduce=rabenseifner,allgather=ring,alltoall=bruck",
    "barrier=dissemination,bcast=staged,reduce=tree,allreduce=tree,allgather=bruck,alltoall=pairwise",
];
/// How many ranks share a processor.
const RANKS_PER_PROCESSOR: [usize; 2] = [1, 2];
/// Bytes of blocks.
const SIZES: [u64; 3] = [8, 32 << 10, 512 << 10];

/// How much is done for a figure.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PlanTimesEffort {
    /// The median of so many
    pub(crate) repetitions: usize,
    /// means of so many calls, the longest ones fewer.
    pub(crate) calls: u64,
}

impl PlanTimesEffort {
    /// What a machine is tuned with.
    pub(crate) const FULL: PlanTimesEffort = PlanTimesEffort { repetitions: 5, calls: 200 };
}

/// All ranks run this; the first one tells.
pub(crate) fn app(job: &Job, effort: PlanTimesEffort, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    for operation in OPERATIONS {
        let sizes = if operation == Case::Barrier { &SIZES[..1] } else { &SIZES };
        for &bytes in sizes {
            let mut collective =
                Collective::new(job, Plans::new(job, operation, bytes)?, bytes, effort.calls);
            let times: tasuki::Result<Vec<f64>> =
                (0..effort.repetitions).map(|_| collective.measure()).collect();
            let mut times = times?;
            times.sort_by(f64::total_cmp);
            if job.rank() == Rank(0) {
                tell(Event::Report(format!("{operation} {bytes}"), times[times.len() / 2] as u64));
            }
        }
    }
    Ok(())
}

/// Times such jobs on two of these processors; says how much is done.
pub(crate) fn take(
    processors: &[usize],
    effort: PlanTimesEffort,
    done: &mut dyn FnMut(f64),
) -> anyhow::Result<Vec<Timed>> {
    ensure!(processors.len() >= 2, "two processors are needed, this process may use {}", processors.len());
    let mut all = Vec::new();
    let jobs = RANKS_PER_PROCESSOR
        .into_iter()
        .flat_map(|per_processor| FORCED.into_iter().map(move |forced| (per_processor, forced)));
    for (number, (per_processor, forced)) in jobs.enumerate() {
        let ranks = 2 * per_processor;
        let bound: Vec<String> = (0..ranks).map(|rank| processors[rank % 2].to_string()).collect();
        let options = ["--bind", &bound.join(","), "--collectives", forced];
        let told = rank_memory::reports(ProcessRole::PlanTimes(effort).run(ranks, &options)?, ranks)?;
        let timed = |(what, ns): (String, u64)| Timed { forced, ranks, per_processor, what, ns: ns as f64 };
        all.extend(told.into_iter().map(timed));
        done((number + 1) as f64 / (RANKS_PER_PROCESSOR.len() * FORCED.len()) as f64);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::cost_fit;
    use std::sync::Mutex;

    #[test]
    fn what_is_told_is_of_what_was_forced() {
        let told = Mutex::new(Vec::new());
        let effort = PlanTimesEffort { repetitions: 1, calls: 2 };
        tasuki::local(2, |job| app(job, effort, &|event| told.lock().unwrap().push(event))).unwrap();
        let told = told.into_inner().unwrap();
        let told: Vec<(String, u64)> = told
            .into_iter()
            .filter_map(|event| match event {
                Event::Report(what, ns) => Some((what, ns)),
                _ => None,
            })
            .collect();
        assert_eq!(told.len(), (OPERATIONS.len() - 1) * SIZES.len() + 1);
        for forced in FORCED {
            let timed = |(what, ns): &(String, u64)| {
                assert!(*ns > 0, "{what}");
                Timed { forced, ranks: 2, per_processor: 1, what: what.clone(), ns: *ns as f64 }
            };
            let timed: Vec<Timed> = told.iter().map(timed).collect();
            cost_fit::costs(&timed).unwrap();
        }
    }
}
