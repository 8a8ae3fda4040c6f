//! idle: processor time of all processes of a job whose ranks wait for a signal.

use crate::cases::whole_job::waiting_ranks::Waiting;
use crate::harness::process_observation::Times;
use std::time::Duration;

/// How long the ranks are watched, from the moment when all of them wait.
pub(crate) const TIME: Duration = Duration::from_secs(10);

/// Processor time in ns that a job of `ranks` waiting ranks takes in `time`, launcher and keeper included.
pub(crate) fn time(ranks: usize, time: Duration) -> anyhow::Result<f64> {
    let job = Waiting::start(ranks)?;
    let before = Times::now(job.all())?;
    std::thread::sleep(time);
    let took = Times::now(job.all())?.since(&before)?;
    job.end()?;
    Ok(took as f64)
}
