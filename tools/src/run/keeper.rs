//! The keeper: a process that outlives a killed launcher by a moment, and ends the ranks' groups in its place.
//!
//! It sits in a session of its own and reads a pipe whose other end only the launcher holds, and each new process
//! until it runs its program. Four bytes are a group that began, or, negative, one that the launcher has ended
//! itself; zero ends them all in order. With [`RANK`] added the number is not a group's but that of a rank's process,
//! which may be in another group and session than the process that the launcher started. When the pipe closes,
//! whatever is left is killed.

use super::rank_process::RankProcess;
use super::spawn;
use rustix::param::linux_execfn;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use tasuki_core::os::disabled_features::DisabledFeatures;

/// The hidden subcommand that is the keeper.
pub(crate) const SUBCOMMAND: &str = "__keeper";

/// Added to the number of a rank's process; numbers of processes are below 2^22.
const RANK: i32 = 1 << 30;

/// Records that a pipe of 64 KiB takes while nobody reads, those of a killed keeper beside them.
const PIPE_HOLDS: usize = 8192;

/// The launcher's end.
pub(crate) struct Keeper {
    pipe: Arc<OwnedFd>,
    /// The other end, too: if somebody kills the keeper, no rank dies of a broken pipe, and the next one reads on.
    read: OwnedFd,
    job: String,
    /// `None` where it could not be started: nobody reads the pipe then, and nothing is written to it.
    child: Option<Child>,
}

impl Keeper {
    /// Starts a keeper. `job` shows in lists of processes. The second value is why there is none, if it could not be
    /// started: the job runs without that protection.
    pub(crate) fn start(job: &str) -> std::io::Result<(Keeper, Option<std::io::Error>)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (child, refused) = match start_process(job, &read) {
            Ok(child) => (Some(child), None),
            Err(error) => (None, Some(error)),
        };
        Ok((Keeper { pipe: Arc::new(write), read, job: job.to_string(), child }, refused))
    }

    /// Looks whether somebody has killed the keeper, and starts another one, which must be told all `groups` and
    /// processes of `ranks` that live. An error if none can be started: the job then has no protection.
    pub(crate) fn revive(
        &mut self,
        groups: impl Iterator<Item = Pid>,
        ranks: impl Iterator<Item = Pid>,
    ) -> std::io::Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        if child.try_wait()?.is_none() {
            return Ok(());
        }
        let groups = groups.map(|group| group.as_raw_nonzero().get());
        let mut records = groups.chain(ranks.map(|rank| RANK + rank.as_raw_nonzero().get()));
        // Told before it runs: if the launcher is killed as soon as it does, it finds them in the pipe.
        records.by_ref().take(PIPE_HOLDS).for_each(|record| self.send(record));
        self.child = None;
        self.child = Some(start_process(&self.job, &self.read)?);
        records.for_each(|record| self.send(record));
        Ok(())
    }

    /// What a new process tells its group to, if there is a keeper.
    pub(crate) fn pipe(&self) -> Option<Arc<OwnedFd>> {
        self.child.as_ref().map(|_| self.pipe.clone())
    }

    /// The launcher has ended this group: its number may soon belong to somebody else.
    pub(crate) fn forget(&self, group: Pid) {
        self.send(-group.as_raw_nonzero().get());
    }

    /// A rank's process is another one than that which the launcher started.
    pub(crate) fn keep_rank(&self, process: Pid) {
        self.send(RANK + process.as_raw_nonzero().get());
    }

    /// A rank's process has ended: its number may soon belong to somebody else.
    pub(crate) fn forget_rank(&self, process: Pid) {
        self.send(-(RANK + process.as_raw_nonzero().get()));
    }

    /// All have ended. Waits until the keeper has, too.
    pub(crate) fn release(mut self) {
        self.send(0);
        drop(self.pipe);
        self.child.iter_mut().for_each(|child| drop(child.wait()));
    }

    /// A keeper that somebody killed is no reason to fail.
    fn send(&self, record: i32) {
        if self.child.is_some() {
            let _ = rustix::io::write(&*self.pipe, &record.to_le_bytes());
        }
    }
}

/// Starts the process, with the pipe as its standard input. Where /proc is not mounted, by the path by which this
/// process was started.
fn start_process(job: &str, pipe: &OwnedFd) -> std::io::Result<Child> {
    let started_as = OsStr::from_bytes(linux_execfn().to_bytes());
    start_from(Path::new("/proc/self/exe"), job, pipe)
        .or_else(|_| start_from(&std::path::absolute(started_as)?, job, pipe))
}

fn start_from(program: &Path, job: &str, pipe: &OwnedFd) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("tasuki").args([SUBCOMMAND, job]).current_dir("/");
    // It writes nothing; the pipe's reading end stands for /dev/null, which may be missing.
    command.stdin(pipe.try_clone()?).stdout(pipe.try_clone()?).stderr(pipe.try_clone()?);
    spawn::detached(command)
}

/// The keeper's whole life.
pub(crate) fn keep() -> ExitCode {
    let (mut groups, mut ranks) = (BTreeSet::new(), BTreeMap::new());
    let mut record = [0; 4];
    let mut pipe = std::io::stdin().lock();
    while pipe.read_exact(&mut record).is_ok() {
        let record = i32::from_le_bytes(record);
        match (record, record.wrapping_abs() & !RANK) {
            (0, _) => {
                groups.clear();
                ranks.clear();
            }
            (ended, rank) if ended <= -RANK => drop(ranks.remove(&rank)),
            (ended, group) if ended < 0 => drop(groups.remove(&group)),
            (begun, rank) if begun >= RANK => {
                Pid::from_raw(rank)
                    .map(|pid| ranks.insert(rank, RankProcess::new(pid, DisabledFeatures::default())));
            }
            (_, group) => drop(groups.insert(group)),
        }
    }
    // Its group may be one of those below, or in a session of its own.
    for rank in ranks.values() {
        rank.signal(Signal::KILL, |_| false);
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}
