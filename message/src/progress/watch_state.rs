//! Whether the waker thread of a rank runs, and what tells it to look again at what tasks wait for.
//!
//! A task stores what it waits for, then counts a change, then starts the thread unless it runs. The thread reads the
//! count before it looks at what is stored, and while it waits. Before it ends it says so, and looks once more: a task
//! that came in between has found it running.

use std::fmt::Debug;
use tasuki_core::base::planted;
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};

/// The state of the waker thread.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    is_running: AtomicBool,
    changes: AtomicU64,
}

impl WatchState {
    /// Tells the thread that something is to be waited for, which the caller has stored, or no longer.
    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst); // SYNC watch-change
    }

    /// Returns true if the caller has to start the thread. Otherwise the thread runs, or will look once more before it
    /// ends.
    pub(crate) fn must_start(&self) -> bool {
        !self.is_running.swap(true, Ordering::SeqCst) // SYNC watch-end
    }

    /// Notes that the thread could not be started.
    pub(crate) fn not_started(&self) {
        self.is_running.store(false, Ordering::SeqCst);
    }

    /// Returns the number of changes. The thread looks at what tasks wait for after that.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst) // SYNC watch-change
    }

    /// Returns true if the thread ends. `has_no_task` looks whether no task waits; if one does, this thread goes on, or
    /// another one that the task has started serves it.
    pub(crate) fn end(&self, has_no_task: impl Fn() -> bool) -> bool {
        // An exchange, so that it has a place among the exchanges of tasks.
        self.is_running.swap(false, Ordering::SeqCst); // SYNC watch-end
        planted("watch_end_without_look") || has_no_task() || self.is_running.swap(true, Ordering::SeqCst)
    }
}
