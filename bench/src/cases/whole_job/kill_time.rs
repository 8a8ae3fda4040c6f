//! death: from SIGKILL until the last process of a job is gone.

use crate::cases::whole_job::waiting_ranks::Waiting;
use crate::harness::process_observation::await_end;
use anyhow::ensure;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// After this time of waiting ranks are fast asleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(50);
/// Longer than this counts as never.
const LIMIT: Duration = Duration::from_secs(30);

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Victim {
    /// One of the ranks: another one in each repetition.
    Rank(usize),
    /// The launcher.
    Launcher,
}

/// Kills one process of a job of waiting ranks; the time in ns until all are gone.
pub(crate) fn time(ranks: usize, victim: Victim) -> anyhow::Result<f64> {
    let job = Waiting::start(ranks)?;
    std::thread::sleep(ASLEEP_AFTER);
    let start = Instant::now();
    match victim {
        Victim::Rank(which) => job.ranks[which % ranks].send(Signal::KILL)?,
        Victim::Launcher => job.root.send(Signal::KILL)?,
    }
    let ended = await_end(job.all(), LIMIT)?;
    let took = start.elapsed();
    ensure!(ended, "death: processes of the job are still there {LIMIT:?} after {victim:?} was killed");
    Ok(took.as_nanos() as f64)
}
