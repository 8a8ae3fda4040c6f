//! Child processes that end with the process that started them.
#![allow(unsafe_code)]
//! Unsafe: what runs between fork and exec makes system calls only, on values made before; it neither allocates nor
//! takes a lock.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the process that `command` starts get `signal` when the thread that starts it, or its process, ends.
pub fn ends_with_us(command: &mut Command, signal: Signal) {
    let parent = getpid();
    // SAFETY: two system calls on captured values.
    unsafe { command.pre_exec(move || end_with(parent, signal)) };
}

/// Asks the kernel for `signal` when the parent ends. Fails where `parent` has already ended. Only for use between
/// fork and exec.
pub fn end_with(parent: Pid, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}
