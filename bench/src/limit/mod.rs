//! What the machine can do without any library: loops over memory that two processes share without Tasuki.
//!
//! The files in this folder may use interfaces below Tasuki, and use nothing of Tasuki. Files outside of it may not use
//! such interfaces.

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
    /// The side that begins, and that measures the time.
    Lead,
    /// The side that answers.
    Follow,
}

impl Side {
    /// Returns 0 or 1: the index of this side's words and buffers.
    pub(crate) fn index(self) -> usize {
        match self {
            Side::Lead => 0,
            Side::Follow => 1,
        }
    }
}
