//! The process of a rank that is a descendant of the process that the launcher started: behind a
//! script, or behind a program that puts it into another session (`setsid --wait PROGRAM`). Signals
//! to the group of the started process may not reach it there, nor does its parent's end end it.

use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, kill_process_group, pidfd_send_signal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use tasuki_core::os::child_status::{ChildSelector, ChildStatus, look};
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::poll::PollSet;
use tasuki_core::os::process::{exists, pidfd};

/// A process that has joined as a rank. Its number is not reused as long as `pidfd` does not report
/// its end.
pub(crate) struct RankProcess {
    pid: Pid,
    pidfd: Option<OwnedFd>,
    /// True if the process is the leader of its group.
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

    /// A descriptor that becomes readable when the process has ended; `None` if the kernel does not
    /// support it.
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

    /// Kills the rest of a group that this process led, after the process has ended. As long as a
    /// member is left, the number of the group is not reused.
    pub(crate) fn end_group(&self) {
        if self.leads_group {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Sends a signal to the process and its group, unless `reached` says that the group has
    /// already got it.
    pub(crate) fn signal(&self, signal: Signal, reached: impl Fn(Pid) -> bool) {
        let Ok(group) = getpgid(Some(self.pid)) else { return };
        if self.has_ended() || reached(group) {
            return;
        }
        // The process existed after its group was queried, so the group is its own. If a rank has
        // joined the launcher's group, only the rank gets the signal.
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
