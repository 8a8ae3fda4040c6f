//! This process, and descriptors that tell when another one ends.
#![allow(unsafe_code)]
//! Unsafe: system calls that take numbers only or fill in a local structure, and one new descriptor each.

pub mod affinity;
pub mod child_status;

use crate::base::{Error, Result};
use crate::os::disabled_features::DisabledFeatures;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor that becomes readable when process `pid` has ended; `None` where the kernel has no such thing.
pub fn pidfd(pid: u32, denied: DisabledFeatures) -> Option<OwnedFd> {
    if denied.pidfd {
        return None;
    }
    // SAFETY: the call takes numbers; the new descriptor (close-on-exec always) is owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Names the calling thread where tools show it: at most 15 bytes. No matter where that is refused.
pub fn name_thread(name: &str) {
    let _ = std::fs::write("/proc/thread-self/comm", name);
}

/// Whether `pid` is there, as a running process or one that nobody has reaped.
pub fn exists(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    unsafe { libc::kill(pid as libc::pid_t, 0) == 0 || *libc::__errno_location() == libc::EPERM }
}

/// The namespace in which this process has its number, as a number that no other namespace of this system has; 0 where
/// /proc does not tell.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Returns true if this process ignores the signal of that number.
pub fn ignores(signal: i32) -> bool {
    // SAFETY: no new action is given, and old is a valid place for the present one.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
    }
}

/// How many files this process may have open at present.
pub fn descriptors_allowed() -> u64 {
    // SAFETY: limit is a valid place for the answer.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 { limit.rlim_cur } else { u64::MAX }
    }
}

/// Descriptors that a program may want for itself, beside those that it is known to need.
const DESCRIPTORS_SPARED: u64 = 256;

/// Lets this process open `wanted` descriptors, and some for itself, as far as the hard limit goes.
pub fn allow_descriptors(wanted: u64) -> Result<()> {
    let all = wanted.saturating_add(DESCRIPTORS_SPARED);
    allow(libc::RLIMIT_NOFILE, "setrlimit(RLIMIT_NOFILE)", all, "open files are needed", "ulimit -Hn")
}

/// Lets this process make a file of that size, as far as the hard limit goes: beyond it the system does not answer
/// with an error, but with a signal that ends the process.
pub fn allow_file_size(wanted: u64) -> Result<()> {
    let needed = "bytes of a sparse file are needed, a rank's range";
    allow(libc::RLIMIT_FSIZE, "setrlimit(RLIMIT_FSIZE)", wanted, needed, "ulimit -Hf")
}

/// Raises the soft limit of a resource to what is wanted.
fn allow(
    resource: libc::__rlimit_resource_t,
    call: &'static str,
    wanted: u64,
    needed: &str,
    shown_by: &str,
) -> Result<()> {
    // SAFETY: limit is a valid place for both calls.
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
            let why = format!("{wanted} {needed}, and {most} is the limit (`{shown_by}`): raise it");
            return Err(crate::base::Cause::System { call, why }.into());
        }
        limit.rlim_cur = wanted;
        if libc::setrlimit(resource, &limit) != 0 {
            return Err(Error::last_os(call));
        }
    }
    Ok(())
}

/// Gives up the rest of this thread's turn on the processor.
pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}
