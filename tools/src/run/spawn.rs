//! Starting processes so that none can be lost: each tells the keeper its group before it runs the program, and the
//! kernel ends it with its launcher, should somebody kill both keeper and launcher.
#![allow(unsafe_code)]
//! Unsafe: what runs between fork and exec makes system calls only, on values made before; it neither allocates nor
//! takes a lock.

use rustix::process::{Resource, Rlimit, Signal, getpid, setrlimit, setsid};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use tasuki_command::child::end_with;

/// What a rank's process begins with.
pub(crate) struct Beginning {
    /// The keeper's pipe. It closes in the new process when the program starts; until then the keeper waits for us.
    pub(crate) keeper: Arc<OwnedFd>,
    /// The processor it is bound to.
    pub(crate) processor: Option<usize>,
    /// The limit of open files that we were started with, whatever we raised ours to.
    pub(crate) files: Rlimit,
}

/// Starts a rank's process in a group of its own.
pub(crate) fn rank(mut command: Command, beginning: Beginning) -> io::Result<Child> {
    command.process_group(0);
    let processors = beginning.processor.map(|processor| {
        let mut set = CpuSet::new();
        set.set(processor);
        set
    });
    let launcher = getpid();
    let begin = move || {
        end_with(launcher, Signal::KILL)?;
        let group = getpid().as_raw_nonzero().get();
        rustix::io::write(&*beginning.keeper, &group.to_le_bytes())?;
        setrlimit(Resource::Nofile, beginning.files)?;
        match &processors {
            Some(set) => sched_setaffinity(None, set).map_err(io::Error::from),
            None => Ok(()),
        }
    };
    // SAFETY: system calls on captured values only.
    unsafe { command.pre_exec(begin) };
    command.spawn()
}

/// Starts a process in a session of its own, where the terminal's signals do not reach it.
pub(crate) fn detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
    command.spawn()
}
