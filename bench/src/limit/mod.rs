//! What the machine can do below any library: bare loops over memory that two processes share by their own.
//!
//! Everything in this folder may go below Tasuki, and uses nothing of it; everything outside may not.

mod copy;
mod hand_over;
mod remote_access;
mod shared_memory;

pub(crate) use copy::{Copies, CopyLimit};
pub(crate) use hand_over::{HandOver, Rounds};
pub(crate) use remote_access::{Access, RemoteLimit};
pub(crate) use shared_memory::{Shared, SharedFile};

/// Which of the two processes this one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The one that begins, and holds the clock.
    Lead,
    /// The one that answers.
    Follow,
}

impl Side {
    /// 0 or 1: the place of this side's words and buffers.
    pub(crate) fn index(self) -> usize {
        match self {
            Side::Lead => 0,
            Side::Follow => 1,
        }
    }
}
