//! Lists of what handlers have posted, and of replies, for which there was no room yet.

use crate::engine::command_queue::QueueName;
use crate::engine::sync::work_queue::WorkQueue;
use crate::queue::encoding::EncodedCommand;

/// Entries of a list. A handler runs only if there is room for everything that it may post, and for its reply.
pub(super) const ENTRIES: usize = 256;

/// A post that waits for room.
pub(super) type DeferredPost = (QueueName, EncodedCommand);

/// A list of bounded length, in the order in which entries were pushed.
#[derive(Debug)]
pub(super) struct DeferredList<T>(WorkQueue<T>);

impl<T> Default for DeferredList<T> {
    fn default() -> DeferredList<T> {
        DeferredList(WorkQueue::default())
    }
}

impl<T> DeferredList<T> {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the list has room for `count` more entries.
    #[inline]
    pub(super) fn has_room(&self, count: usize) -> bool {
        self.0.len() + count <= ENTRIES
    }

    pub(super) fn push(&self, entry: T) {
        self.0.push(entry);
    }
}

impl<T: Copy> DeferredList<T> {
    /// Processes entries like [`WorkQueue::process`].
    pub(super) fn process(&self, is_done: impl FnMut(T) -> bool) -> bool {
        self.0.process(is_done)
    }
}
