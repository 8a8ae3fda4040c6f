//! The processes of a job as the operating system reports them: which processes there are, how much processor time they
//! use, and when they end.

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A process, held by a descriptor so that the system cannot give its number to another process.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    handle: OwnedFd,
}

impl Process {
    /// Opens the running process with this number.
    pub(crate) fn open(pid: u32) -> anyhow::Result<Process> {
        let number = Pid::from_raw(pid as i32).context("no process has the number 0")?;
        let handle = pidfd_open(number, PidfdFlags::empty())
            .with_context(|| format!("process {pid} cannot be watched (pidfd_open)"))?;
        Ok(Process { pid, handle })
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// Sends a signal.
    pub(crate) fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        pidfd_send_signal(&self.handle, signal)
    }

    /// Returns the nanoseconds of processor time of each running thread of the process.
    fn times(&self) -> anyhow::Result<BTreeMap<u32, u64>> {
        let folder = format!("/proc/{}/task", self.pid);
        let mut times = BTreeMap::new();
        for thread in fs::read_dir(&folder).with_context(|| folder.clone())? {
            let thread = thread?;
            let file = thread.path().join("schedstat");
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let time = text.split(' ').next().and_then(|field| field.parse().ok());
            let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
            let (Some(time), Some(number)) = (time, number) else { bail!("{}: {text}", file.display()) };
            times.insert(number, time);
        }
        Ok(times)
    }
}

/// Returns the most memory in bytes that this process has had since [`reset_peak_memory`], or 0 where the system does not
/// say.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// Begins a new peak at what this process has now (`clear_refs` in proc(5)).
pub(crate) fn reset_peak_memory() {
    let _ = fs::write("/proc/self/clear_refs", "5"); // without it, what was larger before counts, too
}

/// The processor time of some processes at one moment. The difference of two such values is the processor time that the
/// processes used in between.
pub(crate) struct Times(Vec<BTreeMap<u32, u64>>);

impl Times {
    /// Reads the processor time of these processes now.
    pub(crate) fn now<'p>(processes: impl Iterator<Item = &'p Process>) -> anyhow::Result<Times> {
        Ok(Times(processes.map(Process::times).collect::<anyhow::Result<_>>()?))
    }

    /// Returns the nanoseconds that the same processes have used since `before`. Returns an error if a thread has
    /// ended, because its time is lost.
    pub(crate) fn since(&self, before: &Times) -> anyhow::Result<u64> {
        let mut total = 0;
        for (now, before) in self.0.iter().zip(&before.0) {
            if let Some(lost) = before.keys().find(|thread| !now.contains_key(thread)) {
                bail!("thread {lost} ended meanwhile");
            }
            total += now.iter().map(|(thread, time)| time - before.get(thread).unwrap_or(&0)).sum::<u64>();
        }
        Ok(total)
    }
}

/// Returns all descendants of a process.
pub(crate) fn below(root: u32) -> anyhow::Result<Vec<Process>> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            parents.insert(pid, parent);
        }
    }
    let is_below = |&&pid: &&u32| {
        let mut line = std::iter::successors(parents.get(&pid), |parent| parents.get(parent));
        line.any(|&ancestor| ancestor == root)
    };
    parents.keys().filter(is_below).map(|&pid| Process::open(pid)).collect()
}

/// Returns the parent in a line of /proc/PID/stat. The name in that line may contain spaces and brackets (proc(5)).
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until all processes have ended. Returns false if some still run after `limit`.
pub(crate) fn await_end<'p>(
    processes: impl Iterator<Item = &'p Process>,
    limit: Duration,
) -> anyhow::Result<bool> {
    let deadline = Instant::now() + limit;
    for process in processes {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut wanted = [PollFd::new(&process.handle, PollFlags::IN)];
            match poll(&mut wanted, Some(&Timespec::try_from(left)?)) {
                Ok(0) => return Ok(false),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn descendants_are_found_and_their_end_is_seen() {
        let mut child = Command::new("sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        let found = loop {
            let found = below(std::process::id()).unwrap();
            let ours = below(child.id()).unwrap();
            if ours.len() == 1 {
                assert!(found.iter().any(|process| process.id() == child.id()));
                break ours;
            }
        };
        assert!(!await_end(found.iter(), Duration::from_millis(1)).unwrap());
        found[0].send(Signal::KILL).unwrap();
        assert!(await_end(found.iter(), Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) b (c) S 42 7 7 0"), Some(42));
        assert_eq!(parent(""), None);
    }
}
