//! The exit status of child processes, read before they are reaped: until then the kernel does not reuse their pids.
#![allow(unsafe_code)]
//! Unsafe: waitid into a local structure.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// True if the kernel wrote a core file.
        dumped: bool,
    },
}

/// Selects children of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildSelector {
    /// The child with this pid.
    Child(u32),
    /// The children in this process group, adopted ones included.
    Group(u32),
}

/// The state of the selected children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildStatus {
    /// The child with this pid has ended and has not been reaped.
    Ended(u32, Exit),
    /// There are such children, and none has ended.
    Running,
    /// This process has no such child.
    Nobody,
}

/// Returns the state of the selected children. Neither reaps nor waits.
pub fn look(whom: ChildSelector) -> ChildStatus {
    let (kind, number) = match whom {
        ChildSelector::Child(pid) => (libc::P_PID, pid),
        ChildSelector::Group(group) => (libc::P_PGID, group),
    };
    // SAFETY: info is valid memory for the result; it is zeroed, so a pid of 0 means that no child has ended.
    let (done, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(kind, number, &mut info, options), info)
    };
    if done != 0 {
        return ChildStatus::Nobody;
    }
    // SAFETY: waitid sets the fields of a child's state change, or leaves them zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    match (pid, info.si_code) {
        (0, _) => ChildStatus::Running,
        (pid, libc::CLD_EXITED) => ChildStatus::Ended(pid as u32, Exit::Code(status)),
        (pid, code) => {
            ChildStatus::Ended(pid as u32, Exit::Signal { number: status, dumped: code == libc::CLD_DUMPED })
        }
    }
}

/// Reaps a child that has ended. From now on the kernel may give its pid to another process.
pub fn reap(pid: u32) {
    // SAFETY: the result pointer may be null: waitid then stores no result.
    unsafe { libc::waitid(libc::P_PID, pid, std::ptr::null_mut(), libc::WEXITED | libc::WNOHANG) };
}

/// Names of the signals by number from 1. Both architectures number them alike.
const NAMES: &str = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP \
    TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";

/// Returns the name of a signal, e.g. `SIGTERM`, if it has one.
pub fn signal_name(number: i32) -> Option<String> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.split_whitespace().nth(place).map(|name| format!("SIG{name}"))
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, dumped) = match *self {
            Exit::Code(code) => return write!(f, "exit code {code}"),
            Exit::Signal { number, dumped } => (number, dumped),
        };
        write!(f, "signal {number}")?;
        if let Some(name) = signal_name(number) {
            write!(f, ", {name}")?;
        }
        if dumped { f.write_str(", core dumped") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn look_finds_an_ended_child_until_it_is_reaped() {
        let mut child =
            std::process::Command::new("/bin/sh").args(["-c", "exit 7"]).process_group(0).spawn().unwrap();
        let pid = child.id();
        while look(ChildSelector::Group(pid)) == ChildStatus::Running {
            std::thread::yield_now();
        }
        assert_eq!(look(ChildSelector::Group(pid)), ChildStatus::Ended(pid, Exit::Code(7)));
        assert_eq!(
            look(ChildSelector::Child(pid)),
            ChildStatus::Ended(pid, Exit::Code(7)),
            "look does not reap"
        );
        reap(pid);
        assert_eq!(look(ChildSelector::Child(pid)), ChildStatus::Nobody);
        assert!(child.wait().is_err(), "the child was reaped already");
    }

    #[test]
    fn exits_are_printed_with_signal_name_and_core_dump() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal { number: 9, dumped: false }.to_string(), "signal 9, SIGKILL");
        assert_eq!(Exit::Signal { number: 11, dumped: true }.to_string(), "signal 11, SIGSEGV, core dumped");
        assert_eq!(Exit::Signal { number: 40, dumped: false }.to_string(), "signal 40");
    }
}
