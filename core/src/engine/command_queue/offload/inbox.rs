//! The inbox of a rank: a queue into which other ranks post what this one is to run, where they reach neither its
//! station nor it theirs (`travelling`).
//!
//! All ranks lay theirs out alike, before anything else, so that nobody is asked where it is. EventKind comes there has no
//! trigger, needs no third rank and raises one signal of who sent it, so an inbox always empties.

use crate::base::{Cause, Error, Rank, Result};
use crate::engine::command_queue::lifecycle::LocalQueue;
use crate::engine::command_queue::post::QueueName;
use crate::engine::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// EncodedCommand of its ring.
const PLACES: usize = 256;

/// This rank's own.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct Inbox {
    queue: Arc<LocalQueue>,
    /// Something has come: from then on it is one of the rank's queues. A rank without any is spared the looks.
    is_used: AtomicBool,
}

impl Inbox {
    /// Whether the first command has come and nobody has noticed.
    fn has_come(&self) -> bool {
        !self.is_used.load(Ordering::Relaxed) && self.queue.queue().line(0).holds(0)
    }
}

impl Worker {
    /// Lays this rank's inbox out, if it needs one. Once, before the rank has allocated anything: all ranks then have
    /// it at the same place.
    pub fn open_inbox(&self) -> Result<()> {
        if self.commands().direct {
            return Ok(());
        }
        // Symmetric memory, of which all ranks have the same: the program's own begins behind it.
        let none = || Error::new(Cause::Bug("there is no symmetric memory for the inbox".into()));
        let allocate = |bytes| self.registry().allocate_symmetric(bytes)?.ok_or_else(none);
        let queue = self.lay_out_queue(PLACES, None, &allocate).map_err(Error::new)?;
        let first = self.commands().inbox.set(Inbox { queue, is_used: AtomicBool::new(false) }).is_ok();
        debug_assert!(first, "a rank has one inbox");
        Ok(())
    }

    /// The inbox of a rank, whose place is that of this rank's own.
    pub(in crate::engine::command_queue) fn inbox_of(&self, rank: Rank) -> Option<QueueName> {
        Some(self.commands().inbox.get()?.queue.name().on(rank))
    }

    /// Its number at this rank's station.
    pub(in crate::engine::command_queue) fn inbox_number(&self) -> Option<u32> {
        Some(self.commands().inbox.get()?.queue.card().number)
    }

    /// Whether something has come into this rank's inbox for the first time.
    #[inline]
    pub(in crate::engine) fn inbox_has_come(&self) -> bool {
        self.commands().inbox.get().is_some_and(Inbox::has_come)
    }

    /// Looks at the inbox as at other queues from now on, if something has come there.
    pub(in crate::engine::command_queue) fn use_inbox(&self) {
        if let Some(inbox) = self.commands().inbox.get().filter(|inbox| inbox.has_come()) {
            inbox.is_used.store(true, Ordering::Relaxed);
            self.commands().own.add(inbox.queue.card().number, &inbox.queue);
        }
    }

    /// The rank leaves: nothing comes any more, and what has come is run.
    pub(in crate::engine) fn close_inbox(&self) {
        let Some(inbox) = self.commands().inbox.get() else { return };
        let Ok(lines) = self.close(&inbox.queue) else { return }; // the job is over
        let queue = inbox.queue.queue();
        while (queue.reader().read() < lines || !queue.flights().is_empty()) && self.check().is_ok() {
            self.pause();
        }
    }
}
