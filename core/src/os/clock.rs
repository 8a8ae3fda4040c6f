//! Time since some fixed moment of this machine, equal for all its processes.
#![allow(unsafe_code)]
//! Unsafe: one call of clock_gettime into a local structure.

use std::time::Duration;

/// Nanoseconds of the monotonic clock. Costs about 20 ns (no system call).
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time that the calling thread has used, in nanoseconds. Costs a system call.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `ns` as a system call wants it.
pub(super) fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos() as libc::c_long }
}
