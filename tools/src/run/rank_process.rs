//! A rank's process where it is a descendant of the process that the launcher started: behind a script, or a program
//! that puts it into a session of its own (`setsid --wait PROGRAM`). Signals to the group of the started process do
//! not reach it there, nor does the end of its parent.

use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, kill_process_group, pidfd_send_signal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use tasuki_core::os::child_status::{ChildSelector, ChildStatus, look};
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::poll::PollSet;
use tasuki_core::os::process::{exists, pidfd};

/// A process that has joined as a rank. While `pidfd` does not say that it has ended, its number is its own.
pub(crate) struct RankProcess {
    pid: Pid,
    pidfd: Option<OwnedFd>,
    /// Its group is its own: it began it.
    leads_group: bool,
}

impl RankProcess {
    pub(crate) fn new(pid: Pid, denied: DisabledFeatures) -> RankProcess {
        let leads_group = getpgid(Some(pid)) == Ok(pid);
        RankProcess { pid, pidfd: pidfd(number(pid), denied), leads_group }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable when it has ended; `None` where the kernel has no such thing.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(|pidfd| pidfd.as_fd())
    }

    pub(crate) fn has_ended(&self) -> bool {
        let Some(pidfd) = self.descriptor() else {
            let pid = number(self.pid);
            return !exists(pid) || matches!(look(ChildSelector::Child(pid)), ChildStatus::Ended(..));
        };
        let mut watch = PollSet::default();
        watch.read((), pidfd);
        !watch.wait(Some(Instant::now())).is_empty()
    }

    /// When it has ended: kills what is left of a group of its own. As long as anything is, nobody else has its number.
    pub(crate) fn end_group(&self) {
        if self.leads_group {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Sends a signal to it and to its group, unless that is a group which `reached` says has got it already.
    pub(crate) fn signal(&self, signal: Signal, reached: impl Fn(Pid) -> bool) {
        let Ok(group) = getpgid(Some(self.pid)) else { return };
        if self.has_ended() || reached(group) {
            return;
        }
        // It was there after its group was asked for, so the group is its own. A rank that has put itself into ours
        // is sent the signal alone.
        let _ = match &self.pidfd {
            _ if group != getpgrp() => kill_process_group(group, signal),
            Some(pidfd) => pidfd_send_signal(pidfd, signal),
            None => kill_process(self.pid, signal),
        };
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("3600").process_group(0).spawn().unwrap()
    }

    fn all_ways(check: impl Fn(DisabledFeatures)) {
        check(DisabledFeatures::default());
        check(DisabledFeatures { pidfd: true, ..DisabledFeatures::default() });
    }

    #[test]
    fn a_signal_reaches_a_process_in_another_group() {
        all_ways(|denied| {
            let mut child = sleeper();
            let process = RankProcess::new(Pid::from_child(&child), denied);
            assert!(!process.has_ended());
            process.signal(Signal::KILL, |group| group == process.pid());
            assert!(
                !process.has_ended() && child.try_wait().unwrap().is_none(),
                "its group has got the signal"
            );
            process.signal(Signal::TERM, |_| false);
            assert_eq!(child.wait().unwrap().signal(), Some(15));
            assert!(process.has_ended());
            process.signal(Signal::TERM, |_| false);
        });
    }

    #[test]
    fn a_process_in_our_own_group_is_sent_a_signal_alone() {
        all_ways(|denied| {
            let mut child = Command::new("sleep").arg("3600").spawn().unwrap();
            let process = RankProcess::new(Pid::from_child(&child), denied);
            process.signal(Signal::TERM, |_| false);
            assert_eq!(child.wait().unwrap().signal(), Some(15));
        });
    }
}
