//! Finding queues, and the words of the signals that they wait for.
#![allow(unsafe_code)]
//! Unsafe: pointers into system pieces and job memory that the fabric has just named, and that stay mapped while it
//! lives.

pub(super) mod cache;
pub(super) mod local_queues;

use crate::base::{Cause, IdMap, Rank};
use crate::engine::command_queue::CommandQueues;
use crate::engine::command_queue::lifecycle::LocalQueue;
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
use crate::segment::layout::{STATION, is_signal, signal_offset};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// A queue with its name, and with the system piece of its rank, where the signals are that its commands wait for.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct ResolvedQueue<'m> {
    pub(in crate::engine::command_queue) owner: Rank,
    pub(in crate::engine::command_queue) number: u32,
    pub(in crate::engine::command_queue) generation: u32,
    pub(in crate::engine::command_queue) queue: Queue<'m>,
    system: NonNull<u8>,
    /// Whether the counters of signals are read there, or by the fabric.
    direct: bool,
}

impl<'m> ResolvedQueue<'m> {
    /// Who waits for that signal, and whether it is poisoned.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn arming(&self, signal: u32) -> &'m SignalControl {
        // SAFETY: signal memory lies in the system piece, which is mapped for `'m`; the second line of a signal is its
        // arming.
        unsafe { self.system.add(signal_offset(signal) as usize + 64).cast::<SignalControl>().as_ref() }
    }

    /// The station of its rank.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn station(&self) -> &'m QueueDirectory {
        // SAFETY: the system piece is mapped for `'m`.
        unsafe { station_in(self.system) }
    }

    /// Whether it is one of calls, which only its own rank's process reads.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn takes_calls(&self) -> bool {
        self.number == CALLS
    }

    /// How a session queue goes on with its next command, if it does; another always may.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn credit(&self, worker: &Worker) -> Option<Failure> {
        let Some(credit) = self.queue.credit() else { return Some(None) };
        let let_go = self.count(worker, credit).wrapping_mul(self.queue.per_credit());
        let left = let_go.wrapping_sub(self.queue.commands()) as i64;
        if left > 0 { Some(None) } else { self.last_credit(credit) }
    }

    /// The same where the credit has not come so far: it may be poisoned. CommandQueues that it had let go on before run,
    /// the others fail. A queue that begins anew fails as many commands as it has lines: then all of their signals
    /// know.
    #[cold]
    fn last_credit(&self, credit: u32) -> Option<Failure> {
        let (poison, stood) = self.arming(credit).poison_and_value()?;
        let left = stood.wrapping_mul(self.queue.per_credit()).wrapping_sub(self.queue.commands()) as i64;
        let most = self.queue.cycle().map_or(i64::MAX, |lines| lines as i64);
        if left > 0 { Some(None) } else { (left > -most).then_some(Some(poison)) }
    }

    /// How a command of that trigger fires, if it does: it is met, or never will be.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn firing(
        &self,
        worker: &Worker,
        trigger: Trigger,
    ) -> Option<Failure> {
        let count = self.count(worker, trigger.signal);
        if certainly_reached(count, trigger.threshold) {
            return Some(None);
        }
        let verdict = self.arming(trigger.signal).check_threshold(count, trigger.threshold)?;
        Some(verdict.err())
    }

    /// How what lies at the head of the queue goes on, if it does: at once, unless it waits there for a trigger.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn head_goes_on(
        &self,
        worker: &Worker,
        lines: &EncodedCommand,
        pass: u64,
    ) -> Option<Failure> {
        lines.head(pass).map_or(Some(None), |trigger| self.firing(worker, trigger))
    }

    /// How far that signal has come.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn count(&self, worker: &Worker, signal: u32) -> u64 {
        if !self.direct {
            return worker.fabric().read_signal(GlobalAddress::new(self.owner, signal_offset(signal)));
        }
        // SAFETY: as above.
        let cell = unsafe { DirectCell::new(self.system.add(signal_offset(signal) as usize)) };
        cell.counter().load(Ordering::Acquire) // SYNC signal-raise
    }
}

/// The first byte of a rank's own system piece.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct OwnSystemPiece(NonNull<u8>);

// SAFETY: a pointer to shared memory that is mapped while the machine's fabric lives.
unsafe impl Send for OwnSystemPiece {}
// SAFETY: as above.
unsafe impl Sync for OwnSystemPiece {}

impl CommandQueues {
    /// EventKind the rank of that fabric knows before it has made a queue.
    pub(in crate::engine) fn new(rank: Rank, fabric: &dyn Fabric) -> Result<CommandQueues, Cause> {
        let system = fabric.system(rank);
        let system = system.ok_or_else(|| Cause::Bug("a rank does not reach its own memory".into()))?;
        let direct = matches!(fabric.own_signal(0)?, SignalCell::Direct(_));
        Ok(CommandQueues {
            system: OwnSystemPiece(system),
            direct,
            coherent: fabric.capabilities().cpu_atomics,
            own: LocalQueues::default(),
            known: IdMap::default(),
            making: Mutex::default(),
            made: AtomicU32::new(0),
            under_way: WorkQueue::default(),
            taken: WorkQueue::default(),
            handing_on: TryLock::default(),
            away: WorkQueue::default(),
            returns: WorkQueue::default(),
            spoilt: WorkQueue::default(),
            inbox: OnceLock::new(),
            remote: Mutex::default(),
            answers: AtomicBool::new(false),
        })
    }

    /// Whether the rank has made a queue, or answers calls.
    #[inline(always)]
    pub(in crate::engine) fn are_used(&self) -> bool {
        !self.own.is_blank() || self.answers()
    }

    /// Whether other ranks reach its queues.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether the rank answers calls.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }

    /// It does from now on.
    pub(in crate::engine) fn begin_to_answer(&self) {
        self.answers.store(true, Ordering::Relaxed);
    }

    /// The rank's own station.
    pub(in crate::engine::command_queue) fn station(&self) -> &QueueDirectory {
        // SAFETY: the system piece is mapped while the fabric lives, which the machine keeps.
        unsafe { station_in(self.system.0) }
    }
}

/// # Safety
/// A system piece, mapped for `'s`.
unsafe fn station_in<'s>(system: NonNull<u8>) -> &'s QueueDirectory {
    // SAFETY: by the caller's promise; a station is made of atomics.
    unsafe { system.add(STATION as usize).cast::<QueueDirectory>().as_ref() }
}

impl Worker {
    /// Whether the memory of other ranks is written by stores, and signals by atomics of the processor's.
    #[inline(always)]
    pub fn reaches_words(&self) -> bool {
        self.commands().direct && self.commands().coherent
    }

    /// The station of a rank, if it is in reach.
    #[inline]
    pub(in crate::engine::command_queue) fn station_of(&self, rank: Rank) -> Option<&QueueDirectory> {
        if rank == self.rank() {
            return Some(self.commands().station());
        }
        // SAFETY: mapped while our fabric lives.
        self.system_of(rank).map(|system| unsafe { station_in(system) })
    }

    /// How far a signal has come, where that can be read at once.
    pub(in crate::engine::command_queue) fn signal_now(&self, signal: GlobalAddress) -> Option<u64> {
        let is_one = self.commands().direct && is_signal(signal.offset());
        let system = self.system_of(signal.rank()).filter(|_| is_one)?;
        // SAFETY: signal memory lies in the system piece.
        let cell = unsafe { DirectCell::new(system.add(signal.offset() as usize)) };
        let counter = cell.counter().load(Ordering::Acquire); // SYNC signal-raise
        Some(cell.arming().raised_value(counter))
    }

    /// How often an own signal has been raised, poisoned or not.
    #[inline]
    pub fn height(&self, cell: &SignalCell) -> u64 {
        let counter = cell.read(self.fabric());
        self.signal_control_of(cell).map_or(counter, |arming| arming.raised_value(counter))
    }

    /// Who waits for an own signal, and whether it is poisoned.
    #[inline]
    pub(in crate::engine) fn signal_control_of<'m>(
        &'m self,
        cell: &'m SignalCell,
    ) -> Option<&'m SignalControl> {
        match cell {
            SignalCell::Direct(words) => Some(words.arming()),
            SignalCell::Via(signal) => self.signal_control_at(*signal),
        }
    }

    /// Which signal of this rank's own that is.
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

    /// The queue of that rank and number, if it is in reach.
    pub(in crate::engine::command_queue) fn find_queue(
        &self,
        owner: Rank,
        number: u32,
    ) -> Option<ResolvedQueue<'_>> {
        let offset = self.station_of(owner)?.queue(number)?;
        self.queue_at(GlobalAddress::new(owner, offset))
    }

    /// The queue of that name, if it is there and in reach.
    pub(in crate::engine::command_queue) fn find_named(&self, queue: QueueId) -> Option<ResolvedQueue<'_>> {
        let found = self.find_queue(queue.owner, queue.number);
        found.filter(|named| named.generation == queue.generation)
    }

    /// The queue that begins there, if it is in reach.
    #[inline]
    pub(in crate::engine::command_queue) fn queue_at(&self, at: GlobalAddress) -> Option<ResolvedQueue<'_>> {
        let lately = self.commands().known.recent(cache::number(at));
        let (card, queue) = match lately.and_then(CachedQueue::queue) {
            Some(found) => found,
            None => self.look_for_queue(at)?,
        };
        Some(self.name_queue(at.rank(), card, queue, self.system_of(at.rank())?))
    }

    #[cold]
    fn look_for_queue(&self, at: GlobalAddress) -> Option<(QueueInfo, Queue<'_>)> {
        let head = self.queue_memory(at, layout::HEAD_BYTES)?;
        // SAFETY: just found, in a registration that begins there: aligned.
        let card = unsafe { layout::queue_info_at(head)? };
        let place = self.queue_memory(at, layout::bytes(card.capacity))?;
        // SAFETY: just found; what is freed stays mapped.
        let known = unsafe { CachedQueue::new(at, place, card.capacity) };
        let known =
            self.commands().known.get_or_insert_with(cache::number(at), || Ok::<_, Cause>(known)).ok()?;
        // One that was there before may have had another size.
        let kept = self.commands().known.borrow(&known).queue();
        // SAFETY: as above.
        kept.or_else(|| Some((card, unsafe { Queue::over(place, card.capacity) })))
    }

    #[inline]
    fn name_queue<'m>(
        &self,
        owner: Rank,
        card: QueueInfo,
        queue: Queue<'m>,
        system: NonNull<u8>,
    ) -> ResolvedQueue<'m> {
        let QueueInfo { number, generation, .. } = card;
        ResolvedQueue { owner, number, generation, queue, system, direct: self.commands().direct }
    }

    /// A queue of this rank's own, with its name.
    #[inline]
    pub(in crate::engine) fn named<'o>(&self, own: &'o LocalQueue) -> ResolvedQueue<'o> {
        self.name_queue(self.rank(), own.card(), own.queue(), self.commands().system.0)
    }

    fn queue_memory(&self, at: GlobalAddress, len: u64) -> Option<NonNull<u8>> {
        if at.rank() == self.rank() {
            return NonNull::new(self.own_place(at, len).ok()?);
        }
        self.fabric().mapped(at, len).or_else(|| self.fabric().map(at, len))
    }

    /// Who waits for a signal, and whether it is poisoned; `None` where it is out of reach.
    #[inline]
    pub(in crate::engine) fn signal_control_at(&self, signal: GlobalAddress) -> Option<&SignalControl> {
        debug_assert!(is_signal(signal.offset()));
        let system = self.system_of(signal.rank())?;
        // SAFETY: signal memory lies in the system piece; the second line of a signal is its arming.
        Some(unsafe { system.add(signal.offset() as usize + 64).cast::<SignalControl>().as_ref() })
    }
}
