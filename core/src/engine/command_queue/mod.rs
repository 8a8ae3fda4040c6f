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
//! Where queues are out of reach only the owner looks. EventKind another rank is to run travels there (`travelling`), into a
//! queue that each rank has for it (`inbox`).

mod lifecycle;
mod lookup;
mod offload;
mod post;
mod remote_post;
mod repeating;
mod run;
mod trace_events;

pub use lifecycle::LocalQueue;
pub(super) use lookup::ResolvedQueue;
pub use post::{QueueName, QueueStats};
pub use repeating::{RepeatingQueue, SignalTarget};
pub(super) use run::poll::QueuePoller;

use crate::base::{IdMap, Rank};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::trace;
use crate::segment::GlobalAddress;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, OnceLock};

/// EventKind a rank's machine knows of command queues.
#[derive(Debug)]
pub(super) struct CommandQueues {
    /// The first byte of the rank's own system piece.
    system: lookup::OwnSystemPiece,
    /// Whether signals, also of others, are read and raised by loads and stores.
    direct: bool,
    /// Whether the processor's atomics and the fabric's agree: else all are the fabric's, the owner's, too.
    coherent: bool,
    own: lookup::local_queues::LocalQueues,
    known: IdMap<lookup::cache::CachedQueue>,
    /// Held while a queue is made.
    making: Mutex<()>,
    /// Queues that were ever made.
    made: AtomicU32,
    under_way: WorkQueue<run::in_flight::ActionInFlight>,
    /// EventKind was taken for this rank and is to be handed on to another.
    taken: WorkQueue<trace::CommandId>,
    /// Whether a thread of the rank is at that.
    handing_on: TryLock,
    /// EventKind others run for this rank.
    away: WorkQueue<offload::OffloadedCommand>,
    /// Signals by which the next of those may tell that they have ended.
    returns: WorkQueue<offload::ReturnSignal>,
    /// Signals that this rank has poisoned, where what it does to one may come in any order.
    spoilt: WorkQueue<GlobalAddress>,
    /// Where others post what this rank is to run; none where they reach its queues.
    inbox: OnceLock<offload::inbox::Inbox>,
    /// Queues of other ranks that are out of reach.
    remote: Mutex<remote_post::RemoteQueues>,
    /// Whether the rank answers calls.
    answers: AtomicBool,
}

impl CommandQueues {
    /// Whether the rank posts to that queue by loads and stores.
    #[inline(always)]
    fn reach(&self, rank: Rank, name: QueueName) -> bool {
        self.coherent && (self.direct || name.address().rank() == rank)
    }
}
