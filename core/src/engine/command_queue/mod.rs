//! Command queues: posting commands, and which rank runs a queue when.
//!
//! A queue and the signals that its commands wait for are in the memory of the queue's *owner*. A rank that changes
//! something which may release a command makes sure that a rank runs the queue, at the latest before it returns to the
//! program:
//!
//! | event | rank that runs the queue |
//! |---|---|
//! | a command is posted, a signal is raised | the owner, if it *polls* its queues; else the rank that did it |
//! | an effect is about to raise a signal for which one queue waits | the rank that performs it, if the lease is free |
//! | an in-flight command has ended | the rank that ran it |
//! | a thread of the owner begins to wait, and repeatedly while it waits | that thread |
//! | the last waiting thread of the owner stops polling | that thread, once more |
//!
//! A rank that runs a queue takes its lease. If the lease is held, the rank marks it, and the holder runs the queue
//! again (`queue/lease`). The holder runs short actions itself (`run/short_action`), and a long one after it has
//! released the lease (`run/long_steps`).
//!
//! If other ranks cannot map the queues, only the owner runs them. Commands that another rank has to run are offloaded
//! to it (`offload`), into a queue that each rank has for this (`offload/inbox`).

mod lifecycle;
mod local_queue;
mod lookup;
mod offload;
mod post;
mod queue_name;
mod remote_post;
mod repeating;
mod run;
mod trace_events;

pub use local_queue::{LocalQueue, QueueStats};
pub(super) use lookup::ResolvedQueue;
pub use queue_name::QueueName;
pub use repeating::{RepeatingQueue, SignalTarget};
pub(super) use run::poll::QueuePoller;

use crate::base::{IdMap, Rank};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::trace;
use crate::segment::GlobalAddress;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, OnceLock};

/// The command queue state of a rank's worker.
#[derive(Debug)]
pub(super) struct CommandQueues {
    /// The first byte of the rank's own system piece.
    system: lookup::OwnSystemPiece,
    /// True if this process reads and raises signals of all ranks by loads and stores.
    direct: bool,
    /// True if atomics of the processor and of the fabric are atomic to each other. Else all are done by the fabric,
    /// those of the owner, too.
    coherent: bool,
    local: lookup::local_queues::LocalQueues,
    cached: IdMap<lookup::cache::CachedQueue>,
    /// Held while a queue is made.
    make_lock: Mutex<()>,
    /// Number of queues that were ever made.
    made_count: AtomicU32,
    in_flight: WorkQueue<run::long_action::LongAction>,
    /// In-flight commands that this rank has taken and has to pass on to another rank.
    to_forward: WorkQueue<trace::CommandId>,
    /// Held by the thread of the rank that does so.
    forward_lock: TryLock,
    /// Commands that other ranks run for this rank.
    offloaded: WorkQueue<offload::offloaded_command::OffloadedCommand>,
    /// Return signals that no offloaded command uses at the moment.
    free_return_signals: WorkQueue<offload::offloaded_command::ReturnSignal>,
    /// Signals that this rank has poisoned. Needed where its operations on one signal may arrive in any order.
    poisoned_signals: WorkQueue<GlobalAddress>,
    /// The queue into which other ranks post commands for this rank. None if they can map its queues.
    inbox: OnceLock<offload::inbox::Inbox>,
    /// Queues of other ranks that this process cannot map.
    remote: Mutex<remote_post::RemoteQueues>,
    /// True if the rank accepts handler calls.
    takes_calls: AtomicBool,
}

impl CommandQueues {
    /// Returns true if the rank posts to the queue by loads and stores.
    #[inline(always)]
    fn reach(&self, rank: Rank, name: QueueName) -> bool {
        self.coherent && (self.direct || name.address().rank() == rank)
    }
}
