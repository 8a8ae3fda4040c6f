//! The queues of this rank.
#![allow(unsafe_code)]
//! Unsafe: a queue over job memory of this rank, which the rank frees only after the queue is gone. Freed memory stays
//! mapped while the fabric lives, and the worker keeps the fabric.

use super::queue_name::QueueName;
use crate::base::Cause;
use crate::fabric::Poison;
use crate::queue::layout::{Queue, QueueInfo};
use crate::segment::GlobalAddress;
use std::ptr::NonNull;

/// The contents of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Number of lines that were reserved and not read.
    pub unread: u64,
    /// Number of commands that wait for their triggers.
    pub waiting: u64,
    /// Number of commands that have fired and whose effects have not happened.
    pub in_flight: u64,
    /// Number of commands that have failed.
    pub failed: u64,
}

/// A queue of this rank's own.
#[derive(Debug)]
pub struct LocalQueue {
    place: NonNull<u8>,
    at: GlobalAddress,
    info: QueueInfo,
}

// SAFETY: a pointer to shared memory that is mapped while the worker lives.
unsafe impl Send for LocalQueue {}
// SAFETY: a pointer to shared memory that is mapped while the worker lives.
unsafe impl Sync for LocalQueue {}

impl LocalQueue {
    /// Begins an empty queue at `place`, which other ranks know as `at`.
    ///
    /// # Safety
    /// The memory of such a queue is zeroed, aligned to a granule, used for nothing else until the queue is dropped,
    /// and mapped for as long as this value is used.
    pub(super) unsafe fn begin(place: NonNull<u8>, at: GlobalAddress, info: QueueInfo) -> LocalQueue {
        // SAFETY: the caller promises memory of such a queue, aligned to a granule, which is more than the 128 bytes
        // needed, and mapped for as long as the queue is used.
        unsafe { Queue::over(place, info.capacity) }.begin(info);
        LocalQueue { place, at, info }
    }

    /// Where it begins in this process.
    pub(super) fn place(&self) -> NonNull<u8> {
        self.place
    }

    /// Where it begins.
    pub(super) fn at(&self) -> GlobalAddress {
        self.at
    }

    /// The name by which other ranks post to it.
    pub fn name(&self) -> QueueName {
        QueueName::new(self.at, self.info.generation)
    }

    /// Number of lines of its ring.
    pub fn capacity(&self) -> u64 {
        self.info.capacity
    }

    #[inline]
    pub(in crate::engine) fn info(&self) -> QueueInfo {
        self.info
    }

    #[inline]
    pub(in crate::engine) fn queue(&self) -> Queue<'_> {
        // SAFETY: the queue exists as long as this value, and its memory longer.
        unsafe { Queue::over(self.place, self.info.capacity) }
    }
    /// The contents of the queue.
    pub fn stats(&self) -> QueueStats {
        let queue = self.queue();
        let in_flight = queue.in_flight().numbers();
        QueueStats {
            unread: queue.writers().reserved().saturating_sub(queue.reader().read()),
            waiting: u64::from(queue.triggered().len()),
            in_flight: in_flight.end.saturating_sub(in_flight.start),
            failed: queue.failures().0,
        }
    }

    /// The cause of the first failure of a command of the queue.
    pub fn first_failure(&self) -> Option<Cause> {
        let (failed, words) = self.queue().failures();
        let poison = (failed > 0).then(|| Poison::from_words(words)).flatten();
        poison.map(Poison::cause)
    }
}
