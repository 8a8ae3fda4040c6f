//! Figures of whole jobs, which the bench itself starts, watches and ends: startup, idle, death.

use super::{expect, wrong};
use crate::harness::process_observation::{Process, Times, await_end, below};
use crate::harness::process_role::{ProcessRole, report, reported};
use anyhow::{Context, bail, ensure};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tasuki::{Job, Rank};

/// A repetition of a figure, by its number.
pub(crate) type RepeatJob = Box<dyn FnMut(usize) -> anyhow::Result<f64>>;

/// The figures of a case, by variant. `watched` is how long `idle` looks.
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

/// Each rank adds its number and one to a word of rank 0, all see the sum, and leave.
pub(crate) fn startup_ranks(job: &Job) -> tasuki::Result<()> {
    let word = job.bootstrap_memory(Rank(0))?.cast::<u64>();
    job.fetch_add(word, u64::from(job.rank().0) + 1)?;
    job.barrier()?;
    let ranks = job.size() as u64;
    expect(job.load(word)?, ranks * (ranks + 1) / 2, "startup")
}

/// From exec of `tasuki run` to its exit, in ns.
fn startup(ranks: usize) -> anyhow::Result<f64> {
    let mut command = ProcessRole::Startup.job(ranks, &[])?;
    command.stdin(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("tasuki run could not be started")?;
    let took = start.elapsed();
    ensure!(status.success(), "startup: the job of {ranks} ranks failed ({status})");
    Ok(took.as_nanos() as f64)
}

/// How long the figure of `idle` is about.
const IDLE: Duration = Duration::from_secs(10);

/// Processor time in ns that a job of waiting ranks takes in ten seconds, launcher and keeper included; scaled, if it
/// is watched for less.
fn idle(ranks: usize, watched: Duration) -> anyhow::Result<f64> {
    let job = Waiting::start(ranks)?;
    let before = Times::now(job.all())?;
    std::thread::sleep(watched);
    let took = Times::now(job.all())?.since(&before)?;
    job.end()?;
    Ok(took as f64 * IDLE.as_secs_f64() / watched.as_secs_f64())
}

/// After this time of waiting ranks are fast asleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(50);
/// Longer than this counts as never.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// From SIGKILL of a rank, or of the launcher, until the last process of a job is gone, in ns.
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

/// How long a rank waits if nobody ends it: whoever started it was killed then, and it must not stay for ever.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// How long the processes of a job may take to end when they are asked to.
const END_MAX: Duration = Duration::from_secs(10);

/// A rank that says which process it is, and waits for a signal that nobody raises.
pub(crate) fn waiting_ranks(job: &Job) -> tasuki::Result<()> {
    let signal = job.signal()?;
    job.barrier()?;
    report("waiting", u64::from(std::process::id()));
    signal.wait_timeout(1, WAIT_MAX).and(Err(wrong("a signal that nobody raises")))
}

/// A job whose ranks all wait.
struct Waiting {
    launcher: Child,
    launcher_process: Process,
    /// In no order.
    ranks: Vec<Process>,
    /// Everything below the launcher: ranks, keeper.
    below: Vec<Process>,
}

impl Waiting {
    /// Returns when all ranks wait. What the job says on standard error, when it is ended, is of no interest.
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
        // Whatever happened, nothing is left behind; of processes that have ended this is an error to ignore.
        for process in self.all() {
            let _ = process.send(Signal::KILL);
        }
        let _ = self.launcher.wait();
    }
}
