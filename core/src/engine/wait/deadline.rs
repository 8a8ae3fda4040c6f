//! Time limits of calls. All waits of one call end at the same time, its [`Deadline`].
//!
//! A call has the limit of the handle on which it was made (`Worker::limited`), or else the default of its rank. A wait
//! may be deep inside a call, below the steps of a collective. So the deadline belongs to the thread for as long as its
//! call lasts. Only waits look for it, where they read the clock anyway; a call that ends while it spins does not.

use crate::base::sync::AtomicU64;
use std::cell::Cell;
use std::time::Duration;

/// When a wait gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The time on the clock of the platform, in ns; `u64::MAX`: never.
    pub(super) until_ns: u64,
    /// How long the call may take, for its error.
    pub(super) limit_ns: u64,
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
pub(super) const NO_LIMIT: u64 = u64::MAX;
/// The thread is in no call whose waits have a deadline in common.
pub(super) const NO_CALL: u64 = 0;
/// The thread is in such a call, which has not waited yet.
pub(super) const NOT_WAITED: u64 = 1;

thread_local! {
    /// The deadline that a handle with a limit has set for the call of this thread.
    pub(super) static OF_HANDLE: Cell<Deadline> = const { Cell::new(Deadline::NEVER) };
    /// When the call of this thread ends by the default of its rank, in ns; or one of the words above.
    pub(super) static BY_DEFAULT: Cell<u64> = const { Cell::new(NO_CALL) };
}

/// The default limit of a rank, in ns.
#[derive(Debug)]
pub(in crate::engine) struct DefaultLimit(pub(super) AtomicU64);

impl Default for DefaultLimit {
    fn default() -> DefaultLimit {
        DefaultLimit(AtomicU64::new(NO_LIMIT))
    }
}

pub(super) fn nanoseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT)
}

impl Deadline {
    /// For waits that end by themselves, or whose buffers a peer may use until they do.
    pub const NEVER: Deadline = Deadline { until_ns: u64::MAX, limit_ns: NO_LIMIT };

    /// Returns the deadline of a limit that begins at that time on the clock of the platform.
    pub fn after(now_ns: u64, limit: Duration) -> Deadline {
        Deadline::after_ns(now_ns, nanoseconds(limit))
    }

    pub(super) fn after_ns(now_ns: u64, limit_ns: u64) -> Deadline {
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
pub struct LimitGuard(pub(super) Deadline);

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

/// Restores the deadlines of this thread when it is dropped.
#[derive(Debug)]
pub struct ApartScope {
    of_handle: Deadline,
    by_default: u64,
}

impl Drop for ApartScope {
    fn drop(&mut self) {
        OF_HANDLE.set(self.of_handle);
        BY_DEFAULT.set(self.by_default);
    }
}

/// What this thread does until the result is dropped has no limit: it belongs to other calls, and this thread only
/// happens to do it.
pub fn apart_from_call() -> ApartScope {
    ApartScope { of_handle: OF_HANDLE.replace(Deadline::NEVER), by_default: BY_DEFAULT.replace(NO_LIMIT) }
}

/// Notes that the thread is in a call from now on, or no longer.
#[inline]
pub(super) fn set_in_call(is_in_call: bool) {
    BY_DEFAULT.set(if is_in_call { NOT_WAITED } else { NO_CALL });
}
