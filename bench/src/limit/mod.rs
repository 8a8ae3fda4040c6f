//! What the machine can do below any library: bare loops over memory that two processes share by their own.
//!
//! Everything in this folder may go below Tasuki, and uses nothing of it; everything outside may not.

mod copy;
mod hand_over;
mod memory;
mod probe;
mod remote;

pub(super) use copy::{Copies, CopyLimit};
pub(super) use hand_over::{HandOver, Rounds};
pub(super) use memory::{Shared, SharedFile};
pub(super) use probe::{Probe, answer_probe};
pub(super) use remote::{Access, RemoteLimit};

/// Which of the two processes this one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The one that begins, and holds the clock.
    Lead,
    /// The one that answers.
    Follow,
}

impl Side {
    /// 0 or 1: the place of this side's words and buffers.
    pub(super) fn index(self) -> usize {
        match self {
            Side::Lead => 0,
            Side::Follow => 1,
        }
    }
}
