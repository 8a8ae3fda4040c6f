//! Command queues at work: posting, who runs what, and when.
//!
//! A queue lies with its *owner*, the signals that its commands wait for, too. Whoever changes something that may let a
//! command go on sees to it that somebody looks, at the latest before returning to the program:
//!
//! | happens | who looks |
//! |---|---|
//! | a command is posted, a signal is raised | the owner, if it *serves*: a thread of it waits; else whoever did it |
//! | a command under way has ended | whoever ran it |
//! | a thread of the owner begins to wait, and between two looks while it waits | that thread |
//! | the last thread of the owner that waits goes away | that thread, once more |
//!
//! Whoever looks takes the queue's lease; who does not get it leaves a mark with its holder, who looks again
//! (`queue/lease`). A holder runs what is short itself (`deeds`), and what is long when it has given the lease back
//! (`flight`).
//!
//! Where queues are out of reach only the owner looks. What another rank is to run travels there (`travelling`), into a
//! queue that each rank has for it (`inbox`).

mod ahead;
mod attend;
mod deeds;
mod effects;
mod errands;
mod flight;
mod forwarding;
mod inbox;
mod known;
mod noting;
mod own;
mod posting;
mod prepared;
mod program;
mod reach;
mod remote;
mod roster;
mod serving;
mod sharing;
mod todo;
mod travelling;

pub use own::OwnQueue;
pub use posting::{QueueName, Standing};
pub use program::{Milestone, Program};
pub(super) use reach::Named;
pub(super) use serving::Attendance;

use crate::base::{Rank, Roll};
use crate::engine::shelf::Shelf;
use crate::engine::trace;
use crate::engine::turn::Turn;
use crate::segment::GlobalAddress;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, OnceLock};

/// What a rank's machine knows of command queues.
#[derive(Debug)]
pub(super) struct Commands {
    /// The first byte of the rank's own system piece.
    system: reach::OwnPiece,
    /// Whether signals, also of others, are read and raised by loads and stores.
    direct: bool,
    /// Whether the processor's atomics and the fabric's agree: else all are the fabric's, the owner's, too.
    coherent: bool,
    own: roster::Roster,
    known: Roll<known::Known>,
    /// Held while a queue is made.
    making: Mutex<()>,
    /// Queues that were ever made.
    made: AtomicU32,
    under_way: Shelf<flight::UnderWay>,
    /// What was taken for this rank and is to be handed on to another.
    taken: Shelf<trace::Place>,
    /// Whether a thread of the rank is at that.
    handing_on: Turn,
    /// What others run for this rank.
    away: Shelf<travelling::Away>,
    /// Signals by which the next of those may tell that they have ended.
    returns: Shelf<travelling::Return>,
    /// Signals that this rank has poisoned, where what it does to one may come in any order.
    spoilt: Shelf<GlobalAddress>,
    /// Where others post what this rank is to run; none where they reach its queues.
    inbox: OnceLock<inbox::Inbox>,
    /// Queues of other ranks that are out of reach.
    remote: Mutex<remote::Remote>,
    /// Whether the rank answers calls.
    answers: AtomicBool,
}

impl Commands {
    /// Whether the rank posts to that queue by loads and stores.
    #[inline(always)]
    fn reach(&self, rank: Rank, name: QueueName) -> bool {
        self.coherent && (self.direct || name.address().rank() == rank)
    }
}
