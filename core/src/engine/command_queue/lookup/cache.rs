//! The cache of queues that this rank has used, by the address at which they begin.
#![allow(unsafe_code)]
//! Unsafe: pointers into job memory that was mapped when the queue was found. It stays mapped while the fabric lives,
//! even after the queue was dropped and its memory freed.

use crate::base::Numbered;
use crate::queue::layout::{self, Queue, QueueInfo};
use crate::segment::GlobalAddress;
use crate::segment::layout::GRANULE;
use std::ptr::NonNull;

/// The address of a queue in this process, and its capacity.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct CachedQueue {
    at: GlobalAddress,
    place: NonNull<u8>,
    capacity: u64,
}

// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Send for CachedQueue {}
// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Sync for CachedQueue {}

impl Numbered for CachedQueue {
    #[inline(always)]
    fn number(&self) -> u64 {
        number(self.at)
    }
}

/// The number of the object that begins at a granule. Its low bits differ if rank or offset differ.
#[inline(always)]
pub(in crate::engine::command_queue) fn number(at: GlobalAddress) -> u64 {
    (at.bits() / GRANULE).wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes()
}

impl CachedQueue {
    /// A queue of `capacity` lines, mapped at `place`.
    ///
    /// # Safety
    /// The memory of such a queue is mapped at `place` for as long as this value is used. The queue itself may be
    /// dropped.
    pub(in crate::engine::command_queue) unsafe fn new(
        at: GlobalAddress,
        place: NonNull<u8>,
        capacity: u64,
    ) -> CachedQueue {
        CachedQueue { at, place, capacity }
    }

    /// The queue, if there still is one with this capacity at the address. It may be a later one.
    #[inline]
    pub(in crate::engine::command_queue) fn queue(&self) -> Option<(QueueInfo, Queue<'_>)> {
        // SAFETY: the caller of `new` keeps a queue's memory mapped at `place`.
        let info =
            unsafe { layout::queue_info_at(self.place) }.filter(|info| info.capacity == self.capacity)?;
        // SAFETY: the caller of `new` keeps the memory of a queue of this capacity mapped at `place`.
        Some((info, unsafe { Queue::over(self.place, self.capacity) }))
    }
}
