//! The state of command queues that a rank keeps.

use super::lookup::cache::QueueCache;
use super::lookup::local_queues::LocalQueues;
use super::lookup::resolved_queue::OwnSystemPiece;
use super::offload::inbox::Inbox;
use super::offload::offloaded_command::{OffloadedCommand, ReturnSignal};
use super::queue_name::QueueName;
use super::run::long_action::LongAction;
use crate::base::sync::{AtomicBool, AtomicU32, Ordering};
use crate::base::{Cause, Rank};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::trace::CommandId;
use crate::fabric::{Fabric, SignalCell};
use crate::queue::command::Command;
use crate::queue::layout::QueueInfo;
use crate::segment::GlobalAddress;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The command queues of a rank: its own, and what it knows of those of other ranks.
#[derive(Debug)]
pub(in crate::engine) struct CommandQueues {
    pub(super) rank: Rank,
    pub(super) fabric: Arc<dyn Fabric>,
    /// The first byte of the rank's own system piece.
    pub(super) system: OwnSystemPiece,
    /// True if this process reads and raises signals of all ranks by loads and stores.
    pub(super) direct: bool,
    /// True if atomics of the processor and of the fabric are atomic to each other. Else all are done by the fabric,
    /// those of the owner, too.
    pub(super) coherent: bool,
    pub(super) local: LocalQueues,
    pub(super) cached: QueueCache,
    /// Held while a queue is made.
    pub(super) make_lock: Mutex<()>,
    /// Number of queues that were ever made.
    pub(super) made_count: AtomicU32,
    pub(super) in_flight: WorkQueue<LongAction>,
    /// In-flight commands that this rank has taken and has to pass on to another rank.
    pub(super) to_forward: WorkQueue<CommandId>,
    /// Held by the thread of the rank that does so.
    pub(super) forward_lock: TryLock,
    /// Commands that other ranks run for this rank.
    pub(super) offloaded: WorkQueue<OffloadedCommand>,
    /// Return signals that no offloaded command uses at the moment.
    pub(super) free_return_signals: WorkQueue<ReturnSignal>,
    /// Signals that this rank has poisoned. Needed where its operations on one signal may arrive in any order.
    pub(super) poisoned_signals: WorkQueue<GlobalAddress>,
    /// The queue into which other ranks post commands for this rank. None if they can map its queues.
    pub(super) inbox: OnceLock<Inbox>,
    /// Information about queues that this process cannot map, by their names.
    pub(super) remote: Mutex<BTreeMap<QueueName, QueueInfo>>,
    /// True if the rank accepts handler calls.
    pub(super) takes_calls: AtomicBool,
}

impl CommandQueues {
    /// The state of a rank that has made no queue yet.
    pub(in crate::engine) fn new(rank: Rank, fabric: Arc<dyn Fabric>) -> Result<CommandQueues, Cause> {
        let system = fabric.system(rank);
        let system = system.ok_or_else(|| Cause::Bug("a rank does not reach its own memory".into()))?;
        let direct = matches!(fabric.own_signal(0)?, SignalCell::Direct(_));
        Ok(CommandQueues {
            rank,
            system: OwnSystemPiece(system),
            direct,
            coherent: fabric.capabilities().cpu_atomics,
            local: LocalQueues::default(),
            cached: QueueCache::default(),
            make_lock: Mutex::default(),
            made_count: AtomicU32::new(0),
            in_flight: WorkQueue::default(),
            to_forward: WorkQueue::default(),
            forward_lock: TryLock::default(),
            offloaded: WorkQueue::default(),
            free_return_signals: WorkQueue::default(),
            poisoned_signals: WorkQueue::default(),
            inbox: OnceLock::new(),
            remote: Mutex::default(),
            takes_calls: AtomicBool::new(false),
            fabric,
        })
    }

    /// Returns true if the rank has made a queue or accepts calls.
    #[inline(always)]
    pub(in crate::engine) fn are_used(&self) -> bool {
        !self.local.was_never_used() || self.takes_calls()
    }

    /// Returns true if other ranks can map its queues.
    #[inline(always)]
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Returns true if the rank accepts calls.
    #[inline(always)]
    pub(super) fn takes_calls(&self) -> bool {
        self.takes_calls.load(Ordering::Relaxed)
    }

    /// Lets the rank accept calls.
    pub(in crate::engine) fn enable_calls(&self) {
        self.takes_calls.store(true, Ordering::Relaxed);
    }

    /// Returns true if this process writes the memory of other ranks by stores, and their signals by atomics of the
    /// processor.
    #[inline(always)]
    pub(in crate::engine) fn reach_words(&self) -> bool {
        self.direct && self.coherent
    }

    /// Returns true if the rank posts to the queue by loads and stores.
    #[inline(always)]
    pub(super) fn reach(&self, name: QueueName) -> bool {
        self.coherent && (self.direct || name.address().rank() == self.rank)
    }

    /// Returns true if this rank runs long actions.
    pub(super) fn has_long_actions(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns true if this rank may run a command that fired.
    #[inline]
    pub(super) fn may_run(&self, command: &Command) -> bool {
        command.runner().is_none_or(|rank| rank == self.rank)
    }
}
