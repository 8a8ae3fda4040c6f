//! Starts processes so that each is ended with the launcher: a process writes its group to the
//! keeper's pipe before it runs the program, and the kernel ends it with its launcher if both
//! keeper and launcher are killed.
#![allow(unsafe_code)]
//! Unsafe: the code between fork and exec only makes system calls, on values made before. It
//! neither allocates nor takes a lock.

use crate::run::binding::only;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, Signal, getpid, setrlimit, setsid};
use rustix::thread::sched_setaffinity;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use tasuki_command::child::end_with;

/// How much more likely the kernel is to kill a rank than the launcher when memory runs out, in
/// thousandths of that memory. Without it the kernel may choose the launcher or its parent, since
/// shared memory counts for no process until the process touches it.
const OOM_SCORE_MORE: i32 = 300;
/// The largest value that the kernel accepts.
const OOM_SCORE_MAX: i32 = 1000;
/// The file with a process's own value.
const OOM_SCORE: &CStr = c"/proc/self/oom_score_adj";

/// How a rank's process is started.
pub(crate) struct SpawnOptions {
    /// The keeper's pipe. It closes in the new process when the program starts; until then the
    /// keeper waits for that process.
    pub(crate) keeper: Option<Arc<OwnedFd>>,
    /// The processor to which the process is bound.
    pub(crate) processor: Option<usize>,
    /// The limit of open files with which the launcher was started; the launcher may have raised
    /// its own.
    pub(crate) files: Rlimit,
}

/// Starts a rank's process in a group of its own.
pub(crate) fn rank(mut command: Command, options: SpawnOptions) -> io::Result<Child> {
    command.process_group(0);
    let processors = options.processor.map(only);
    let launcher = getpid();
    let score = oom_score().to_string();
    let begin = move || {
        end_with(launcher, Signal::KILL)?;
        if let Some(keeper) = &options.keeper {
            rustix::io::write(&**keeper, &getpid().as_raw_nonzero().get().to_le_bytes())?;
        }
        // If /proc cannot be written, the kernel chooses freely.
        if let Ok(file) = open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::io::write(&file, score.as_bytes());
        }
        setrlimit(Resource::Nofile, options.files)?;
        if let Some(set) = &processors {
            // The launcher has tried this on itself and warned if it was refused, so an error is
            // ignored here.
            let _ = sched_setaffinity(None, set);
        }
        Ok(())
    };
    // SAFETY: system calls on captured values only.
    unsafe { command.pre_exec(begin) };
    command.spawn()
}

/// The score of the ranks.
fn oom_score() -> i32 {
    let path = OOM_SCORE.to_str().expect("a name without other characters");
    let ours = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<i32>().ok());
    ours.unwrap_or(0).saturating_add(OOM_SCORE_MORE).min(OOM_SCORE_MAX)
}

/// Starts a process in a new session, where signals from the terminal do not reach it.
pub(crate) fn detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: in the child, before the program is there, only `setsid` runs, which may be called between fork and exec:
    // it takes no lock and allocates nothing.
    unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
    command.spawn()
}
