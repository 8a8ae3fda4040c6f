//! Time limits of calls. All waits of one call end at the same time, its [`Deadline`].
//!
//! A call has the limit of the handle on which it was made ([`Worker::limited`]), or else the default of its rank. A
//! wait may be deep inside a call, below the steps of a collective. So the deadline belongs to the thread for as long as
//! its call lasts. Only waits look for it, where they read the clock anyway; a call that ends while it spins does not.

use crate::base::Cause;
use crate::engine::worker::Worker;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When a wait gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The time on the clock of the platform, in ns; `u64::MAX`: never.
    until_ns: u64,
    /// How long the call may take, for its error.
    limit_ns: u64,
}

/// The limit of a wait that does not know yet whose clock counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// That of the call of which the wait is a part.
    OfCall,
    /// This time from now on.
    After(Duration),
    /// None: the wait ends by itself.
    Never,
}

/// No time limit, in ns.
const NO_LIMIT: u64 = u64::MAX;
/// The thread is in no call whose waits have a deadline in common.
const NO_CALL: u64 = 0;
/// The thread is in such a call, which has not waited yet.
const NOT_WAITED: u64 = 1;

thread_local! {
    /// The deadline that a handle with a limit has set for the call of this thread.
    static OF_HANDLE: Cell<Deadline> = const { Cell::new(Deadline::NEVER) };
    /// When the call of this thread ends by the default of its rank, in ns; or one of the words above.
    static BY_DEFAULT: Cell<u64> = const { Cell::new(NO_CALL) };
}

/// The default limit of a rank, in ns.
#[derive(Debug)]
pub(in crate::engine) struct DefaultLimit(AtomicU64);

impl Default for DefaultLimit {
    fn default() -> DefaultLimit {
        DefaultLimit(AtomicU64::new(NO_LIMIT))
    }
}

fn nanoseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT)
}

impl Deadline {
    /// For waits that end by themselves, or whose buffers a peer may use until they do.
    pub const NEVER: Deadline = Deadline { until_ns: u64::MAX, limit_ns: NO_LIMIT };

    fn after(now_ns: u64, limit_ns: u64) -> Deadline {
        Deadline { until_ns: now_ns.saturating_add(limit_ns), limit_ns }
    }

    /// Returns the time at which it is reached; `u64::MAX`: never.
    #[inline]
    pub fn until_ns(self) -> u64 {
        self.until_ns
    }

    /// Returns how long the call may take.
    pub fn limit(self) -> Duration {
        Duration::from_nanos(self.limit_ns)
    }

    /// Returns the earlier of both.
    #[must_use]
    pub fn or_earlier(self, other: Deadline) -> Deadline {
        if other.until_ns < self.until_ns { other } else { self }
    }
}

/// Restores the deadline of this thread when it is dropped.
#[derive(Debug)]
pub struct LimitGuard(Deadline);

impl Drop for LimitGuard {
    fn drop(&mut self) {
        OF_HANDLE.set(self.0);
    }
}

/// Ends the call of this thread when it is dropped.
#[derive(Debug)]
pub struct CallScope(u64);

impl Drop for CallScope {
    fn drop(&mut self) {
        BY_DEFAULT.set(self.0);
    }
}

/// All waits of this thread until the result is dropped belong to one call, or to the call that it is in already.
pub fn in_one_call() -> CallScope {
    let before = BY_DEFAULT.get();
    if before == NO_CALL {
        BY_DEFAULT.set(NOT_WAITED);
    }
    CallScope(before)
}

/// Notes that the thread is in a call from now on, or no longer.
#[inline]
pub(super) fn set_in_call(is_in_call: bool) {
    BY_DEFAULT.set(if is_in_call { NOT_WAITED } else { NO_CALL });
}

impl Worker {
    /// Sets the limit of all calls of the rank that have no other.
    pub fn set_default_limit(&self, limit: Option<Duration>) {
        self.default_limit().0.store(limit.map_or(NO_LIMIT, nanoseconds), Ordering::Relaxed);
    }

    /// Limits the calls that this thread makes until the result is dropped, all together.
    #[cold]
    pub fn limited(&self, limit: Duration) -> LimitGuard {
        let deadline = Deadline::after(self.now_ns(), nanoseconds(limit));
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
            NO_CALL => Deadline::after(self.now_ns(), limit_ns),
            NOT_WAITED => {
                let deadline = Deadline::after(self.now_ns(), limit_ns);
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
        Deadline::after(self.now_ns(), nanoseconds(limit))
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
