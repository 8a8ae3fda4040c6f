//! How children of this process ended, seen before they are reaped: until then their numbers belong to them.
#![allow(unsafe_code)]
//! Unsafe: waitid into a local structure.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal {
        /// The number.
        number: i32,
        /// Whether it left a core file.
        dumped: bool,
    },
}

/// Which children to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildSelector {
    /// The one of that number.
    Child(u32),
    /// Those in that process group, adopted ones included.
    Group(u32),
}

/// What a look at children found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildStatus {
    /// This one has ended and has not been reaped.
    Ended(u32, Exit),
    /// There are some; none has ended.
    Running,
    /// No child of this process is meant.
    Nobody,
}

/// Looks at children without reaping and without waiting.
pub fn look(whom: ChildSelector) -> ChildStatus {
    let (kind, number) = match whom {
        ChildSelector::Child(pid) => (libc::P_PID, pid),
        ChildSelector::Group(group) => (libc::P_PGID, group),
    };
    // SAFETY: info is a valid place for the answer, zeroed so that "none ended" can be told by its pid.
    let (done, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(kind, number, &mut info, options), info)
    };
    if done != 0 {
        return ChildStatus::Nobody;
    }
    // SAFETY: waitid fills in the fields of a child's change of state, or leaves them zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    match (pid, info.si_code) {
        (0, _) => ChildStatus::Running,
        (pid, libc::CLD_EXITED) => ChildStatus::Ended(pid as u32, Exit::Code(status)),
        (pid, code) => {
            ChildStatus::Ended(pid as u32, Exit::Signal { number: status, dumped: code == libc::CLD_DUMPED })
        }
    }
}

/// Reaps a child that has ended: its number may be used for another process from now on.
pub fn reap(pid: u32) {
    // SAFETY: no answer is asked for.
    unsafe { libc::waitid(libc::P_PID, pid, std::ptr::null_mut(), libc::WEXITED | libc::WNOHANG) };
}

/// Names of the signals that end processes, by number from 1, as both architectures number them.
const NAMES: &str = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP \
    TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";

/// The name of a signal, `SIGTERM`, if it has one.
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
    fn a_child_is_seen_before_it_is_reaped() {
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
            "looking does not reap"
        );
        reap(pid);
        assert_eq!(look(ChildSelector::Child(pid)), ChildStatus::Nobody);
        assert!(child.wait().is_err(), "it was reaped");
    }

    #[test]
    fn endings_read_well() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal { number: 9, dumped: false }.to_string(), "signal 9, SIGKILL");
        assert_eq!(Exit::Signal { number: 11, dumped: true }.to_string(), "signal 11, SIGSEGV, core dumped");
        assert_eq!(Exit::Signal { number: 40, dumped: false }.to_string(), "signal 40");
    }
}
