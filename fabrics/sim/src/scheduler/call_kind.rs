//! Kinds of calls: each is a scheduling point and costs virtual time.

use crate::scheduler::call_costs::{ASK_NS, CLOCK_NS, LOOK_NS, PAUSE_NS, POLL_NS, POST_NS, THREAD_NS};

/// EventKind a thread asks of its fabric or host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallKind {
    Post,
    Poll,
    Look,
    Ask,
    Clock,
    Compute(u64),
    Pause,
    Thread,
}

impl CallKind {
    /// EventKind it costs, about; [`CallKind::Compute`] exactly.
    pub(crate) fn cost_ns(self) -> u64 {
        match self {
            CallKind::Post => POST_NS,
            CallKind::Poll => POLL_NS,
            CallKind::Look => LOOK_NS,
            CallKind::Ask => ASK_NS,
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
            CallKind::Look => 2,
            CallKind::Ask => 3,
            CallKind::Clock => 4,
            CallKind::Compute(_) => 5,
            CallKind::Pause => 6,
            CallKind::Thread => 7,
        }
    }

    /// Whether the fabric makes progress in it.
    pub(crate) fn serves(self) -> bool {
        !matches!(self, CallKind::Clock | CallKind::Compute(_) | CallKind::Thread)
    }

    /// Whether it shows that its thread has something to do, and is not only waiting.
    pub(crate) fn acts(self) -> bool {
        matches!(self, CallKind::Compute(_) | CallKind::Thread)
    }
}
