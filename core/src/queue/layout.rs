//! How a queue lies in memory: its words, its lists, its ring, one behind the other.
#![allow(unsafe_code)]
//! Unsafe: references to structures of atomics in memory that the maker of a [`Queue`] keeps mapped.
//!
//! | part | bytes |
//! |---|---|
//! | head: posters, reader, lease, facts, books | 128 each |
//! | commands under way | [`IN_FLIGHT_MAX`] x 256 |
//! | commands that wait | capacity x 128 |
//! | signals that they wait for | capacity x 24 |
//! | ring | capacity x 64 |

use super::in_flight::{IN_FLIGHT_MAX, InFlight, InFlightCommand, InFlightState};
use super::lease::Lease;
use super::ring::{RingLine, RingReader, RingWriters};
use super::triggered::{SignalList, TriggeredCommand, TriggeredLists, TriggeredState};
use crate::segment::GlobalAddress;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-q");
/// Most lines that a ring has.
pub const CAPACITY_MAX: u64 = 1 << 20;
const NO_SIGNAL: u32 = 0;
/// A position of a queue that begins anew: the line, and above it the pass.
const PASS: u32 = 32;
const LINE_OF_PASS: u64 = (1 << PASS) - 1;
/// The number of a queue of calls, which no station lists: only its own rank's process reads it.
pub const CALLS: u32 = u32::MAX;

/// What is fixed while a queue lives. Written by its owner.
#[repr(C, align(128))]
#[derive(Debug)]
struct QueueHeader {
    magic: AtomicU64,
    /// EncodedCommand of the ring, a power of two.
    capacity: AtomicU64,
    /// Tells queues apart that lay at the same place, one after the other.
    generation: AtomicU32,
    /// Its number at its rank's station.
    number: AtomicU32,
    /// One more than the number of the signal that lets the head go on: a session queue. 0: free mode.
    credit: AtomicU32,
    /// Commands that each credit lets go on; 0: one.
    per_credit: AtomicU32,
    /// EncodedCommand after which a session queue begins anew; 0: it does not.
    cycle: AtomicU64,
}

/// What changes under the lease.
#[repr(C, align(128))]
#[derive(Debug)]
struct QueueState {
    parked: TriggeredState,
    flights: InFlightState,
    /// Commands that were read.
    commands: AtomicU64,
    /// Commands that ended badly.
    failed: AtomicU64,
    /// The first of them, as words of a poison.
    failure: [AtomicU64; 3],
    /// Commands that have fired, wait for the queue's own rank to run them, and hold nobody else up.
    for_owner: AtomicU32,
    /// The same of those that only a third rank may run.
    for_others: AtomicU32,
    /// Calls for which the queue's own rank has found no room, and those behind them.
    for_room: AtomicU32,
}

/// Commands that have fired and not been run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// For the queue's own rank.
    pub for_owner: u32,
    /// For a third rank.
    pub for_others: u32,
    /// Calls: for room.
    pub for_room: u32,
}

#[repr(C)]
#[derive(Debug)]
struct QueueHead {
    posters: RingWriters,
    reader: RingReader,
    lease: Lease,
    facts: QueueHeader,
    books: QueueState,
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

/// A queue in memory that this process reaches. No more than two words: it is handed on all the time, and where its
/// parts are is found by adding.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'m> {
    head: &'m QueueHead,
    /// Where the whole begins; `head` is the same place, as something of which no more than the head may be reached.
    place: NonNull<u8>,
    capacity: u64,
}

/// Where the parts begin: flights, waiting commands, ring, and the list of signals.
const FLIGHTS_AT: usize = size_of::<QueueHead>();
const PARKED_AT: usize = FLIGHTS_AT + IN_FLIGHT_MAX as usize * size_of::<InFlightCommand>();

const fn ring_at(capacity: u64) -> usize {
    PARKED_AT + capacity as usize * size_of::<TriggeredCommand>()
}

const fn awaited_at(capacity: u64) -> usize {
    ring_at(capacity) + capacity as usize * size_of::<RingLine>()
}

/// Bytes of a queue whose ring has that many lines.
pub fn bytes(capacity: u64) -> u64 {
    awaited_at(capacity) as u64 + capacity * size_of::<SignalList>() as u64
}

/// Bytes of the part whose facts say how long the whole is.
pub const HEAD_BYTES: u64 = size_of::<QueueHead>() as u64;

/// What a queue is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueInfo {
    /// EncodedCommand of its ring.
    pub capacity: u64,
    /// Its number at its rank's station.
    pub number: u32,
    /// Tells queues apart that lay at the same place.
    pub generation: u32,
    /// The signal that lets a session queue go on.
    pub credit: Option<u32>,
}

/// The queue at that place; `None` if there is none.
///
/// # Safety
/// The place is aligned to 128 bytes, and [`HEAD_BYTES`] from there are mapped.
pub unsafe fn queue_info_at(place: NonNull<u8>) -> Option<QueueInfo> {
    // SAFETY: the caller's promise; a head is made of atomics.
    let facts = unsafe { &place.cast::<QueueHead>().as_ref().facts };
    let is_one = facts.magic.load(Ordering::Acquire) == MAGIC; // SYNC queue-there
    let card = QueueInfo {
        capacity: facts.capacity.load(Ordering::Relaxed),
        number: facts.number.load(Ordering::Relaxed),
        generation: facts.generation.load(Ordering::Relaxed),
        credit: facts.credit.load(Ordering::Relaxed).checked_sub(1),
    };
    (is_one && card.capacity.is_power_of_two() && card.capacity <= CAPACITY_MAX).then_some(card)
}

/// A part of a queue that the fabric reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueWord {
    /// The word that counts reserved positions.
    Reserved,
    /// The word that counts positions that were read.
    Read,
    /// What is fixed.
    QueueHeader,
    /// The word that says after how many lines it begins anew, 0 if it does not.
    Cycle,
    /// A line of the ring.
    RingLine {
        /// Whose.
        position: u64,
        /// EncodedCommand of the ring.
        capacity: u64,
    },
}

impl QueueWord {
    /// Where it is in the queue that begins at `queue`.
    pub fn of(self, queue: GlobalAddress) -> GlobalAddress {
        let offset = match self {
            QueueWord::Reserved => offset_of!(QueueHead, posters),
            QueueWord::Read => offset_of!(QueueHead, reader),
            QueueWord::QueueHeader => offset_of!(QueueHead, facts),
            QueueWord::Cycle => offset_of!(QueueHead, facts) + offset_of!(QueueHeader, cycle),
            QueueWord::RingLine { position, capacity } => {
                ring_at(capacity) + (position % capacity) as usize * size_of::<RingLine>()
            }
        };
        queue.add(offset as u64)
    }
}

/// The facts of a queue as they were copied from afar.
#[derive(Debug, Default)]
pub struct RemoteQueueHeader([u64; 4]);

impl RemoteQueueHeader {
    /// The bytes to copy them into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }

    /// What they say; `None` if no queue is there.
    pub fn card(&self) -> Option<QueueInfo> {
        let [magic, capacity, names, credit] = self.0;
        let (number, generation, credit) =
            ((names >> 32) as u32, names as u32, (credit as u32).checked_sub(1));
        let card = QueueInfo { capacity, number, generation, credit };
        (magic == MAGIC && capacity.is_power_of_two() && capacity <= CAPACITY_MAX).then_some(card)
    }
}

impl<'m> Queue<'m> {
    /// The queue at that place.
    ///
    /// # Safety
    /// The place is aligned to 128 bytes, and [`bytes`] of that capacity from there are mapped for `'m`.
    #[inline(always)]
    pub unsafe fn over(place: NonNull<u8>, capacity: u64) -> Queue<'m> {
        // SAFETY: the caller's promise; a head is made of atomics.
        Queue { head: unsafe { place.cast().as_ref() }, place, capacity }
    }

    /// A part of it: so many of those that begin there.
    ///
    /// # Safety
    /// They do, all of them, and are made of atomics.
    #[inline(always)]
    unsafe fn part<T>(&self, at: usize, count: u64) -> &'m [T] {
        // SAFETY: mapped for `'m` by the promise of `over`, inside by the caller's; aligned by the order of the parts.
        unsafe { slice::from_raw_parts(self.place.add(at).cast().as_ptr(), count as usize) }
    }

    /// Makes a queue of zeroed memory.
    pub fn begin(&self, card: QueueInfo) {
        let facts = &self.head.facts;
        self.head.books.parked.begin();
        facts.capacity.store(card.capacity, Ordering::Relaxed);
        facts.number.store(card.number, Ordering::Relaxed);
        facts.generation.store(card.generation, Ordering::Relaxed);
        facts.credit.store(card.credit.map_or(NO_SIGNAL, |signal| signal + 1), Ordering::Relaxed);
        facts.magic.store(MAGIC, Ordering::Release); // SYNC queue-there
    }

    /// There is no queue any more. Under the lease.
    pub fn end(&self) {
        self.head.facts.magic.store(0, Ordering::Release);
    }

    /// Whether the queue is still there.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.head.facts.magic.load(Ordering::Relaxed) == MAGIC
    }

    /// Who runs it.
    #[inline(always)]
    pub fn lease(&self) -> &'m Lease {
        &self.head.lease
    }

    /// Where posters reserve.
    #[inline(always)]
    pub fn posters(&self) -> &'m RingWriters {
        &self.head.posters
    }

    /// As far as it was read.
    #[inline(always)]
    pub fn reader(&self) -> &'m RingReader {
        &self.head.reader
    }

    /// The line of a position.
    #[inline(always)]
    pub fn line(&self, position: u64) -> &'m RingLine {
        // SAFETY: where the ring is.
        let ring: &'m [RingLine] = unsafe { self.part(ring_at(self.capacity), self.capacity) };
        &ring[(position & (self.capacity - 1)) as usize]
    }

    /// How many lines the ring has.
    #[inline(always)]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Commands that wait for their triggers.
    #[inline(always)]
    pub fn parked(&self) -> TriggeredLists<'m> {
        // SAFETY: where those are.
        let (awaited, parked) = unsafe {
            (self.part(awaited_at(self.capacity), self.capacity), self.part(PARKED_AT, self.capacity))
        };
        TriggeredLists { books: &self.head.books.parked, awaited, parked }
    }

    /// Commands under way.
    #[inline(always)]
    pub fn flights(&self) -> InFlight<'m> {
        // SAFETY: where those are.
        let flights = unsafe { self.part(FLIGHTS_AT, IN_FLIGHT_MAX) };
        InFlight { books: &self.head.books.flights, flights }
    }

    /// The signal that lets a session queue go on.
    #[inline(always)]
    pub fn credit(&self) -> Option<u32> {
        self.head.facts.credit.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether it is a program, whose credit counts starts.
    pub fn is_program(&self) -> bool {
        self.head.facts.per_credit.load(Ordering::Relaxed) != 0
    }

    /// How many commands each credit lets go on.
    #[inline(always)]
    pub fn per_credit(&self) -> u64 {
        self.head.facts.per_credit.load(Ordering::Relaxed).max(1).into()
    }

    /// Each credit beyond the `spent` that there are lets so many commands go on. Before any is posted.
    pub fn set_per_credit(&self, commands: u32, spent: u64) {
        self.head.facts.per_credit.store(commands, Ordering::Relaxed);
        self.head.books.commands.store(spent.wrapping_mul(commands.into()), Ordering::Relaxed);
    }

    /// QueueKind line a position has, and in which pass through the queue that is.
    #[inline(always)]
    pub fn place_of(&self, position: u64) -> (u64, u64) {
        if self.cycle().is_some() { (position & LINE_OF_PASS, position >> PASS) } else { (position, 0) }
    }

    /// The position behind a command of so many lines.
    #[inline(always)]
    pub fn behind(&self, position: u64, lines: u64) -> u64 {
        match self.cycle() {
            Some(cycle) if (position & LINE_OF_PASS) + lines >= cycle => ((position >> PASS) + 1) << PASS,
            _ => position + lines,
        }
    }

    /// After how many lines a session queue begins anew.
    #[inline(always)]
    pub fn cycle(&self) -> Option<u64> {
        let cycle = self.head.facts.cycle.load(Ordering::Acquire); // SYNC queue-cycle
        (cycle != 0).then_some(cycle)
    }

    /// It begins anew after so many lines, which are all that were posted. Once, by its owner.
    pub fn set_cycle(&self, lines: u64) {
        self.head.facts.cycle.store(lines, Ordering::Release); // SYNC queue-cycle
    }

    /// How many commands were read.
    #[inline(always)]
    pub fn commands(&self) -> u64 {
        self.head.books.commands.load(Ordering::Relaxed)
    }

    /// One more command was read. Under the lease.
    #[inline(always)]
    pub fn count_command(&self) {
        self.head.books.commands.store(self.commands() + 1, Ordering::Relaxed);
    }

    /// A command ended badly. Under the lease.
    pub fn count_failure(&self, poison: [u64; 3]) {
        let failed = self.head.books.failed.load(Ordering::Relaxed);
        if failed == 0 {
            for (into, from) in self.head.books.failure.iter().zip(poison) {
                into.store(from, Ordering::Relaxed);
            }
        }
        self.head.books.failed.store(failed + 1, Ordering::Release); // SYNC queue-failure
    }

    /// How many commands ended badly, and how the first one did.
    pub fn failures(&self) -> (u64, [u64; 3]) {
        let failed = self.head.books.failed.load(Ordering::Acquire); // SYNC queue-failure
        (failed, std::array::from_fn(|word| self.head.books.failure[word].load(Ordering::Relaxed)))
    }

    /// How many commands wait for the queue's own rank.
    #[inline(always)]
    pub fn for_owner(&self) -> u32 {
        self.head.books.for_owner.load(Ordering::Relaxed)
    }

    /// How many wait for other ranks, that neither have the queue nor hold its lease.
    #[inline(always)]
    pub fn for_others(&self) -> u32 {
        self.head.books.for_others.load(Ordering::Relaxed)
    }

    /// How many calls wait until there is room where they are for, which the queue's own rank asks now and then.
    #[inline(always)]
    pub fn for_room(&self) -> u32 {
        self.head.books.for_room.load(Ordering::Relaxed)
    }

    /// So many wait now. Under the lease.
    pub fn set_waiting(&self, waiting: Waiting) {
        let books = &self.head.books;
        books.for_owner.store(waiting.for_owner, Ordering::Relaxed);
        books.for_others.store(waiting.for_others, Ordering::Relaxed);
        books.for_room.store(waiting.for_room, Ordering::Relaxed);
    }
}
