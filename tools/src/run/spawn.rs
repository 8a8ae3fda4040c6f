//! Starting processes so that none can be lost: each tells the keeper its group before it runs the program, and the
//! kernel ends it with its launcher, should somebody kill both keeper and launcher.
#![allow(unsafe_code)]
//! Unsafe: what runs between fork and exec makes system calls only, on values made before; it neither allocates nor
//! takes a lock.

use super::binding::only;
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

/// How much more likely than the launcher the kernel is to kill a rank where memory runs out, in thousandths of that
/// memory. Without it the kernel may choose the launcher, or whoever started it, since what ranks share counts as
/// nobody's until it is touched.
const OOM_SCORE_MORE: i32 = 300;
/// The most that the kernel takes.
const OOM_SCORE_MAX: i32 = 1000;
/// Where a process's own is written.
const OOM_SCORE: &CStr = c"/proc/self/oom_score_adj";

/// What a rank's process begins with.
pub(crate) struct SpawnOptions {
    /// The keeper's pipe. It closes in the new process when the program starts; until then the keeper waits for us.
    pub(crate) keeper: Option<Arc<OwnedFd>>,
    /// The processor it is bound to.
    pub(crate) processor: Option<usize>,
    /// The limit of open files that we were started with, whatever we raised ours to.
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
        // Where /proc cannot be written, the kernel chooses as it likes.
        if let Ok(file) = open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::io::write(&file, score.as_bytes());
        }
        setrlimit(Resource::Nofile, options.files)?;
        if let Some(set) = &processors {
            // The launcher has tried it on itself, and has warned where it is refused: no reason to end the job.
            let _ = sched_setaffinity(None, set);
        }
        Ok(())
    };
    // SAFETY: system calls on captured values only.
    unsafe { command.pre_exec(begin) };
    command.spawn()
}

/// What ranks are given.
fn oom_score() -> i32 {
    let path = OOM_SCORE.to_str().expect("a name without other characters");
    let ours = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<i32>().ok());
    ours.unwrap_or(0).saturating_add(OOM_SCORE_MORE).min(OOM_SCORE_MAX)
}

/// Starts a process in a session of its own, where the terminal's signals do not reach it.
pub(crate) fn detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
    command.spawn()
}
