//! The time limits of a rank's calls: who sets them, and when the call of this thread ends.

use crate::base::Cause;
use crate::base::sync::Ordering;
use crate::engine::wait::deadline::{
    BY_DEFAULT, Deadline, Limit, LimitGuard, NO_CALL, NO_LIMIT, NOT_WAITED, OF_HANDLE, nanoseconds,
};
use crate::engine::worker::Worker;
use std::time::Duration;

impl Worker {
    /// Sets the limit of all calls of the rank that have no other.
    pub fn set_default_limit(&self, limit: Option<Duration>) {
        self.default_limit().0.store(limit.map_or(NO_LIMIT, nanoseconds), Ordering::Relaxed);
    }

    /// Limits the calls that this thread makes until the result is dropped, all together.
    #[cold]
    pub fn limited(&self, limit: Duration) -> LimitGuard {
        let deadline = Deadline::after(self.now_ns(), limit);
        LimitGuard(OF_HANDLE.replace(deadline.or_earlier(OF_HANDLE.get())))
    }

    /// Returns true if the call of this thread has a limit.
    #[inline]
    pub fn has_limit(&self) -> bool {
        self.default_limit().0.load(Ordering::Relaxed) != NO_LIMIT || OF_HANDLE.get() != Deadline::NEVER
    }

    /// Returns the deadline of the call of this thread. For waits that have become long, as it may read the clock.
    pub fn call_deadline(&self) -> Deadline {
        let of_handle = OF_HANDLE.get();
        let limit_ns = self.default_limit().0.load(Ordering::Relaxed);
        if of_handle != Deadline::NEVER || limit_ns == NO_LIMIT {
            return of_handle;
        }
        match BY_DEFAULT.get() {
            NO_CALL => Deadline::after_ns(self.now_ns(), limit_ns),
            NOT_WAITED => {
                let deadline = Deadline::after_ns(self.now_ns(), limit_ns);
                BY_DEFAULT.set(deadline.until_ns.max(NOT_WAITED + 1));
                deadline
            }
            until_ns => Deadline { until_ns, limit_ns },
        }
    }

    /// Returns an error if the deadline of the call of this thread is reached. For waits that no condition describes.
    pub(in crate::engine) fn check_deadline(&self) -> Result<(), Cause> {
        let deadline = self.call_deadline();
        let is_over = deadline != Deadline::NEVER && self.now_ns() >= deadline.until_ns;
        if is_over { Err(Cause::TimedOut { after: deadline.limit() }) } else { Ok(()) }
    }

    /// Returns the deadline that is reached after this time.
    pub fn deadline_after(&self, limit: Duration) -> Deadline {
        Deadline::after(self.now_ns(), limit)
    }

    /// Returns the deadline that a limit means if it begins now.
    pub(super) fn deadline_of(&self, limit: Limit) -> Deadline {
        match limit {
            Limit::OfCall => self.call_deadline(),
            Limit::After(limit) => self.deadline_after(limit),
            Limit::Never => Deadline::NEVER,
        }
    }
}
