//! Lookup of queues and of the signals that their commands wait for.
#![allow(unsafe_code)]
//! Unsafe: pointers into system pieces and job memory that the fabric has mapped, and that stay mapped while it lives.

pub(super) mod cache;
pub(super) mod local_queues;
pub(super) mod resolved_queue;

use crate::base::Rank;
use crate::base::sync::Ordering;
use crate::engine::command_queue::command_queues::CommandQueues;
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::command_queue::lookup::resolved_queue::directory_in;
use crate::engine::trace::QueueId;
use crate::fabric::{DirectCell, SignalCell, SignalControl};
use crate::queue::directory::QueueDirectory;
use crate::queue::layout::{self, Queue, QueueInfo};
use crate::segment::GlobalAddress;
use crate::segment::layout::is_signal;
use std::ptr::NonNull;

pub(in crate::engine::command_queue) use resolved_queue::Failure;
pub(in crate::engine) use resolved_queue::ResolvedQueue;

impl CommandQueues {
    /// The rank's own queue directory.
    #[inline]
    pub(super) fn directory(&self) -> &QueueDirectory {
        // SAFETY: the system piece is mapped while the fabric lives, and the worker keeps the fabric.
        unsafe { directory_in(self.system.0) }
    }

    /// The queue directory of a rank, if this process can map it.
    #[inline]
    pub(in crate::engine::command_queue) fn directory_of(&self, rank: Rank) -> Option<&QueueDirectory> {
        if rank == self.rank {
            return Some(self.directory());
        }
        // SAFETY: `system` is a rank's system piece, which is mapped while the worker's fabric lives.
        self.system_of(rank).map(|system| unsafe { directory_in(system) })
    }

    /// The value of a signal, if it can be read by a load.
    pub(in crate::engine::command_queue) fn signal_now(&self, signal: GlobalAddress) -> Option<u64> {
        let is_one = self.direct && is_signal(signal.offset());
        let system = self.system_of(signal.rank()).filter(|_| is_one)?;
        // SAFETY: signal memory lies in the system piece.
        let cell = unsafe { DirectCell::new(system.add(signal.offset() as usize)) };
        let counter = cell.counter().load(Ordering::Acquire); // SYNC signal-raise
        Some(cell.control().raised_value(counter))
    }

    /// The value of a signal of this rank, poisoned or not.
    #[inline]
    pub(in crate::engine) fn signal_value(&self, cell: &SignalCell) -> u64 {
        let counter = cell.read(&*self.fabric);
        self.signal_control_of(cell).map_or(counter, |control| control.raised_value(counter))
    }

    /// The control line of a signal of this rank: which queue waits for it, and whether it is poisoned.
    #[inline]
    pub(in crate::engine) fn signal_control_of<'m>(
        &'m self,
        cell: &'m SignalCell,
    ) -> Option<&'m SignalControl> {
        match cell {
            SignalCell::Direct(words) => Some(words.control()),
            SignalCell::Via(signal) => self.signal_control_at(*signal),
        }
    }

    /// The address of a signal of this rank.
    pub(in crate::engine::command_queue) fn signal_in(&self, cell: &SignalCell) -> Option<GlobalAddress> {
        let offset = match cell {
            SignalCell::Via(signal) => return Some(*signal),
            SignalCell::Direct(words) => {
                let (word, start) = (std::ptr::from_ref(words.counter()), self.system.0);
                word.addr().wrapping_sub(start.addr().get()) as u64
            }
        };
        is_signal(offset).then(|| GlobalAddress::new(self.rank, offset))
    }

    #[inline]
    fn system_of(&self, rank: Rank) -> Option<NonNull<u8>> {
        if rank == self.rank {
            return Some(self.system.0);
        }
        if self.direct { self.fabric.system(rank) } else { None }
    }

    /// The queue with that owner and number, if this process can map it.
    #[inline]
    pub(in crate::engine::command_queue) fn find_queue(
        &self,
        owner: Rank,
        number: u32,
    ) -> Option<ResolvedQueue<'_>> {
        let offset = self.directory_of(owner)?.queue(number)?;
        self.queue_at(GlobalAddress::new(owner, offset))
    }

    /// The queue with that identity, if it still exists and this process can map it.
    pub(in crate::engine::command_queue) fn find_by_id(&self, queue: QueueId) -> Option<ResolvedQueue<'_>> {
        let found = self.find_queue(queue.owner, queue.number);
        found.filter(|resolved| resolved.generation == queue.generation)
    }

    /// The queue that begins at `at`, if this process can map it.
    #[inline]
    pub(in crate::engine::command_queue) fn queue_at(&self, at: GlobalAddress) -> Option<ResolvedQueue<'_>> {
        let (info, queue) = match self.cached.find(at) {
            Some(found) => found,
            None => self.map_queue(at)?,
        };
        Some(self.name_queue(at.rank(), info, queue, self.system_of(at.rank())?))
    }

    #[cold]
    fn map_queue(&self, at: GlobalAddress) -> Option<(QueueInfo, Queue<'_>)> {
        let head = self.queue_memory(at, layout::HEAD_BYTES)?;
        // SAFETY: `queue_memory` has just found the head mapped, in a registration that begins there, so it is aligned.
        let info = unsafe { layout::queue_info_at(head)? };
        let place = self.queue_memory(at, layout::bytes(info.capacity))?;
        // SAFETY: `queue_memory` has just found a queue of this capacity mapped at `place`. Freed memory stays mapped.
        unsafe { self.cached.remember(at, place, info.capacity) };
        // SAFETY: likewise.
        Some((info, unsafe { Queue::over(place, info.capacity) }))
    }

    #[inline]
    fn name_queue<'m>(
        &self,
        owner: Rank,
        info: QueueInfo,
        queue: Queue<'m>,
        system: NonNull<u8>,
    ) -> ResolvedQueue<'m> {
        let QueueInfo { number, generation, .. } = info;
        ResolvedQueue { owner, number, generation, queue, system, direct: self.direct }
    }

    /// A queue of this rank, with its identity.
    #[inline]
    pub(in crate::engine) fn resolved<'o>(&self, local: &'o LocalQueue) -> ResolvedQueue<'o> {
        self.name_queue(self.rank, local.info(), local.queue(), self.system.0)
    }

    /// The queues of this rank, without its inbox until that is used.
    #[inline]
    pub(in crate::engine::command_queue) fn own_queues(&self) -> impl Iterator<Item = ResolvedQueue<'_>> {
        self.local.iter().map(|(info, queue)| self.name_queue(self.rank, info, queue, self.system.0))
    }

    fn queue_memory(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        if at.rank() == self.rank {
            return NonNull::new(self.fabric.registry().own_place(at, len).ok()?);
        }
        self.fabric.mapped(at, len).or_else(|| self.fabric.map(at, len))
    }

    /// The control line of a signal of any rank: which queue waits for it, and whether it is poisoned. `None` if this
    /// process cannot map it.
    #[inline]
    pub(in crate::engine) fn signal_control_at(&self, signal: GlobalAddress) -> Option<&SignalControl> {
        debug_assert!(is_signal(signal.offset()));
        let system = self.system_of(signal.rank())?;
        // SAFETY: signal memory lies in the system piece; the second line of a signal is its control line.
        Some(unsafe { system.add(signal.offset() as usize + 64).cast::<SignalControl>().as_ref() })
    }
}
