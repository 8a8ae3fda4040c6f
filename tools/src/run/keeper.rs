//! The keeper: a process that outlives a killed launcher by a moment, and ends the ranks' groups in its place.
//!
//! It sits in a session of its own and reads a pipe whose other end only the launcher holds, and each new process
//! until it runs its program. Four bytes are a group that began, or, negative, one that the launcher has ended
//! itself; zero ends them all in order. When the pipe closes, whatever is left is killed.

use super::spawn;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

/// The hidden subcommand that is the keeper.
pub(crate) const SUBCOMMAND: &str = "__keeper";

/// Records that a pipe of 64 KiB takes while nobody reads, those of a killed keeper beside them.
const PIPE_HOLDS: usize = 8192;

/// The launcher's end.
pub(crate) struct Keeper {
    pipe: Arc<OwnedFd>,
    /// The other end, too: if somebody kills the keeper, no rank dies of a broken pipe, and the next one reads on.
    read: OwnedFd,
    job: String,
    child: Child,
}

impl Keeper {
    /// Starts a keeper. `job` shows in lists of processes.
    pub(crate) fn start(job: &str) -> std::io::Result<Keeper> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let child = hire(job, &read)?;
        Ok(Keeper { pipe: Arc::new(write), read, job: job.to_string(), child })
    }

    /// Looks whether somebody has killed the keeper, and starts another one, which must be told all `groups` that
    /// live. An error if none can be started: the job then has no protection.
    pub(crate) fn revive(&mut self, groups: impl Iterator<Item = Pid>) -> std::io::Result<()> {
        if self.child.try_wait()?.is_none() {
            return Ok(());
        }
        let mut groups = groups.map(|group| group.as_raw_nonzero().get());
        // Told before it runs: if the launcher is killed as soon as it does, it finds them in the pipe.
        groups.by_ref().take(PIPE_HOLDS).for_each(|group| self.tell(group));
        self.child = hire(&self.job, &self.read)?;
        groups.for_each(|group| self.tell(group));
        Ok(())
    }

    /// What a new process tells its group to.
    pub(crate) fn pipe(&self) -> Arc<OwnedFd> {
        self.pipe.clone()
    }

    /// The launcher has ended this group: its number may soon belong to somebody else.
    pub(crate) fn forget(&self, group: Pid) {
        self.tell(-group.as_raw_nonzero().get());
    }

    /// All have ended. Waits until the keeper has, too.
    pub(crate) fn release(mut self) {
        self.tell(0);
        drop(self.pipe);
        let _ = self.child.wait();
    }

    /// A keeper that somebody killed is no reason to fail.
    fn tell(&self, record: i32) {
        let _ = rustix::io::write(&*self.pipe, &record.to_le_bytes());
    }
}

/// Starts the process, with the pipe as its standard input.
fn hire(job: &str, pipe: &OwnedFd) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tasuki").args([SUBCOMMAND, job]).current_dir("/");
    command.stdin(pipe.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
    spawn::detached(command)
}

/// The keeper's whole life.
pub(crate) fn keep() -> ExitCode {
    let mut groups = BTreeSet::new();
    let mut record = [0; 4];
    let mut pipe = std::io::stdin().lock();
    while pipe.read_exact(&mut record).is_ok() {
        match i32::from_le_bytes(record) {
            0 => groups.clear(),
            ended if ended < 0 => drop(groups.remove(&ended.wrapping_neg())),
            begun => drop(groups.insert(begun)),
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}
