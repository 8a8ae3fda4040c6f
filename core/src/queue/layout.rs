//! The memory layout of a queue: head, in-flight commands, triggered commands, ring, and signal lists.
#![allow(unsafe_code)]
//! Unsafe: references to structures of atomics in memory that the maker of a [`Queue`] keeps mapped.
//!
//! | part | bytes |
//! |---|---|
//! | head: writers, reader, lease, header, state | 128 each |
//! | in-flight commands | [`IN_FLIGHT_MAX`] x 256 |
//! | triggered commands | capacity x 128 |
//! | ring | capacity x 64 |
//! | lists of the signals that the triggered commands wait for | capacity x 24 |

use super::in_flight::{IN_FLIGHT_MAX, InFlight, InFlightCommand, InFlightState};
use super::lease::Lease;
use super::ring::{RingLine, RingReader, RingWriters};
use super::triggered::{SignalList, TriggeredCommand, TriggeredLists, TriggeredState};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::segment::GlobalAddress;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::slice;

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-q");
/// Most lines of a ring.
pub const CAPACITY_MAX: u64 = 1 << 20;
const NO_SIGNAL: u32 = 0;
/// A position of a repeating queue holds the line in its low bits and the round from this bit on.
const ROUND: u32 = 32;
const LINE_MASK: u64 = (1 << ROUND) - 1;
/// The number of a call queue. Such a queue has no number in the directory: only the process of its own rank reads it.
pub const CALLS: u32 = u32::MAX;

/// The words that do not change while a queue exists. Written by its owner.
#[repr(C, align(128))]
#[derive(Debug)]
struct QueueHeader {
    magic: AtomicU64,
    /// Lines of the ring, a power of two.
    capacity: AtomicU64,
    /// Differs between queues that lie at one address one after the other.
    generation: AtomicU32,
    /// The number of the queue in its rank's directory.
    number: AtomicU32,
    /// In a session queue: one more than the number of its credit, the signal that releases commands. 0: the queue is
    /// no session queue.
    credit: AtomicU32,
    /// Commands that each credit releases; 0 stands for one.
    per_credit: AtomicU32,
    /// Lines after which a session queue starts again from the first; 0: it does not repeat.
    cycle: AtomicU64,
}

/// The words that the holder of the lease changes.
#[repr(C, align(128))]
#[derive(Debug)]
struct QueueState {
    triggered: TriggeredState,
    in_flight: InFlightState,
    /// Number of commands that were read.
    commands: AtomicU64,
    /// Number of commands that failed.
    failed: AtomicU64,
    /// The first failure, as words of a poison.
    failure: [AtomicU64; 3],
    /// Number of commands that have fired and wait for the queue's own rank to run them.
    for_owner: AtomicU32,
    /// Number of commands that have fired and that only a third rank may run.
    for_others: AtomicU32,
    /// Number of calls that found no room in the call queue of their rank, and of the calls behind them.
    for_room: AtomicU32,
}

/// Numbers of commands that have fired and have not been run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingCounts {
    /// Commands for the queue's own rank.
    pub for_owner: u32,
    /// Commands for a third rank.
    pub for_others: u32,
    /// Calls that wait for room in the queue of the called rank.
    pub for_room: u32,
}

#[repr(C)]
#[derive(Debug)]
struct QueueHead {
    writers: RingWriters,
    reader: RingReader,
    lease: Lease,
    header: QueueHeader,
    state: QueueState,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<QueueHead>() == 5 * 128 && size_of::<InFlightCommand>() == 256);
    assert!(
        offset_of!(QueueHeader, generation) == 16
            && offset_of!(QueueHeader, number) == 20
            && offset_of!(QueueHeader, credit) == 24
    );
    assert!(size_of::<TriggeredCommand>() == 128 && size_of::<SignalList>() == 24);
};

/// A queue in memory that this process has mapped. It is small, because it is passed to functions all the time; the
/// addresses of the parts are computed from the capacity.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'m> {
    head: &'m QueueHead,
    /// Where the queue begins. `head` has this address, too, but as a reference it may only be used to access the head.
    place: NonNull<u8>,
    capacity: u64,
}

/// Offsets of the parts: in-flight commands, triggered commands, ring, and signal lists.
const IN_FLIGHT_AT: usize = size_of::<QueueHead>();
const TRIGGERED_AT: usize = IN_FLIGHT_AT + IN_FLIGHT_MAX as usize * size_of::<InFlightCommand>();

const fn ring_at(capacity: u64) -> usize {
    TRIGGERED_AT + capacity as usize * size_of::<TriggeredCommand>()
}

const fn signals_at(capacity: u64) -> usize {
    ring_at(capacity) + capacity as usize * size_of::<RingLine>()
}

/// Bytes of a queue whose ring has `capacity` lines.
pub fn bytes(capacity: u64) -> u64 {
    signals_at(capacity) as u64 + capacity * size_of::<SignalList>() as u64
}

/// Bytes of the head. The header in it holds the capacity, from which the size of the queue follows.
pub const HEAD_BYTES: u64 = size_of::<QueueHead>() as u64;

/// What identifies and describes a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueInfo {
    /// Lines of its ring.
    pub capacity: u64,
    /// The number of the queue in its rank's directory.
    pub number: u32,
    /// Differs between queues that lie at one address one after the other.
    pub generation: u32,
    /// The number of the signal that is the credit of a session queue.
    pub credit: Option<u32>,
}

/// Reads the header of the queue at `place`; `None` if there is no queue.
///
/// # Safety
/// `place` is aligned to 128 bytes, and [`HEAD_BYTES`] from there are mapped.
pub unsafe fn queue_info_at(place: NonNull<u8>) -> Option<QueueInfo> {
    // SAFETY: the caller promises `HEAD_BYTES` mapped, aligned bytes; a head is made of atomics.
    let header = unsafe { &place.cast::<QueueHead>().as_ref().header };
    let is_one = header.magic.load(Ordering::Acquire) == MAGIC; // SYNC queue-there
    let info = QueueInfo {
        capacity: header.capacity.load(Ordering::Relaxed),
        number: header.number.load(Ordering::Relaxed),
        generation: header.generation.load(Ordering::Relaxed),
        credit: header.credit.load(Ordering::Relaxed).checked_sub(1),
    };
    (is_one && info.capacity.is_power_of_two() && info.capacity <= CAPACITY_MAX).then_some(info)
}

/// A part of a queue that a rank accesses through the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueWord {
    /// The word that counts reserved positions.
    Reserved,
    /// The word that counts positions that were read.
    Read,
    /// The header.
    QueueHeader,
    /// The word with the number of lines after which the queue repeats; 0: it does not repeat.
    Cycle,
    /// A line of the ring.
    RingLine {
        /// Its position.
        position: u64,
        /// Lines of the ring.
        capacity: u64,
    },
}

impl QueueWord {
    /// Its address in the queue that begins at `queue`.
    pub fn of(self, queue: GlobalAddress) -> GlobalAddress {
        let offset = match self {
            QueueWord::Reserved => offset_of!(QueueHead, writers),
            QueueWord::Read => offset_of!(QueueHead, reader),
            QueueWord::QueueHeader => offset_of!(QueueHead, header),
            QueueWord::Cycle => offset_of!(QueueHead, header) + offset_of!(QueueHeader, cycle),
            QueueWord::RingLine { position, capacity } => {
                ring_at(capacity) + (position % capacity) as usize * size_of::<RingLine>()
            }
        };
        queue.add(offset as u64)
    }
}

/// The first words of the header of a remote queue, as they were read through the fabric.
#[derive(Debug, Default)]
pub struct RemoteQueueHeader([u64; 4]);

impl RemoteQueueHeader {
    /// The bytes to copy them into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }

    /// Decodes them; `None` if there is no queue.
    pub fn info(&self) -> Option<QueueInfo> {
        let [magic, capacity, names, credit] = self.0;
        let (number, generation, credit) =
            ((names >> 32) as u32, names as u32, (credit as u32).checked_sub(1));
        let info = QueueInfo { capacity, number, generation, credit };
        (magic == MAGIC && capacity.is_power_of_two() && capacity <= CAPACITY_MAX).then_some(info)
    }
}

impl<'m> Queue<'m> {
    /// The queue at `place` with `capacity` lines.
    ///
    /// # Safety
    /// `place` is aligned to 128 bytes, and [`bytes`] of that capacity from there are mapped for `'m`.
    #[inline(always)]
    pub unsafe fn over(place: NonNull<u8>, capacity: u64) -> Queue<'m> {
        // SAFETY: the caller promises an aligned queue that stays mapped for `'m`, and a queue begins with its head,
        // which is made of atomics.
        Queue { head: unsafe { place.cast().as_ref() }, place, capacity }
    }

    /// A part of the queue: `count` values of type `T` from byte `at` on.
    ///
    /// # Safety
    /// That many values of `T` begin there, inside the queue, and `T` is made of atomics.
    #[inline(always)]
    unsafe fn part<T>(&self, at: usize, count: u64) -> &'m [T] {
        // SAFETY: the caller of `over` keeps the queue mapped for `'m`. The caller of `part` promises that `count`
        // values made of atomics begin at `at` and lie in the queue. The order of the parts keeps each of them aligned.
        unsafe { slice::from_raw_parts(self.place.add(at).cast().as_ptr(), count as usize) }
    }

    /// Makes a queue in zeroed memory.
    pub fn begin(&self, info: QueueInfo) {
        let header = &self.head.header;
        self.head.state.triggered.begin();
        header.capacity.store(info.capacity, Ordering::Relaxed);
        header.number.store(info.number, Ordering::Relaxed);
        header.generation.store(info.generation, Ordering::Relaxed);
        header.credit.store(info.credit.map_or(NO_SIGNAL, |signal| signal + 1), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release); // SYNC queue-there
    }

    /// Marks the queue as gone. Under the lease.
    pub fn end(&self) {
        self.head.header.magic.store(0, Ordering::Release);
    }

    /// Returns true if the queue still exists.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.head.header.magic.load(Ordering::Relaxed) == MAGIC
    }

    /// The lease. Its holder may run the queue.
    #[inline(always)]
    pub fn lease(&self) -> &'m Lease {
        &self.head.lease
    }

    /// The side of the ring where posters reserve positions.
    #[inline(always)]
    pub fn writers(&self) -> &'m RingWriters {
        &self.head.writers
    }

    /// The side of the ring that the lease holder reads.
    #[inline(always)]
    pub fn reader(&self) -> &'m RingReader {
        &self.head.reader
    }

    /// The line of a position.
    #[inline(always)]
    pub fn line(&self, position: u64) -> &'m RingLine {
        // SAFETY: the ring begins at this offset and has `capacity` lines, which are made of atomics.
        let ring: &'m [RingLine] = unsafe { self.part(ring_at(self.capacity), self.capacity) };
        &ring[(position & (self.capacity - 1)) as usize]
    }

    /// Number of lines of the ring.
    #[inline(always)]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The commands that wait for their triggers.
    #[inline(always)]
    pub fn triggered(&self) -> TriggeredLists<'m> {
        // SAFETY: a queue has `capacity` signal lists and `capacity` triggered commands, at these offsets; both are
        // made of atomics.
        let (signals, triggered) = unsafe {
            (self.part(signals_at(self.capacity), self.capacity), self.part(TRIGGERED_AT, self.capacity))
        };
        TriggeredLists { state: &self.head.state.triggered, signals, triggered }
    }

    /// The in-flight commands.
    #[inline(always)]
    pub fn in_flight(&self) -> InFlight<'m> {
        // SAFETY: a queue has `IN_FLIGHT_MAX` in-flight commands at this offset, and they are made of atomics.
        let in_flight = unsafe { self.part(IN_FLIGHT_AT, IN_FLIGHT_MAX) };
        InFlight { state: &self.head.state.in_flight, in_flight }
    }

    /// The number of the signal that is the credit of a session queue.
    #[inline(always)]
    pub fn credit(&self) -> Option<u32> {
        self.head.header.credit.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns true if the queue is a repeating queue whose credit counts starts.
    pub fn is_repeating(&self) -> bool {
        self.head.header.per_credit.load(Ordering::Relaxed) != 0
    }

    /// Number of commands that each credit releases.
    #[inline(always)]
    pub fn per_credit(&self) -> u64 {
        self.head.header.per_credit.load(Ordering::Relaxed).max(1).into()
    }

    /// Sets the number of commands that each credit beyond the first `spent` ones releases. Before any command is
    /// posted.
    pub fn set_per_credit(&self, commands: u32, spent: u64) {
        self.head.header.per_credit.store(commands, Ordering::Relaxed);
        self.head.state.commands.store(spent.wrapping_mul(commands.into()), Ordering::Relaxed);
    }

    /// The line of a position, and the round to which the position belongs.
    #[inline(always)]
    pub fn place_of(&self, position: u64) -> (u64, u64) {
        if self.cycle().is_some() { (position & LINE_MASK, position >> ROUND) } else { (position, 0) }
    }

    /// The position after a command of `lines` lines at `position`.
    #[inline(always)]
    pub fn behind(&self, position: u64, lines: u64) -> u64 {
        match self.cycle() {
            Some(cycle) if (position & LINE_MASK) + lines >= cycle => ((position >> ROUND) + 1) << ROUND,
            _ => position + lines,
        }
    }

    /// Number of lines after which a session queue repeats; `None` if it does not repeat.
    #[inline(always)]
    pub fn cycle(&self) -> Option<u64> {
        let cycle = self.head.header.cycle.load(Ordering::Acquire); // SYNC queue-cycle
        (cycle != 0).then_some(cycle)
    }

    /// Makes the queue repeat after `lines` lines, which must be all lines that were posted. Only the owner may call
    /// this, and only once.
    pub fn set_cycle(&self, lines: u64) {
        self.head.header.cycle.store(lines, Ordering::Release); // SYNC queue-cycle
    }

    /// Number of commands that were read.
    #[inline(always)]
    pub fn commands(&self) -> u64 {
        self.head.state.commands.load(Ordering::Relaxed)
    }

    /// Counts a command that was read. Under the lease.
    #[inline(always)]
    pub fn count_command(&self) {
        self.head.state.commands.store(self.commands() + 1, Ordering::Relaxed);
    }

    /// Counts a command that failed, and keeps the cause if it is the first. Under the lease.
    pub fn count_failure(&self, poison: [u64; 3]) {
        let failed = self.head.state.failed.load(Ordering::Relaxed);
        if failed == 0 {
            for (into, from) in self.head.state.failure.iter().zip(poison) {
                into.store(from, Ordering::Relaxed);
            }
        }
        self.head.state.failed.store(failed + 1, Ordering::Release); // SYNC queue-failure
    }

    /// Number of commands that failed, and the poison of the first.
    pub fn failures(&self) -> (u64, [u64; 3]) {
        let failed = self.head.state.failed.load(Ordering::Acquire); // SYNC queue-failure
        (failed, std::array::from_fn(|word| self.head.state.failure[word].load(Ordering::Relaxed)))
    }

    /// Number of commands that wait for the queue's own rank.
    #[inline(always)]
    pub fn for_owner(&self) -> u32 {
        self.head.state.for_owner.load(Ordering::Relaxed)
    }

    /// Number of commands that wait for ranks which neither own the queue nor hold its lease.
    #[inline(always)]
    pub fn for_others(&self) -> u32 {
        self.head.state.for_others.load(Ordering::Relaxed)
    }

    /// Number of calls that wait for room in the queue of the called rank. The queue's own rank retries them from time
    /// to time.
    #[inline(always)]
    pub fn for_room(&self) -> u32 {
        self.head.state.for_room.load(Ordering::Relaxed)
    }

    /// Stores the numbers of waiting commands. Under the lease.
    pub fn set_waiting_counts(&self, counts: WaitingCounts) {
        let state = &self.head.state;
        state.for_owner.store(counts.for_owner, Ordering::Relaxed);
        state.for_others.store(counts.for_others, Ordering::Relaxed);
        state.for_room.store(counts.for_room, Ordering::Relaxed);
    }
}
