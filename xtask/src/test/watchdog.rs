//! Waits for a command with a time limit. A command that hangs is killed with all its descendants.

use anyhow::{Result, bail};
use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits at most `limit`. After that it kills the command and returns an error.
pub(super) fn wait(mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > limit {
            kill(&with_descendants(child.id()))?;
            child.wait()?;
            bail!("hung: killed after {} s", limit.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The process and its descendants, as /proc shows them now.
fn with_descendants(root: u32) -> Vec<u32> {
    let parents = parents();
    let mut family = vec![root];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}

/// Each process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            parent_in(&fs::read_to_string(entry.path().join("stat")).ok()?).map(|parent| (pid, parent))
        })
        .collect()
}

/// The parent in a line of /proc/PID/stat: the second field after the name, which may contain any
/// character and ends with the last `)`.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn kill(pids: &[u32]) -> Result<()> {
    let pids = pids.iter().map(u32::to_string);
    // The shell's built-in kill: some systems have no program of that name.
    Command::new("sh").args(["-c", "kill -KILL \"$@\" 2>/dev/null", "sh"]).args(pids).status()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_ends_returns_its_exit_code() {
        let child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(wait(child, Duration::from_secs(60)).unwrap().code(), Some(3));
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let child = Command::new("sh").args(["-c", "sleep 1000 & sleep 1000; true"]).spawn().unwrap();
        let pid = child.id();
        let mut family = with_descendants(pid);
        while family.len() < 3 {
            thread::sleep(LOOK_EVERY);
            family = with_descendants(pid);
        }
        assert!(wait(child, Duration::ZERO).is_err());
        while family.iter().any(|pid| is_running(*pid)) {
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Returns true if the process exists and is not a zombie.
    fn is_running(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    }

    #[test]
    fn names_with_brackets_do_not_confuse() {
        assert_eq!(parent_in("12 (a) b) S 7 12 12 0"), Some(7));
    }
}
