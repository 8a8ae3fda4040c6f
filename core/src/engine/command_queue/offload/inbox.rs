//! The inbox of a rank: a queue into which other ranks post commands that this rank has to run, used if the ranks
//! cannot map each other's queues.
//!
//! All ranks allocate their inbox first, so that it lies at the same offset everywhere and no rank has to ask. A
//! command in it has no trigger, needs no third rank and raises one signal of its sender. So an inbox always drains.

use crate::base::{Cause, Error, Rank, Result};
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::command_queue::queue_name::QueueName;
use crate::engine::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lines of its ring.
const INBOX_LINES: usize = 256;

/// The inbox of this rank.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct Inbox {
    queue: Arc<LocalQueue>,
    /// True after a command has arrived: from then on the rank polls it like its other queues. A rank without offloaded
    /// commands saves the polling.
    is_used: AtomicBool,
}

impl Inbox {
    /// Returns true if the first command has arrived and the inbox is not polled yet.
    fn has_arrived(&self) -> bool {
        !self.is_used.load(Ordering::Relaxed) && self.queue.queue().line(0).holds(0)
    }
}

impl Worker {
    /// Makes this rank's inbox, if it needs one. Called once, before the rank has allocated anything, so that it lies
    /// at the same offset on all ranks.
    pub fn open_inbox(&self) -> Result<()> {
        if self.commands().direct {
            return Ok(());
        }
        // It is in symmetric memory, which all ranks allocate alike. The program's allocations follow it.
        let none = || Error::new(Cause::Bug("there is no symmetric memory for the inbox".into()));
        let allocate = |bytes| self.registry().allocate_symmetric(bytes)?.ok_or_else(none);
        let queue = self.lay_out_queue(INBOX_LINES, None, &allocate).map_err(Error::new)?;
        let first = self.commands().inbox.set(Inbox { queue, is_used: AtomicBool::new(false) }).is_ok();
        debug_assert!(first, "a rank has one inbox");
        Ok(())
    }

    /// The inbox of a rank. It has the same offset as this rank's inbox.
    pub(in crate::engine::command_queue) fn inbox_of(&self, rank: Rank) -> Option<QueueName> {
        Some(self.commands().inbox.get()?.queue.name().on(rank))
    }

    /// Its number in this rank's directory.
    pub(in crate::engine::command_queue) fn inbox_number(&self) -> Option<u32> {
        Some(self.commands().inbox.get()?.queue.info().number)
    }

    /// Returns true if the first command has arrived in this rank's inbox and the inbox is not polled yet.
    #[inline]
    pub(in crate::engine) fn inbox_has_commands(&self) -> bool {
        self.commands().inbox.get().is_some_and(Inbox::has_arrived)
    }

    /// Begins to poll the inbox like the other queues, if a command has arrived there.
    pub(in crate::engine::command_queue) fn use_inbox(&self) {
        if let Some(inbox) = self.commands().inbox.get().filter(|inbox| inbox.has_arrived()) {
            inbox.is_used.store(true, Ordering::Relaxed);
            self.commands().local.add(inbox.queue.info().number, &inbox.queue);
        }
    }

    /// Called when the rank leaves: accepts no more commands, and waits until those that were accepted have run.
    pub(in crate::engine) fn close_inbox(&self) {
        let Some(inbox) = self.commands().inbox.get() else { return };
        let Ok(lines) = self.close(&inbox.queue) else { return }; // the job is over
        let queue = inbox.queue.queue();
        while (queue.reader().read() < lines || !queue.in_flight().is_empty()) && self.check().is_ok() {
            self.pause();
        }
    }
}
