//! Kinds of calls. Each call is a scheduling point and costs virtual time.

use crate::scheduler::call_costs::{CLOCK_NS, LOOKUP_NS, PAUSE_NS, POLL_NS, POST_NS, READ_NS, THREAD_NS};

/// What a thread calls its fabric or platform for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallKind {
    Post,
    Poll,
    Read,
    Lookup,
    Clock,
    Compute(u64),
    Pause,
    Thread,
}

impl CallKind {
    /// Returns the mean cost in ns; for [`CallKind::Compute`] the exact cost.
    pub(crate) fn cost_ns(self) -> u64 {
        match self {
            CallKind::Post => POST_NS,
            CallKind::Poll => POLL_NS,
            CallKind::Read => READ_NS,
            CallKind::Lookup => LOOKUP_NS,
            CallKind::Clock => CLOCK_NS,
            CallKind::Compute(ns) => ns,
            CallKind::Pause => PAUSE_NS,
            CallKind::Thread => THREAD_NS,
        }
    }

    pub(crate) fn number(self) -> u64 {
        match self {
            CallKind::Post => 0,
            CallKind::Poll => 1,
            CallKind::Read => 2,
            CallKind::Lookup => 3,
            CallKind::Clock => 4,
            CallKind::Compute(_) => 5,
            CallKind::Pause => 6,
            CallKind::Thread => 7,
        }
    }

    /// Returns true if the fabric makes progress in the call.
    pub(crate) fn makes_progress(self) -> bool {
        !matches!(self, CallKind::Clock | CallKind::Compute(_) | CallKind::Thread)
    }

    /// Returns true if the call shows that its thread does more than wait.
    pub(crate) fn is_action(self) -> bool {
        matches!(self, CallKind::Compute(_) | CallKind::Thread)
    }
}
