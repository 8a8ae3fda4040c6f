//! Prefetching the cache lines that a waiting command will access: its destination as soon as it is the first of its
//! list, its source as soon as its trigger is seen to be met. These are only hints, because another rank may run the
//! command.
//!
//! In a chain of copies back and forth between two ranks, a hop took 176 - 187 ns without prefetching and 143 - 148 ns
//! with it (measured alternately, where a cache line takes 36 ns to move). With it, the destination's line moves while
//! the other processor waits. Without it, the source was fetched only after the lease, the list and the command had
//! been read.

use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::os::prefetch;
use crate::queue::command::{Action, Command};

/// Number of signal lists of a queue whose first commands are prefetched.
const LISTS: usize = 4;

impl CommandQueues {
    /// Prefetches the source of the first command of a list whose trigger is met: the command will run soon, probably
    /// on this thread.
    #[inline]
    pub(in crate::engine::command_queue) fn fetch_source(&self, resolved: &ResolvedQueue<'_>, list: usize) {
        let from = resolved.queue.triggered().source(list);
        if let Some(line) = from.and_then(|from| self.fabric.mapped(from, 1)) {
            prefetch::for_reading(line.as_ptr());
        }
    }

    /// Prefetches the destinations of waiting commands that this rank may run.
    #[inline]
    pub(in crate::engine::command_queue) fn fetch_destinations(&self, resolved: &ResolvedQueue<'_>) {
        let lists = resolved.queue.triggered();
        for list in 0..lists.triggers().count().min(LISTS) {
            let Some(command) = lists.first(list).and_then(|(encoded, _)| Command::decode(&encoded)) else {
                continue;
            };
            let (Action::Copy { to, .. } | Action::Put { to, .. } | Action::Atomic { at: to, .. }) =
                command.action
            else {
                continue;
            };
            if let Some(line) = self.fabric.mapped(to, 1).filter(|_| self.may_run(&command)) {
                prefetch::for_writing(line.as_ptr());
            }
        }
    }
}
