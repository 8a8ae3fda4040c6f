//! Sleeps on a word of memory until another thread wakes the sleepers.
#![allow(unsafe_code)]
//! Unsafe: the futex system call on words that are borrowed during the call.

use crate::base::sync::AtomicU32;
use crate::os::clock::timespec;
use std::ptr;
use std::time::Duration;

/// The processes whose threads may sleep on the word and wake it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Any process that maps the memory.
    Shared,
    /// Only threads of this process; cheaper.
    Private,
}

impl Scope {
    fn flag(self) -> libc::c_int {
        match self {
            Scope::Shared => 0,
            Scope::Private => libc::FUTEX_PRIVATE_FLAG,
        }
    }
}

/// Sleeps while `word` is `expected`, at most `limit`. May return early for any reason: the caller must check its
/// condition again.
pub fn wait(word: &AtomicU32, expected: u32, limit: Duration, scope: Scope) {
    let limit = timespec(limit);
    let operation = libc::FUTEX_WAIT | scope.flag();
    // SAFETY: word and limit outlive the call, which only reads them.
    unsafe { libc::syscall(libc::SYS_futex, ptr::from_ref(word), operation, expected, &limit) };
}

/// Wakes up to `count` threads that sleep on `word`.
pub fn wake(word: &AtomicU32, count: i32, scope: Scope) {
    // SAFETY: word outlives the call, which uses only its address.
    unsafe { libc::syscall(libc::SYS_futex, ptr::from_ref(word), libc::FUTEX_WAKE | scope.flag(), count) };
}
