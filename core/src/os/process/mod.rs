//! Properties and limits of this process; descriptors that become readable when another process ends.
#![allow(unsafe_code)]
//! Unsafe: system calls that take numbers or local structures; one returns a new descriptor.

pub mod affinity;
pub mod child_status;

use crate::base::{Error, Result};
use crate::os::disabled_features::DisabledFeatures;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Opens a descriptor that becomes readable when process `pid` has ended; `None` if the kernel cannot.
pub fn pidfd(pid: u32, disabled: DisabledFeatures) -> Option<OwnedFd> {
    if disabled.pidfd {
        return None;
    }
    // SAFETY: the call takes numbers; nobody else owns the new descriptor, which is always close-on-exec.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Ends this process at once, without running exit handlers, which would wait for other ranks. A code that says success
/// becomes 1.
pub fn end_process(code: i32) -> ! {
    let code = if code & 0xff == 0 { 1 } else { code };
    // SAFETY: takes a number.
    unsafe { libc::_exit(code) }
}

/// Lets `handler`, which must not unwind, be called when the process ends by `exit` or by a return from `main`. Returns
/// false if there is no room for it.
pub fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: the function needs nothing but the time of the end of the process.
    unsafe { libc::atexit(handler) == 0 }
}

/// Makes the kernel kill the process that `command` starts when the calling thread has ended, whatever ended it.
pub fn end_with_this_thread(command: &mut Command) {
    let parent = std::process::id();
    let begin = move || {
        // SAFETY: both calls take numbers, allocate nothing and take no lock, as is required between fork and exec.
        let (set, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        match set {
            0 if now as u32 == parent => Ok(()),
            0 => Err(io::ErrorKind::Interrupted.into()), // the parent has ended before the call
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes only the system calls above, on a number.
    unsafe { command.pre_exec(begin) };
}

/// Returns the effective user id of this process.
pub fn effective_user() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Returns the kernel's id of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Sets the name of the calling thread that tools show: at most 15 bytes. Ignores errors.
pub fn name_thread(name: &str) {
    let _ = std::fs::write("/proc/thread-self/comm", name);
}

/// Returns true if there is a process `pid`, running or not yet reaped.
pub fn exists(pid: u32) -> bool {
    // SAFETY: signal 0 sends nothing and only checks the pid.
    unsafe { libc::kill(pid as libc::pid_t, 0) == 0 || *libc::__errno_location() == libc::EPERM }
}

/// Returns a number that identifies the PID namespace of this process on this system; 0 if /proc does not tell.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Returns true if this process ignores the signal with this number.
pub fn ignores(signal: i32) -> bool {
    // SAFETY: no new action is set, and `current` is valid memory for the current one.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut current) == 0 && current.sa_sigaction == libc::SIG_IGN
    }
}

/// Returns how many descriptors this process may have open: the soft limit.
pub fn descriptors_allowed() -> u64 {
    soft_limit(libc::RLIMIT_NOFILE)
}

/// Returns how many bytes of address space this process may have: the soft limit (`ulimit -v`).
pub fn address_space_allowed() -> u64 {
    soft_limit(libc::RLIMIT_AS)
}

/// Returns the soft limit of a resource; `u64::MAX` if there is none.
fn soft_limit(resource: libc::__rlimit_resource_t) -> u64 {
    // SAFETY: limit is valid memory for the result.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(resource, &mut limit) == 0 { limit.rlim_cur } else { u64::MAX }
    }
}

/// Descriptors that are left for the program's own files, besides those that Tasuki needs.
const DESCRIPTORS_SPARED: u64 = 256;

/// Raises the soft limit so that this process can open `wanted` descriptors and some for the program. Error: the hard
/// limit is lower.
pub fn allow_descriptors(wanted: u64) -> Result<()> {
    let all = wanted.saturating_add(DESCRIPTORS_SPARED);
    allow(libc::RLIMIT_NOFILE, "setrlimit(RLIMIT_NOFILE)", all, "open files are needed", "ulimit -Hn")
}

/// Raises the soft limit so that this process can create a file of `wanted` bytes. Error: the hard
/// limit is lower. Without this, the kernel would end the process by a signal (SIGXFSZ) instead of
/// returning an error.
pub fn allow_file_size(wanted: u64) -> Result<()> {
    let purpose = "bytes of a sparse file are needed for a rank's memory";
    allow(libc::RLIMIT_FSIZE, "setrlimit(RLIMIT_FSIZE)", wanted, purpose, "ulimit -Hf")
}

/// Raises the soft limit of a resource to `wanted`. Error: the hard limit is lower, or the kernel refused.
fn allow(
    resource: libc::__rlimit_resource_t,
    call: &'static str,
    wanted: u64,
    purpose: &str,
    shown_by: &str,
) -> Result<()> {
    // SAFETY: limit is valid memory for both calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(resource, &mut limit) != 0 {
            return Err(Error::last_os("getrlimit"));
        }
        if limit.rlim_cur >= wanted {
            return Ok(());
        }
        if limit.rlim_max < wanted {
            let most = limit.rlim_max;
            let why = format!("{wanted} {purpose}, but the hard limit is {most} (`{shown_by}`): raise it");
            return Err(crate::base::Cause::System { call, why }.into());
        }
        limit.rlim_cur = wanted;
        if libc::setrlimit(resource, &limit) != 0 {
            return Err(Error::last_os(call));
        }
    }
    Ok(())
}

/// Yields the processor to another runnable thread.
pub fn yield_now() {
    // SAFETY: takes no arguments.
    unsafe { libc::sched_yield() };
}
