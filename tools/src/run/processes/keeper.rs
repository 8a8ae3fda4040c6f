//! The keeper: a process that outlives a killed launcher for a moment and ends the ranks' process
//! groups in its place.
//!
//! The keeper has a session of its own and reads from a pipe. Only the launcher holds the writing
//! end, and each new process until it runs its program. A record has four bytes. A positive number
//! is a group that began, and a negative one a group that the launcher has ended itself. Zero says
//! that all have ended in order. A number with [`RANK`] added means a rank's process, which may be
//! in another group and session than the process that the launcher started. When the pipe closes,
//! the keeper kills everything that is left.

use crate::run::rank_process::RankProcess;
use crate::run::spawn;
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

/// The hidden subcommand that runs the keeper.
pub(crate) const SUBCOMMAND: &str = "__keeper";

/// Added to the process number of a rank; process numbers are below 2^22.
const RANK: i32 = 1 << 30;

/// The number of records that fit into a pipe of 64 KiB, beside those that a killed keeper left
/// unread.
const PIPE_HOLDS: usize = 8192;

/// The launcher's side.
pub(crate) struct Keeper {
    pipe: Arc<OwnedFd>,
    /// The reading end. The launcher keeps it so that writes do not fail with a broken pipe if the
    /// keeper is killed, and the next keeper can read on.
    read: OwnedFd,
    job: String,
    /// `None` if the keeper could not be started. Then nobody reads the pipe and nothing is written
    /// to it.
    child: Option<Child>,
}

impl Keeper {
    /// Starts a keeper. `job` appears in lists of processes. If it cannot be started, the second
    /// value is the reason, and the job runs without this protection.
    pub(crate) fn start(job: &str) -> std::io::Result<(Keeper, Option<std::io::Error>)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (child, refused) = match start_process(job, &read) {
            Ok(child) => (Some(child), None),
            Err(error) => (None, Some(error)),
        };
        Ok((Keeper { pipe: Arc::new(write), read, job: job.to_string(), child }, refused))
    }

    /// Starts another keeper if somebody has killed this one, and tells it all `groups` and
    /// processes of `ranks` that live. Returns an error if none can be started; the job then has no
    /// protection.
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
        // The records are written first: if the launcher is killed right after the start, the
        // keeper finds them in the pipe.
        records.by_ref().take(PIPE_HOLDS).for_each(|record| self.send(record));
        self.child = None;
        self.child = Some(start_process(&self.job, &self.read)?);
        records.for_each(|record| self.send(record));
        Ok(())
    }

    /// The pipe to which a new process writes its group, if there is a keeper.
    pub(crate) fn pipe(&self) -> Option<Arc<OwnedFd>> {
        self.child.as_ref().map(|_| self.pipe.clone())
    }

    /// The launcher has ended this group; its number may be reused soon.
    pub(crate) fn forget(&self, group: Pid) {
        self.send(-group.as_raw_nonzero().get());
    }

    /// The process of a rank is not the one that the launcher started.
    pub(crate) fn keep_rank(&self, process: Pid) {
        self.send(RANK + process.as_raw_nonzero().get());
    }

    /// The process of a rank has ended; its number may be reused soon.
    pub(crate) fn forget_rank(&self, process: Pid) {
        self.send(-(RANK + process.as_raw_nonzero().get()));
    }

    /// Tells the keeper that all have ended, and waits until it has ended.
    pub(crate) fn release(mut self) {
        self.send(0);
        drop(self.pipe);
        self.child.iter_mut().for_each(|child| drop(child.wait()));
    }

    /// Writes a record. An error is ignored: the job goes on if the keeper was killed.
    fn send(&self, record: i32) {
        if self.child.is_some() {
            let _ = rustix::io::write(&*self.pipe, &record.to_le_bytes());
        }
    }
}

/// Starts the process, with the pipe as its standard input. If /proc is not mounted, uses the path
/// with which this process was started.
fn start_process(job: &str, pipe: &OwnedFd) -> std::io::Result<Child> {
    let started_as = OsStr::from_bytes(linux_execfn().to_bytes());
    start_from(Path::new("/proc/self/exe"), job, pipe)
        .or_else(|_| start_from(&std::path::absolute(started_as)?, job, pipe))
}

fn start_from(program: &Path, job: &str, pipe: &OwnedFd) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("tasuki").args([SUBCOMMAND, job]).current_dir("/");
    // The keeper writes nothing. The pipe's reading end serves in place of /dev/null, which may be
    // missing.
    command.stdin(pipe.try_clone()?).stdout(pipe.try_clone()?).stderr(pipe.try_clone()?);
    spawn::detached(command)
}

/// Runs the keeper from start to end.
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
    // The rank's group may be one of those below, or in another session.
    for rank in ranks.values() {
        rank.signal(Signal::KILL, |_| false);
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}
