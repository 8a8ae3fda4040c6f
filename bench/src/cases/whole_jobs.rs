//! Figures of whole jobs, which the bench itself starts, observes and ends: startup, idle, death.

use super::{expect, wrong};
use crate::harness::process_observation::{Process, Times, await_end, below};
use crate::harness::process_role::{ProcessRole, report, reported};
use anyhow::{Context, bail, ensure};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tasuki::onesided::bootstrap_memory;
use tasuki::{Job, Rank, Request};

/// Makes the repetition with this number.
pub(crate) type RepeatJob = Box<dyn FnMut(usize) -> anyhow::Result<f64>>;

/// Returns the figures of a case, by variant. `watched` is how long `idle` observes a job.
pub(crate) fn figures(case: &str, ranks: usize, watched: Duration) -> Vec<(&'static str, RepeatJob)> {
    match case {
        "startup" => vec![("", Box::new(move |_| startup(ranks)))],
        "idle" => vec![("signal_wait", Box::new(move |_| idle(ranks, watched)))],
        _ => vec![
            ("rank", Box::new(move |number| death(ranks, Some(number)))),
            ("launcher", Box::new(move |_| death(ranks, None))),
        ],
    }
}

/// Each rank adds its number plus one to a word of rank 0; all ranks check the sum and leave.
pub(crate) fn startup_ranks(job: &Job) -> tasuki::Result<()> {
    let word = bootstrap_memory(job, Rank(0))?.cast::<u64>();
    job.fetch_add(word, job.rank().0 as u64 + 1)?;
    job.barrier()?;
    let ranks = job.size() as u64;
    expect(job.load(word)?, ranks * (ranks + 1) / 2, "startup")
}

/// Returns the time from exec of `tasuki run` to its exit, in ns.
fn startup(ranks: usize) -> anyhow::Result<f64> {
    let mut command = ProcessRole::Startup.job(ranks, &[])?;
    command.stdin(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("tasuki run could not be started")?;
    let took = start.elapsed();
    ensure!(status.success(), "startup: the job of {ranks} ranks failed ({status})");
    Ok(took.as_nanos() as f64)
}

/// The time to which the figure of `idle` refers.
const IDLE: Duration = Duration::from_secs(10);

/// Returns the processor time in ns that a job of waiting ranks takes in ten seconds, including launcher and keeper.
/// The figure is scaled if the job is observed for less.
fn idle(ranks: usize, watched: Duration) -> anyhow::Result<f64> {
    let job = Waiting::start(ranks)?;
    let before = Times::now(job.all())?;
    std::thread::sleep(watched);
    let took = Times::now(job.all())?.since(&before)?;
    job.end()?;
    Ok(took as f64 * IDLE.as_secs_f64() / watched.as_secs_f64())
}

/// After this time all ranks of a waiting job sleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(50);
/// A time longer than this counts as never.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// Returns the time from SIGKILL of a rank, or of the launcher, until the last process of the job has ended, in ns.
fn death(ranks: usize, rank: Option<usize>) -> anyhow::Result<f64> {
    let job = Waiting::start(ranks)?;
    std::thread::sleep(ASLEEP_AFTER);
    let start = Instant::now();
    rank.map_or(&job.launcher_process, |number| &job.ranks[number % ranks]).send(Signal::KILL)?;
    let has_ended = await_end(job.all(), GONE_AFTER)?;
    let took = start.elapsed();
    ensure!(has_ended, "death: processes of the job are still there {GONE_AFTER:?} after one was killed");
    Ok(took.as_nanos() as f64)
}

/// How long a rank waits if it is not ended. A rank whose starter was killed must not stay for ever.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// How long the processes of a job may take to end after they were asked to.
const END_MAX: Duration = Duration::from_secs(10);

/// Each rank reports its process number, and waits for a signal that nobody raises.
pub(crate) fn waiting_ranks(job: &Job) -> tasuki::Result<()> {
    let signal = job.signal()?;
    job.barrier()?;
    report("waiting", u64::from(std::process::id()));
    signal.reaches(1).wait_timeout(WAIT_MAX).and(Err(wrong("a signal that nobody raises")))
}

/// A job whose ranks all wait.
struct Waiting {
    launcher: Child,
    launcher_process: Process,
    /// The ranks, in no order.
    ranks: Vec<Process>,
    /// All processes below the launcher: ranks and keeper.
    below: Vec<Process>,
}

impl Waiting {
    /// Starts a job and returns when all its ranks wait. The job's output on standard error, when it is ended, is
    /// discarded.
    fn start(ranks: usize) -> anyhow::Result<Waiting> {
        let mut command = ProcessRole::Waiting.job(ranks, &[])?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut launcher = command.spawn().context("tasuki run could not be started")?;
        let lines = BufReader::new(launcher.stdout.take().context("no output")?).lines();
        let launcher_process = Process::open(launcher.id())?;
        let mut job = Waiting { launcher, launcher_process, ranks: Vec::new(), below: Vec::new() };
        for line in lines {
            job.ranks.extend(reported(&line?).map(|(_, process)| Process::open(process as u32)).transpose()?);
            if job.ranks.len() == ranks {
                job.below = below(job.launcher_process.id())?;
                return Ok(job);
            }
        }
        bail!("a job of {ranks} waiting ranks failed ({})", job.launcher.wait()?)
    }

    fn all(&self) -> impl Iterator<Item = &Process> + Clone {
        std::iter::once(&self.launcher_process).chain(&self.below)
    }

    /// Ends the job as a user would.
    fn end(self) -> anyhow::Result<()> {
        self.launcher_process.send(Signal::TERM)?;
        ensure!(await_end(self.all(), END_MAX)?, "processes of a job stay {END_MAX:?} after SIGTERM");
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // No process may remain, whatever happened. For processes that have ended the signal fails, which is ignored.
        for process in self.all() {
            let _ = process.send(Signal::KILL);
        }
        let _ = self.launcher.wait();
    }
}
