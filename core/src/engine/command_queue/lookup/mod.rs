//! Lookup of queues and of the signals that their commands wait for.
#![allow(unsafe_code)]
//! Unsafe: pointers into system pieces and job memory that the fabric has mapped, and that stay mapped while it lives.

pub(super) mod cache;
pub(super) mod local_queues;

use crate::base::{Cause, IdMap, Rank};
use crate::engine::command_queue::CommandQueues;
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::command_queue::lookup::cache::CachedQueue;
use crate::engine::command_queue::lookup::local_queues::LocalQueues;
use crate::engine::command_queue::run::Failure;
use crate::engine::sync::try_lock::TryLock;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::trace::QueueId;
use crate::engine::worker::Worker;
use crate::fabric::{DirectCell, Fabric, SignalCell, SignalControl, certainly_reached};
use crate::queue::command::Trigger;
use crate::queue::directory::QueueDirectory;
use crate::queue::encoding::EncodedCommand;
use crate::queue::layout::{self, CALLS, Queue, QueueInfo};
use crate::segment::GlobalAddress;
use crate::segment::layout::{QUEUE_DIRECTORY, is_signal, signal_offset};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// A queue with its identity, and with the system piece of its rank, which holds the signals that its commands wait
/// for.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct ResolvedQueue<'m> {
    pub(in crate::engine::command_queue) owner: Rank,
    pub(in crate::engine::command_queue) number: u32,
    pub(in crate::engine::command_queue) generation: u32,
    pub(in crate::engine::command_queue) queue: Queue<'m>,
    system: NonNull<u8>,
    /// True if the counters of signals are read by loads, false if by the fabric.
    direct: bool,
}

impl<'m> ResolvedQueue<'m> {
    /// The control line of a signal: which queue waits for it, and whether it is poisoned.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn signal_control(&self, signal: u32) -> &'m SignalControl {
        // SAFETY: signal memory lies in the system piece, which is mapped for `'m`; the second line of a signal is its
        // control.
        unsafe { self.system.add(signal_offset(signal) as usize + 64).cast::<SignalControl>().as_ref() }
    }

    /// The queue directory of its rank.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn directory(&self) -> &'m QueueDirectory {
        // SAFETY: the system piece is mapped for `'m`.
        unsafe { directory_in(self.system) }
    }

    /// Returns true if it is a call queue, which only its own rank's process reads.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn takes_calls(&self) -> bool {
        self.number == CALLS
    }

    /// The outcome of the credit for the next command: `None` if it has to wait, else the failure, if the credit is
    /// poisoned. The commands of a queue without credit never wait.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn credit(&self, worker: &Worker) -> Option<Failure> {
        let Some(credit) = self.queue.credit() else { return Some(None) };
        let granted = self.signal_count(worker, credit).wrapping_mul(self.queue.per_credit());
        let left = granted.wrapping_sub(self.queue.commands()) as i64;
        if left > 0 { Some(None) } else { self.poisoned_credit(credit) }
    }

    /// The outcome of a credit that is not large enough: it may be poisoned. Commands that it had released before the
    /// poison run, the others fail. A repeating queue fails at most as many commands as it has lines: by then all of
    /// their signals are poisoned.
    #[cold]
    fn poisoned_credit(&self, credit: u32) -> Option<Failure> {
        let (poison, stood) = self.signal_control(credit).poison_and_value()?;
        let left = stood.wrapping_mul(self.queue.per_credit()).wrapping_sub(self.queue.commands()) as i64;
        let most = self.queue.cycle().map_or(i64::MAX, |lines| lines as i64);
        if left > 0 { Some(None) } else { (left > -most).then_some(Some(poison)) }
    }

    /// The outcome of a trigger: `None` if it is not met yet, else the failure, if it will never be met.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn trigger_outcome(
        &self,
        worker: &Worker,
        trigger: Trigger,
    ) -> Option<Failure> {
        let count = self.signal_count(worker, trigger.signal);
        if certainly_reached(count, trigger.threshold) {
            return Some(None);
        }
        let verdict = self.signal_control(trigger.signal).check_threshold(count, trigger.threshold)?;
        Some(verdict.err())
    }

    /// The outcome of the trigger for which a command waits at the head of the queue. A command without one does not
    /// wait.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn head_outcome(
        &self,
        worker: &Worker,
        encoded: &EncodedCommand,
        pass: u64,
    ) -> Option<Failure> {
        encoded.head(pass).map_or(Some(None), |trigger| self.trigger_outcome(worker, trigger))
    }

    /// The counter of a signal of the queue's rank.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn signal_count(&self, worker: &Worker, signal: u32) -> u64 {
        if !self.direct {
            return worker.fabric().read_signal(GlobalAddress::new(self.owner, signal_offset(signal)));
        }
        // SAFETY: signal memory lies in the system piece, which is mapped for `'m`.
        let cell = unsafe { DirectCell::new(self.system.add(signal_offset(signal) as usize)) };
        cell.counter().load(Ordering::Acquire) // SYNC signal-raise
    }
}

/// The first byte of a rank's own system piece.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct OwnSystemPiece(NonNull<u8>);

// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Send for OwnSystemPiece {}
// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Sync for OwnSystemPiece {}

impl CommandQueues {
    /// The state of a rank that has made no queue yet.
    pub(in crate::engine) fn new(rank: Rank, fabric: &dyn Fabric) -> Result<CommandQueues, Cause> {
        let system = fabric.system(rank);
        let system = system.ok_or_else(|| Cause::Bug("a rank does not reach its own memory".into()))?;
        let direct = matches!(fabric.own_signal(0)?, SignalCell::Direct(_));
        Ok(CommandQueues {
            system: OwnSystemPiece(system),
            direct,
            coherent: fabric.capabilities().cpu_atomics,
            local: LocalQueues::default(),
            cached: IdMap::default(),
            make_lock: Mutex::default(),
            made_count: AtomicU32::new(0),
            in_flight: WorkQueue::default(),
            to_forward: WorkQueue::default(),
            forward_lock: TryLock::default(),
            offloaded: WorkQueue::default(),
            free_return_signals: WorkQueue::default(),
            poisoned_signals: WorkQueue::default(),
            inbox: OnceLock::new(),
            remote: Mutex::default(),
            takes_calls: AtomicBool::new(false),
        })
    }

    /// Returns true if the rank has made a queue or accepts calls.
    #[inline(always)]
    pub(in crate::engine) fn are_used(&self) -> bool {
        !self.local.was_never_used() || self.takes_calls()
    }

    /// Returns true if other ranks can map its queues.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Returns true if the rank accepts calls.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn takes_calls(&self) -> bool {
        self.takes_calls.load(Ordering::Relaxed)
    }

    /// Lets the rank accept calls.
    pub(in crate::engine) fn enable_calls(&self) {
        self.takes_calls.store(true, Ordering::Relaxed);
    }

    /// The rank's own queue directory.
    pub(in crate::engine::command_queue) fn directory(&self) -> &QueueDirectory {
        // SAFETY: the system piece is mapped while the fabric lives, and the worker keeps the fabric.
        unsafe { directory_in(self.system.0) }
    }
}

/// The queue directory in a system piece.
///
/// # Safety
/// `system` is the first byte of a system piece that is mapped for `'s`.
unsafe fn directory_in<'s>(system: NonNull<u8>) -> &'s QueueDirectory {
    // SAFETY: the caller promises a mapped system piece, which holds the queue directory at this offset; a queue
    // directory is made of atomics.
    unsafe { system.add(QUEUE_DIRECTORY as usize).cast::<QueueDirectory>().as_ref() }
}

impl Worker {
    /// Returns true if this process writes the memory of other ranks by stores, and their signals by atomics of the
    /// processor.
    #[inline(always)]
    pub fn reaches_words(&self) -> bool {
        self.commands().direct && self.commands().coherent
    }

    /// The queue directory of a rank, if this process can map it.
    #[inline]
    pub(in crate::engine::command_queue) fn directory_of(&self, rank: Rank) -> Option<&QueueDirectory> {
        if rank == self.rank() {
            return Some(self.commands().directory());
        }
        // SAFETY: `system` is a rank's system piece, which is mapped while the worker's fabric lives.
        self.system_of(rank).map(|system| unsafe { directory_in(system) })
    }

    /// The value of a signal, if it can be read by a load.
    pub(in crate::engine::command_queue) fn signal_now(&self, signal: GlobalAddress) -> Option<u64> {
        let is_one = self.commands().direct && is_signal(signal.offset());
        let system = self.system_of(signal.rank()).filter(|_| is_one)?;
        // SAFETY: signal memory lies in the system piece.
        let cell = unsafe { DirectCell::new(system.add(signal.offset() as usize)) };
        let counter = cell.counter().load(Ordering::Acquire); // SYNC signal-raise
        Some(cell.control().raised_value(counter))
    }

    /// The value of a signal of this rank, poisoned or not.
    #[inline]
    pub fn signal_value(&self, cell: &SignalCell) -> u64 {
        let counter = cell.read(self.fabric());
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
                let (word, start) = (std::ptr::from_ref(words.counter()), self.commands().system.0);
                word.addr().wrapping_sub(start.addr().get()) as u64
            }
        };
        is_signal(offset).then(|| GlobalAddress::new(self.rank(), offset))
    }

    #[inline]
    fn system_of(&self, rank: Rank) -> Option<NonNull<u8>> {
        if rank == self.rank() {
            return Some(self.commands().system.0);
        }
        if self.commands().direct { self.fabric().system(rank) } else { None }
    }

    /// The queue with that owner and number, if this process can map it.
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
        let lately = self.commands().cached.recent(cache::number(at));
        let (info, queue) = match lately.and_then(CachedQueue::queue) {
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
        let cached = unsafe { CachedQueue::new(at, place, info.capacity) };
        let cached =
            self.commands().cached.get_or_insert_with(cache::number(at), || Ok::<_, Cause>(cached)).ok()?;
        // The cache may hold an earlier queue of another size at this address.
        let kept = self.commands().cached.borrow(&cached).queue();
        // SAFETY: `queue_memory` has just found a queue of this capacity mapped at `place`. Freed memory stays mapped.
        kept.or_else(|| Some((info, unsafe { Queue::over(place, info.capacity) })))
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
        ResolvedQueue { owner, number, generation, queue, system, direct: self.commands().direct }
    }

    /// A queue of this rank, with its identity.
    #[inline]
    pub(in crate::engine) fn resolved<'o>(&self, local: &'o LocalQueue) -> ResolvedQueue<'o> {
        self.name_queue(self.rank(), local.info(), local.queue(), self.commands().system.0)
    }

    fn queue_memory(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        if at.rank() == self.rank() {
            return NonNull::new(self.own_place(at, len).ok()?);
        }
        self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
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
