//! The list of a rank's own queues. Waiting threads read it all the time without a lock.
#![allow(unsafe_code)]
//! Unsafe: pointers to queues that the list keeps until it is dropped itself, also those that were removed from it.

use crate::base::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::segment::layout::QUEUES_MAX;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The queues of a rank, by number.
#[derive(Debug, Default)]
pub(in crate::engine::command_queue) struct LocalQueues {
    places: OnceLock<Box<[AtomicPtr<LocalQueue>]>>,
    /// Numbers from here on were never used.
    end: AtomicUsize,
    kept: Mutex<Vec<Arc<LocalQueue>>>,
}

impl LocalQueues {
    /// Returns true if no queue was ever added.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn was_never_used(&self) -> bool {
        self.end.load(Ordering::Relaxed) == 0
    }

    /// The queues in the list.
    #[inline]
    pub(in crate::engine::command_queue) fn iter(&self) -> impl Iterator<Item = &LocalQueue> {
        let end = self.end.load(Ordering::Acquire);
        let places = self.places.get().map_or(&[][..], |places| &places[..end]);
        // SAFETY: `kept` holds the queue while the list, which is borrowed, lives.
        places.iter().filter_map(|place| unsafe { place.load(Ordering::Acquire).as_ref() })
    }

    /// Adds a queue under a number that is free.
    pub(in crate::engine::command_queue) fn add(&self, number: u32, queue: &Arc<LocalQueue>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(queue.clone());
        let blank = || (0..QUEUES_MAX).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        let places = self.places.get_or_init(blank);
        places[number as usize].store(Arc::as_ptr(queue).cast_mut(), Ordering::Release);
        self.end.fetch_max(number as usize + 1, Ordering::Release);
    }

    /// Removes the queue with that number. A thread that has a reference to it may go on using it.
    pub(in crate::engine::command_queue) fn remove(&self, number: u32) {
        if let Some(places) = self.places.get() {
            places[number as usize].store(ptr::null_mut(), Ordering::Release);
        }
    }
}
