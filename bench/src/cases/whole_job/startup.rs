//! startup: from exec of `tasuki run` to its exit, of ranks that meet and leave.

use crate::harness::measure::wrong;
use crate::harness::process_role::ProcessRole;
use anyhow::{Context, ensure};
use std::process::Stdio;
use std::time::Instant;
use tasuki::{Job, Rank};

/// Each rank adds its number and one to a word of rank 0, all see the sum, and leave.
pub(crate) fn app(job: &Job) -> tasuki::Result<()> {
    let word = job.bootstrap_memory(Rank(0))?.cast::<u64>();
    job.fetch_add(word, u64::from(job.rank().0) + 1)?;
    job.barrier()?;
    let ranks = job.size() as u64;
    if job.load(word)? == ranks * (ranks + 1) / 2 { Ok(()) } else { Err(wrong("startup")) }
}

/// Runs such a job once; its time in ns.
pub(crate) fn time(ranks: usize) -> anyhow::Result<f64> {
    let mut command = ProcessRole::Startup.job(ranks, &[])?;
    command.stdin(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("tasuki run could not be started")?;
    let took = start.elapsed();
    ensure!(status.success(), "startup: the job of {ranks} ranks failed ({status})");
    Ok(took.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranks_meet_and_find_the_sum() {
        tasuki::local(5, super::app).unwrap();
    }
}
