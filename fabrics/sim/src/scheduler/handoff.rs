//! How a thread waits for its turn, and how the one before it hands the turn on.

use std::time::Duration;
use tasuki_core::base::sync::{AtomicU32, Ordering};
use tasuki_core::os::futex::{self, Scope};

/// One thread's: 0 until it is its turn, then 1.
#[derive(Debug, Default)]
pub(crate) struct Handoff(AtomicU32);

/// Turns are never lost, so nobody has to look again; the kernel wants some number.
const LONG: Duration = Duration::from_secs(3600);

impl Handoff {
    /// It is that thread's turn. Costs a system call, 1 to 3 us.
    pub(crate) fn pass(&self) {
        self.0.store(1, Ordering::Release); // SYNC baton
        futex::wake(&self.0, 1, Scope::Private);
    }

    /// Waits for this thread's turn.
    pub(crate) fn take(&self) {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            futex::wait(&self.0, 0, LONG, Scope::Private); // SYNC baton
        }
    }
}
