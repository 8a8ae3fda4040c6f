//! Child processes that end with the process that started them.
#![allow(unsafe_code)]
//! Unsafe: the code between fork and exec only makes system calls, on values made before. It
//! neither allocates nor takes a lock.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel send `signal` to the process that `command` starts when the starting thread or
/// its process ends.
pub fn ends_with_us(command: &mut Command, signal: Signal) {
    let parent = getpid();
    // SAFETY: two system calls on captured values.
    unsafe { command.pre_exec(move || end_with(parent, signal)) };
}

/// Asks the kernel for `signal` when the parent ends. Fails if `parent` has already ended. Use it
/// only between fork and exec.
pub fn end_with(parent: Pid, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}
