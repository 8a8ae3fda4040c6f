//! The queues that this rank has used lately, by the address at which they begin.
#![allow(unsafe_code)]
//! Unsafe: pointers into job memory that was mapped when the queue was found. It stays mapped while the fabric lives,
//! even after the queue was dropped and its memory freed.

use crate::engine::sync::versioned_words::VersionedWords;
use crate::queue::layout::{self, Queue, QueueInfo};
use crate::segment::GlobalAddress;
use crate::segment::layout::GRANULE;
use std::ptr::NonNull;

/// Places in the cache. A queue has one of them; a queue that was used before in it is looked up again.
const PLACES: usize = 64;

/// Places of queues that were found mapped: the address, where that is in this process, and the capacity.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct QueueCache([VersionedWords<3>; PLACES]);

impl Default for QueueCache {
    fn default() -> QueueCache {
        QueueCache(std::array::from_fn(|_| VersionedWords::default()))
    }
}

impl QueueCache {
    #[inline(always)]
    fn place(&self, at: GlobalAddress) -> &VersionedWords<3> {
        // The high bits of the product differ if rank or offset differ.
        let mixed = (at.bits() / GRANULE).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(mixed >> 32) as usize % PLACES]
    }

    /// Remembers a queue of `capacity` lines.
    ///
    /// # Safety
    /// The memory of such a queue is mapped at `place` for as long as the cache is used. The queue itself may be
    /// dropped.
    pub(in crate::engine::command_queue) unsafe fn remember(
        &self,
        at: GlobalAddress,
        place: NonNull<u8>,
        capacity: u64,
    ) {
        let _ = self.place(at).try_write([at.bits(), place.as_ptr().expose_provenance() as u64, capacity]);
    }

    /// Returns the queue at that address, if it was used lately and there still is one with the same capacity. It may
    /// be a later one.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn find(&self, at: GlobalAddress) -> Option<(QueueInfo, Queue<'_>)> {
        let [found, place, capacity] = self.place(at).read()?;
        if found != at.bits() {
            return None;
        }
        let place = NonNull::new(std::ptr::with_exposed_provenance_mut(place as usize))?;
        // SAFETY: the caller of `remember` keeps a queue's memory mapped at `place`.
        let info = unsafe { layout::queue_info_at(place) }.filter(|info| info.capacity == capacity)?;
        // SAFETY: the caller of `remember` keeps the memory of a queue of this capacity mapped at `place`.
        Some((info, unsafe { Queue::over(place, capacity) }))
    }
}
