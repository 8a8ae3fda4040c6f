//! The inbox of a rank: a queue into which other ranks post commands that this rank has to run, used if the ranks
//! cannot map each other's queues.
//!
//! All ranks allocate their inbox first, so that it lies at the same offset everywhere and no rank has to ask. A
//! command in it has no trigger, needs no third rank and raises one signal of its sender. So an inbox always drains.

use crate::base::sync::{AtomicBool, Ordering};
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::command_queue::lookup::local_queues::LocalQueues;
use std::sync::Arc;

/// The inbox of this rank.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct Inbox {
    queue: Arc<LocalQueue>,
    /// True after a command has arrived: from then on the rank polls it like its other queues. A rank without offloaded
    /// commands saves the polling.
    is_used: AtomicBool,
}

impl Inbox {
    pub(super) fn new(queue: Arc<LocalQueue>) -> Inbox {
        Inbox { queue, is_used: AtomicBool::new(false) }
    }

    /// Its queue.
    pub(super) fn queue(&self) -> &Arc<LocalQueue> {
        &self.queue
    }

    /// Begins to poll the inbox like the other queues of this rank, if a command has arrived there.
    pub(in crate::engine::command_queue) fn begin_use(&self, queues: &LocalQueues) {
        if self.has_arrived() {
            self.is_used.store(true, Ordering::Relaxed);
            queues.add(&self.queue);
        }
    }

    /// Returns true if the first command has arrived and the inbox is not polled yet.
    pub(in crate::engine::command_queue) fn has_arrived(&self) -> bool {
        !self.is_used.load(Ordering::Relaxed) && self.queue.queue().line(0).holds(0)
    }
}
