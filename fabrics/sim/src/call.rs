//! Kinds of calls: each is a scheduling point and costs virtual time.

use crate::costs::{ASK_NS, CLOCK_NS, LOOK_NS, PAUSE_NS, POLL_NS, POST_NS, THREAD_NS};

/// What a thread asks of its fabric or host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Post,
    Poll,
    Look,
    Ask,
    Clock,
    Compute(u64),
    Pause,
    Thread,
}

impl Call {
    /// What it costs, about; [`Call::Compute`] exactly.
    pub(crate) fn cost_ns(self) -> u64 {
        match self {
            Call::Post => POST_NS,
            Call::Poll => POLL_NS,
            Call::Look => LOOK_NS,
            Call::Ask => ASK_NS,
            Call::Clock => CLOCK_NS,
            Call::Compute(ns) => ns,
            Call::Pause => PAUSE_NS,
            Call::Thread => THREAD_NS,
        }
    }

    pub(crate) fn number(self) -> u64 {
        match self {
            Call::Post => 0,
            Call::Poll => 1,
            Call::Look => 2,
            Call::Ask => 3,
            Call::Clock => 4,
            Call::Compute(_) => 5,
            Call::Pause => 6,
            Call::Thread => 7,
        }
    }

    /// Whether the fabric makes progress in it.
    pub(crate) fn serves(self) -> bool {
        !matches!(self, Call::Clock | Call::Compute(_) | Call::Thread)
    }

    /// Whether it shows that its thread has something to do, and is not only waiting.
    pub(crate) fn acts(self) -> bool {
        matches!(self, Call::Compute(_) | Call::Thread)
    }
}
