//! The list of a rank's own queues. Waiting threads read it all the time without a lock.
#![allow(unsafe_code)]
//! Unsafe: pointers to queues in job memory, which stays mapped while the fabric lives, also when a queue was dropped.

use crate::base::sync::{AtomicUsize, Ordering};
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::sync::versioned_words::VersionedWords;
use crate::queue::layout::{self, Queue, QueueInfo};
use crate::segment::layout::QUEUES_MAX;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::OnceLock;

/// The queues of a rank, by number: where each begins in this process, and its capacity.
#[derive(Debug, Default)]
pub(in crate::engine::command_queue) struct LocalQueues {
    places: OnceLock<Box<[VersionedWords<2>]>>,
    /// Numbers from here on were never used.
    end: AtomicUsize,
}

impl LocalQueues {
    /// Returns true if no queue was ever added.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn was_never_used(&self) -> bool {
        self.end.load(Ordering::Relaxed) == 0
    }

    /// The queues in the list. Each describes itself at its begin (`SYNC queue-there`): a thread that finds the place
    /// of a queue that was dropped meanwhile sees that there is none, or a later one.
    #[inline]
    pub(in crate::engine::command_queue) fn iter(&self) -> impl Iterator<Item = (QueueInfo, Queue<'_>)> {
        let end = self.end.load(Ordering::Acquire);
        let places = self.places.get().map_or(&[][..], |places| &places[..end]);
        places.iter().filter_map(|place| {
            let [place, capacity] = place.read()?; // a thread that writes adds or removes a queue
            let place = NonNull::new(with_exposed_provenance_mut(place as usize))?;
            // SAFETY: a queue began here, so the head is mapped and aligned.
            let info = unsafe { layout::queue_info_at(place) }.filter(|info| info.capacity == capacity)?;
            // SAFETY: memory of this rank for a queue of that capacity, which stays mapped.
            Some((info, unsafe { Queue::over(place, capacity) }))
        })
    }

    /// Adds a queue under a number that is free.
    pub(in crate::engine::command_queue) fn add(&self, queue: &LocalQueue) {
        let number = queue.info().number as usize;
        let blank = || (0..QUEUES_MAX).map(|_| VersionedWords::default()).collect();
        let place = queue.place().as_ptr().expose_provenance() as u64;
        let is_written = self.places.get_or_init(blank)[number].try_write([place, queue.capacity()]);
        debug_assert!(is_written, "two threads add queue {number}");
        self.end.fetch_max(number + 1, Ordering::Release);
    }

    /// Removes the queue with that number. A thread that has found it may go on using it.
    pub(in crate::engine::command_queue) fn remove(&self, number: u32) {
        if let Some(places) = self.places.get() {
            let is_written = places[number as usize].try_write([0; 2]);
            debug_assert!(is_written, "two threads remove queue {number}");
        }
    }
}
