//! Handing the turn from one thread to the next.

use std::time::Duration;
use tasuki_core::base::sync::{AtomicU32, Ordering};
use tasuki_core::os::futex::{self, Scope};

/// The word of one thread: 0 until it gets the turn, then 1.
#[derive(Debug, Default)]
pub(crate) struct Handoff(AtomicU32);

/// The limit of the futex call. A turn is never lost, so nothing has to be checked again.
const LONG: Duration = Duration::from_secs(3600);

impl Handoff {
    /// Gives that thread the turn. Costs a system call, 1 to 3 us.
    pub(crate) fn pass(&self) {
        self.0.store(1, Ordering::Release); // SYNC handoff
        futex::wake(&self.0, 1, Scope::Private);
    }

    /// Waits until this thread has the turn.
    pub(crate) fn take(&self) {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            futex::wait(&self.0, 0, LONG, Scope::Private); // SYNC handoff
        }
    }
}
