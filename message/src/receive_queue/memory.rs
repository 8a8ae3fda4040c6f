//! The memory of a receive queue, and how senders find it.
//!
//! | what | where |
//! |---|---|
//! | lines of the buffers | units of the receiver's arena, 128 lines each |
//! | areas of the buffers, and after them a description of the queue | local memory of the receiver |
//! | counters of a share of the buffers | a [table](crate::receive_queue::counters) in the arena of any rank |

use crate::deferred_free::{Deferred, DeferredFree};
use crate::receive_queue::counters::{self, Counters, KEYS_FROM};
use crate::receive_queue::layout::empty_word;
use crate::slot::arena::{self, LINES};
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::sync::Arc;
use tasuki_core::base::sync::{Ordering, RealAtomicU64};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{SlotWord, SlotWrite, Slots};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::SLOT_LINE;

/// Buffers whose lines are in a unit.
pub(crate) const UNIT_BUFFERS: u64 = 128;
const _: () = assert!(UNIT_BUFFERS <= LINES as u64);

/// Largest number of buffers of a queue.
const SLOTS_MAX: u64 = 1 << 16;
/// Largest number of shares.
pub(crate) const SHARES_MAX: usize = 64;

/// Names a receive queue, so that senders find it. Plain data, which may be sent to any rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct ReceiveQueueAddress {
    description: u64,
    key: u64,
}

impl ReceiveQueueAddress {
    /// The rank that receives.
    pub fn rank(&self) -> Rank {
        GlobalAddress::from_bits(self.description).rank()
    }
}

impl fmt::Display for ReceiveQueueAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receive queue of rank {}", self.rank())
    }
}

/// How a receive queue is made.
#[derive(Clone, Debug)]
pub struct ReceiveQueueOptions {
    /// Number of messages that it holds; rounded up to a power of two in each share.
    pub slots: usize,
    /// Bytes of the longest message that a buffer holds; longer ones stay at their senders until they are received.
    pub bytes_per_slot: usize,
    /// The ranks that have the counters of a share each.
    pub counters: Vec<Rank>,
    /// The number of the first ticket, for tests of numbers that wrap.
    pub first_ticket: u64,
}

/// A part of the buffers with counters of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueShare {
    pub(crate) counters: GlobalAddress,
    /// Its first buffer.
    pub(crate) first: u64,
    /// The number of its buffers, a power of two.
    pub(crate) slots: u64,
}

impl QueueShare {
    /// Returns the buffer of a ticket.
    #[inline(always)]
    pub(crate) fn buffer(&self, ticket: u64) -> u64 {
        self.first + (ticket & (self.slots - 1))
    }

    pub(crate) fn counters<'m>(&self, worker: &'m Worker) -> Counters<'m> {
        Counters { worker, at: self.counters }
    }
}

/// Where a queue is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Description {
    pub(crate) key: u64,
    pub(crate) bytes_per_slot: u64,
    pub(crate) area: GlobalAddress,
    pub(crate) shares: Vec<QueueShare>,
    /// Where the lines of the buffers are: 128 at each place.
    pub(crate) lines: Vec<GlobalAddress>,
}

/// Words of a description before its lists.
const HEAD_WORDS: usize = 5;

impl Description {
    fn words(&self) -> Vec<u64> {
        let counts = [self.shares.len() as u64, self.lines.len() as u64];
        let mut words = vec![self.key, self.bytes_per_slot, self.area.bits(), counts[0], counts[1]];
        words.extend(self.shares.iter().flat_map(|share| [share.counters.bits(), share.first, share.slots]));
        words.extend(self.lines.iter().map(|place| place.bits()));
        words
    }

    /// Reads the description of a queue.
    pub(crate) fn read(worker: &Worker, address: ReceiveQueueAddress) -> Result<Description> {
        let receiver = address.rank();
        worker.check_rank(receiver)?;
        let closed = || Error::from(Cause::QueueClosed { peer: receiver });
        let at = GlobalAddress::from_bits(address.description);
        let get = |from: GlobalAddress, words: &mut [u64]| {
            worker.get(from, bytemuck::cast_slice_mut(words)).map_err(|error| match error.cause() {
                Cause::Stale { .. } | Cause::OutOfRange { .. } => closed(),
                _ => error,
            })
        };
        let mut head = [0; HEAD_WORDS];
        get(at, &mut head)?;
        let [key, bytes_per_slot, area, shares, lines] = head;
        let is_sound = key == address.key && shares <= SHARES_MAX as u64 && lines <= SLOTS_MAX / UNIT_BUFFERS;
        if !is_sound {
            return Err(closed());
        }
        let mut lists = vec![0; 3 * shares as usize + lines as usize];
        get(at.add(8 * HEAD_WORDS as u64), &mut lists)?;
        let (shares, lines) = lists.split_at(3 * shares as usize);
        let share = |words: &[u64]| QueueShare {
            counters: GlobalAddress::from_bits(words[0]),
            first: words[1],
            slots: words[2],
        };
        Ok(Description {
            key,
            bytes_per_slot,
            area: GlobalAddress::from_bits(area),
            shares: shares.chunks(3).map(share).collect(),
            lines: lines.iter().map(|&place| GlobalAddress::from_bits(place)).collect(),
        })
    }

    /// Bytes of all buffers: areas and lines.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.shares.iter().map(|share| share.slots * (self.bytes_per_slot + SLOT_LINE)).sum()
    }

    /// Returns the place of a buffer's area.
    pub(crate) fn area_of(&self, buffer: u64) -> GlobalAddress {
        self.area.add(buffer * self.bytes_per_slot)
    }

    /// Opens the lines of the buffers.
    pub(crate) fn open_lines(&self, worker: &Worker) -> Result<QueueLines> {
        let slots = |&place: &GlobalAddress| Slots::new(worker.shared_fabric(), place);
        Ok(QueueLines(self.lines.iter().map(slots).collect::<Result<_, Cause>>()?))
    }
}

/// The lines of all buffers.
#[derive(Debug)]
pub(crate) struct QueueLines(Box<[Slots<LINES>]>);

impl QueueLines {
    #[inline(always)]
    pub(crate) fn of(&self, buffer: u64) -> (&Slots<LINES>, usize) {
        (&self.0[(buffer / UNIT_BUFFERS) as usize], (buffer % UNIT_BUFFERS) as usize)
    }

    /// Reads the main word of a buffer's line.
    #[inline(always)]
    pub(crate) fn main(&self, buffer: u64) -> u64 {
        let (slots, line) = self.of(buffer);
        slots.read(line, SlotWord::Main)
    }
}

/// The memory of a queue, as its receiver has it.
#[derive(Debug)]
pub(crate) struct QueueMemory {
    worker: Arc<Worker>,
    all: Arc<DeferredFree<DroppedQueue>>,
    pub(crate) description: Description,
    pub(crate) address: ReceiveQueueAddress,
    units: Vec<u32>,
    local: u64,
    bytes: u64,
}

/// A dropped queue that senders may have open.
#[derive(Debug)]
pub(crate) struct DroppedQueue {
    pub(super) shares: Vec<QueueShare>,
    pub(super) units: Vec<u32>,
    /// The offset of its local memory; a limit has none.
    pub(super) local: Option<u64>,
    /// Bytes of that memory and of the units.
    pub(super) bytes: u64,
}

impl Deferred for DroppedQueue {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn try_free(&self, worker: &Worker) -> Result<bool> {
        let senders = self.shares.iter().map(|share| share.counters(worker).senders());
        if senders.sum::<Result<u64>>()? != 0 {
            return Ok(false);
        }
        self.shares.iter().try_for_each(|share| share.counters(worker).free())?;
        self.units.iter().try_for_each(|&unit| arena::give_back(worker, worker.rank(), unit))?;
        self.local.map_or(Ok(()), |local| worker.registry().free(local)).map(|()| true)
    }
}

/// Numbers of the queues of this process.
static KEYS: RealAtomicU64 = RealAtomicU64::new(KEYS_FROM);

/// Returns a key that no other queue of the job has.
pub(crate) fn new_key(worker: &Worker) -> u64 {
    KEYS.fetch_add(1, Ordering::Relaxed) << 24 | u64::from(worker.rank().to_word())
}

impl QueueMemory {
    /// Makes the memory of a queue.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        all: &Arc<DeferredFree<DroppedQueue>>,
        options: &ReceiveQueueOptions,
    ) -> Result<QueueMemory> {
        let ReceiveQueueOptions { slots, bytes_per_slot, counters, first_ticket } = options;
        all.sweep(worker)?;
        let shares = counters.len();
        if shares == 0 || shares > SHARES_MAX || *slots < shares || *slots as u64 > SLOTS_MAX {
            let text = format!(
                "a receive queue of {slots} slots with counters on {shares} ranks: it has 1 to {SLOTS_MAX} slots, and \
                 counters on 1 to {SHARES_MAX} ranks, each with a slot at least"
            );
            return Err(Cause::Argument(text).into());
        }
        counters.iter().try_for_each(|&rank| worker.check_rank(rank))?;
        let share_slots = (slots.div_ceil(shares) as u64).next_power_of_two();
        let slots = share_slots * shares as u64;
        let bytes_per_slot =
            bytes_per_slot.checked_next_multiple_of(8).map_or(u64::MAX, |bytes| bytes as u64);
        let units = slots.div_ceil(UNIT_BUFFERS) as usize;
        let description_bytes = 8 * (HEAD_WORDS + 3 * shares + units) as u64;
        let area_bytes =
            bytes_per_slot.checked_mul(slots).and_then(|bytes| bytes.checked_add(description_bytes));
        let too_much = || {
            let text = format!(
                "a receive queue of {slots} slots of {bytes_per_slot} bytes exceeds the address range"
            );
            Error::from(Cause::Argument(text))
        };
        let bytes = area_bytes.ok_or_else(too_much)?;
        let local = worker.registry().allocate_local(bytes)?;
        let key = new_key(worker);
        let area = GlobalAddress::new(worker.rank(), local);
        let description_at = area.add(bytes - description_bytes);
        // From here on, dropping it frees what was taken.
        let mut memory = QueueMemory {
            worker: worker.clone(),
            all: all.clone(),
            description: Description { key, bytes_per_slot, area, shares: Vec::new(), lines: Vec::new() },
            address: ReceiveQueueAddress { description: description_at.bits(), key },
            units: Vec::new(),
            local,
            bytes: bytes + units as u64 * arena::UNIT,
        };
        all.add_bytes(memory.bytes);
        for _ in 0..units {
            let unit = arena::take(worker, worker.rank())?;
            memory.units.push(unit);
            memory.description.lines.push(arena::unit_at(worker.rank(), unit));
        }
        for (number, &home) in counters.iter().enumerate() {
            let counters = counters::take(worker, home, key, *first_ticket)?;
            let first = number as u64 * share_slots;
            memory.description.shares.push(QueueShare { counters, first, slots: share_slots });
        }
        if *first_ticket != 0 {
            memory.begin_at(*first_ticket)?;
        }
        worker.put(description_at, bytemuck::cast_slice(&memory.description.words()))?;
        Ok(memory)
    }

    /// Writes into each line that the ticket before the first one was there.
    fn begin_at(&self, first_ticket: u64) -> Result<()> {
        let lines = self.description.open_lines(&self.worker)?;
        for share in &self.description.shares {
            for ticket in (0..share.slots).map(|ahead| first_ticket.wrapping_add(ahead)) {
                let (slots, line) = lines.of(share.buffer(ticket));
                // Two steps, since no word may grow by more than half of all values at once.
                for value in [empty_word(ticket, share.slots) / 2, empty_word(ticket, share.slots)] {
                    let write = SlotWrite { word: SlotWord::Main, value, payload: &[] };
                    while slots.write(line, write).is_err() {
                        self.worker.relax("receive_queue()")?;
                    }
                    let is_there = || slots.read(line, SlotWord::Main) == value;
                    while !is_there() {
                        self.worker.relax("receive_queue()")?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for QueueMemory {
    fn drop(&mut self) {
        if self.worker.fork_guard().is_forked() {
            return; // the queue belongs to the rank, which goes on
        }
        let dropped = |share: &QueueShare| share.counters(&self.worker).mark_dropped();
        // Fails only if the job is over, which frees everything.
        if self.description.shares.iter().try_for_each(dropped).is_ok() {
            let (shares, units) = (&mut self.description.shares, &mut self.units);
            let queue = DroppedQueue {
                shares: std::mem::take(shares),
                units: std::mem::take(units),
                local: Some(self.local),
                bytes: self.bytes,
            };
            let _ = self.all.free(&self.worker, [queue]);
        }
    }
}
