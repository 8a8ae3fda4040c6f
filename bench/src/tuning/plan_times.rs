//! Times from which the costs of operations on this machine can be derived, for the model with which plans choose their
//! algorithms. The times are those of plans with forced algorithms, in jobs whose ranks have a processor each, and in
//! jobs with two ranks on each processor.

use super::cost_fit::Timed;
use crate::case::spread;
use crate::cases::collective_data::{Operation, back_to_back};
use crate::cases::collectives::Plans;
use crate::harness::process_role::ProcessRole;
use anyhow::ensure;
use tasuki::{Job, Rank};

/// The algorithms that are forced in a job. Together they cover algorithms that depend mainly on different costs.
const FORCED: [&str; 3] = [
    "barrier=dissemination,bcast=eager,reduce=flat,allreduce=flat,allgather=flat,alltoall=pairwise",
    "barrier=central,bcast=binomial,reduce=tree,allreduce=rabenseifner,allgather=ring,alltoall=bruck",
    "barrier=dissemination,bcast=staged,reduce=tree,allreduce=tree,allgather=bruck,alltoall=pairwise",
];
/// How many ranks share a processor.
const RANKS_PER_PROCESSOR: [usize; 2] = [1, 2];
/// The operations that are measured, and the bytes of their blocks.
const OPERATIONS: [&str; 6] = ["bcast", "allreduce", "reduce", "allgather", "alltoall", "barrier"];
const SIZES: [u64; 3] = [8, 32 << 10, 512 << 10];

/// The number of repetitions and the number of calls in a repetition. A repetition gives the mean time of its calls;
/// the median of the repetitions counts. A repetition makes fewer calls if these take long.
pub(crate) const USUAL: (usize, u64) = (5, 200);

/// All ranks run this function; the first one reports.
pub(crate) fn measure(
    job: &Job,
    (repetitions, calls): (usize, u64),
    report: &dyn Fn(&str, u64),
) -> tasuki::Result<()> {
    for operation in OPERATIONS {
        let sizes = if operation == "barrier" { &SIZES[..1] } else { &SIZES };
        for &bytes in sizes {
            let mut plans = Plans::new(job, Operation::named(operation), bytes)?;
            let mut repeat = back_to_back(job, bytes, calls, move |round| plans.play(round));
            let mut times = (0..repetitions).map(|_| repeat()).collect::<tasuki::Result<Vec<f64>>>()?;
            times.sort_by(f64::total_cmp);
            if job.rank() == Rank(0) {
                report(&format!("{operation} {bytes}"), times[times.len() / 2] as u64);
            }
        }
    }
    Ok(())
}

/// Measures the times of such jobs on two of these processors.
pub(crate) fn take(processors: &[usize]) -> anyhow::Result<Vec<Timed>> {
    ensure!(processors.len() >= 2, "two processors are needed, this process may use {}", processors.len());
    let mut all = Vec::new();
    for per_processor in RANKS_PER_PROCESSOR {
        for forced in FORCED {
            let ranks = 2 * per_processor;
            let mut options = spread(&processors[..2], ranks);
            options.extend(["--collectives".into(), forced.into()]);
            let reports = ProcessRole::PlanTimes.reports(ranks, &options)?;
            let timed =
                |(what, ns): (String, u64)| Timed { forced, ranks, per_processor, what, ns: ns as f64 };
            all.extend(reports.into_iter().map(timed));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::cost_fit;
    use std::sync::Mutex;

    #[test]
    fn what_is_reported_is_of_what_was_forced() {
        let all = Mutex::new(Vec::new());
        let report = |what: &str, ns| all.lock().unwrap().push((what.to_string(), ns));
        tasuki::local(2, |job| measure(job, (1, 2), &report)).unwrap();
        let all = all.into_inner().unwrap();
        assert_eq!(all.len(), (OPERATIONS.len() - 1) * SIZES.len() + 1);
        for forced in FORCED {
            let timed = |(what, ns): &(String, u64)| Timed {
                forced,
                ranks: 2,
                per_processor: 1,
                what: what.clone(),
                ns: *ns as f64,
            };
            cost_fit::costs(&all.iter().map(timed).collect::<Vec<_>>()).unwrap();
        }
    }
}
