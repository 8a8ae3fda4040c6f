//! A job of ranks that all wait for a signal, as cases idle and death need it: started, known by its processes, ended.

use crate::harness::process_observation::{self, Process};
use crate::harness::process_role::ProcessRole;
use crate::result::figure::Event;
use anyhow::{Context, bail};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use tasuki::Job;

/// What a rank reports when it is about to wait: its process.
const WAITING: &str = "waiting";
/// How long the processes of a job may take to end when they are asked to.
const END_MAX: Duration = Duration::from_secs(10);

/// How long a rank waits if nobody ends it: whoever started it was killed then, and it must not stay for ever.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// A rank that says so and waits. Nobody raises the signal.
pub(crate) fn app(job: &Job, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    let signal = job.signal()?;
    job.barrier()?;
    tell(Event::Report(WAITING.into(), u64::from(std::process::id())));
    signal.wait_timeout(1, WAIT_MAX)
}

/// All processes of a job whose ranks wait.
pub(crate) struct Waiting {
    launcher: Child,
    /// What the launcher and the ranks say on standard error: read so that nobody blocks, told if they fail.
    said: Option<JoinHandle<String>>,
    /// The launcher.
    pub(crate) root: Process,
    /// The ranks, in no order.
    pub(crate) ranks: Vec<Process>,
    /// Everything below the launcher: ranks, keeper.
    pub(crate) below: Vec<Process>,
}

impl Waiting {
    /// Starts a job and returns when all its ranks wait.
    pub(crate) fn start(ranks: usize) -> anyhow::Result<Waiting> {
        let mut command = ProcessRole::Waiting.job(ranks, &[])?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().context("tasuki run could not be started")?;
        let said = launcher.stderr.take().map(|mut stream| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = stream.read_to_string(&mut text);
                text
            })
        });
        let root = Process::open(launcher.id())?;
        let mut job = Waiting { launcher, said, root, ranks: Vec::new(), below: Vec::new() };
        job.ranks = job.await_ranks(ranks)?;
        job.below = process_observation::below(job.root.id())?;
        Ok(job)
    }

    fn await_ranks(&mut self, ranks: usize) -> anyhow::Result<Vec<Process>> {
        let stream = self.launcher.stdout.take().context("no output")?;
        let mut found = Vec::new();
        for line in BufReader::new(stream).lines() {
            if let Ok(Event::Report(what, process)) = serde_json::from_str(&line?)
                && what == WAITING
            {
                found.push(Process::open(process as u32)?);
            }
            if found.len() == ranks {
                return Ok(found);
            }
        }
        let status = self.launcher.wait()?;
        let said = self.said.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        bail!("a job of {ranks} waiting ranks failed ({status}): {}", said.trim())
    }

    /// Every process of the job.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> + Clone {
        std::iter::once(&self.root).chain(&self.below)
    }

    /// Ends the job as a user would, and waits until nothing is left of it.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.root.send(Signal::TERM)?;
        if !process_observation::await_end(self.all(), END_MAX)? {
            bail!("processes of a job are still there {END_MAX:?} after SIGTERM to its launcher");
        }
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
