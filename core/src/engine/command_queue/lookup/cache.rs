//! Queues that this rank has come across, found by where they begin.
#![allow(unsafe_code)]
//! Unsafe: pointers into job memory that was mapped when the queue was found, and stays so while the fabric lives, also
//! when the queue is gone and its memory was freed.

use crate::base::Numbered;
use crate::queue::layout::{self, Queue, QueueInfo};
use crate::segment::GlobalAddress;
use crate::segment::layout::GRANULE;
use std::ptr::NonNull;

/// Where a queue lies in this process, and how large it is.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct CachedQueue {
    at: GlobalAddress,
    place: NonNull<u8>,
    capacity: u64,
}

// SAFETY: a pointer to shared memory that is mapped while the machine's fabric lives.
unsafe impl Send for CachedQueue {}
// SAFETY: as above.
unsafe impl Sync for CachedQueue {}

impl Numbered for CachedQueue {
    #[inline(always)]
    fn number(&self) -> u64 {
        number(self.at)
    }
}

/// The number of what begins at that granule: low bits that differ, where rank or place do.
#[inline(always)]
pub(in crate::engine::command_queue) fn number(at: GlobalAddress) -> u64 {
    (at.bits() / GRANULE).wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes()
}

impl CachedQueue {
    /// A queue of that capacity at that place.
    ///
    /// # Safety
    /// All of it is mapped there for as long as this is used, or the memory that it was in.
    pub(in crate::engine::command_queue) unsafe fn new(
        at: GlobalAddress,
        place: NonNull<u8>,
        capacity: u64,
    ) -> CachedQueue {
        CachedQueue { at, place, capacity }
    }

    /// The queue, if one of that size lies there still; it may be another.
    #[inline]
    pub(in crate::engine::command_queue) fn queue(&self) -> Option<(QueueInfo, Queue<'_>)> {
        // SAFETY: the promise of `new`.
        let card =
            unsafe { layout::queue_info_at(self.place) }.filter(|card| card.capacity == self.capacity)?;
        // SAFETY: as above.
        Some((card, unsafe { Queue::over(self.place, self.capacity) }))
    }
}
