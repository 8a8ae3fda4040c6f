//! Rings: memory of the job's, small enough to stay in cache, through which messages between memories that only
//! their owners reach go a chunk at a time, so that both processors copy at once.
//!
//! A ring lies at the sender. The sender copies a chunk in and tells the receiver how many there are; the receiver
//! copies it out and tells the sender how many it has taken. A message has the ring to itself from its first chunk
//! until its last was taken; its sender need not wait for that.
//!
//! Messages use a ring one behind the other, from where the last one ended. A ring that is larger than the second-level
//! cache is emptied into the third level before it comes round, which both processors share: written anew from there,
//! lines cost a third of what they cost out of the peer's own cache (docs/design/messages.md has the figures). So a
//! rank that stages much gets wide rings; one that stages little does without their memory.

use super::directory;
use super::pace::Pace;
use super::page::{Block, Page};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Launched, Machine};
use tasuki_core::segment::GlobalAddress;

/// Bytes of a ring.
const RING: u64 = 256 << 10;
/// Bytes of a wide one.
const WIDE: u64 = 2 << 20;
/// Wide rings are made once so many bytes were staged.
const WIDE_AFTER: u64 = 4 << 20;
/// Bytes of a chunk of a message of at most twice as many.
const HALF: u64 = 2 << 10;
/// Bytes of the smallest and of the largest chunk of any other. From 4 KiB on the C library copies by the one
/// instruction that fetches no line which it writes whole.
const CHUNK_MIN: u64 = 4 << 10;
const CHUNK_MAX: u64 = 32 << 10;
/// Rings of a rank, of either size: so many messages go through rings at a time, the others wait.
const RINGS_MAX: usize = 4;
/// Where a ring begins in a page of memory. Buffers of programs begin near the beginning of one; copies between places
/// that lie alike are slow (`os/copy.rs` in core).
const COLOUR: u64 = 2048;
/// How often to ask for what nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How a message of some length goes through a ring. Both sides know it by the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    len: u64,
    chunk: u64,
}

impl Cut {
    /// Of a message of `len` bytes: a quarter of it, so that the receiver begins early; not so small that telling costs
    /// more than copying, nor so large that the ring holds few.
    pub(crate) fn of(len: u64) -> Cut {
        let quarter = (len / 4).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX);
        Cut { len, chunk: if len <= 2 * HALF { HALF } else { quarter } }
    }

    /// Bytes of the message.
    pub(crate) fn len(self) -> u64 {
        self.len
    }

    /// How many chunks it has.
    pub(crate) fn chunks(self) -> u32 {
        self.len.div_ceil(self.chunk) as u32
    }

    /// The bytes of a chunk: where they begin in the message, and how many there are.
    pub(crate) fn part(self, chunk: u32) -> (u64, u64) {
        let start = u64::from(chunk) * self.chunk;
        (start, self.chunk.min(self.len.saturating_sub(start)))
    }
}

/// Where in which ring a message lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Berth {
    ring: GlobalAddress,
    bytes: u64,
    /// Where its first chunk lies, counted from the ring's beginning.
    start: u64,
    pub(crate) cut: Cut,
}

impl Berth {
    /// How many of the message's chunks the ring holds.
    pub(crate) fn room(self) -> u32 {
        (self.bytes / self.cut.chunk) as u32
    }

    /// Where a chunk lies.
    pub(crate) fn place(self, chunk: u32) -> GlobalAddress {
        self.ring.add((self.start + u64::from(chunk) * self.cut.chunk) % self.bytes)
    }

    /// Where the message ends, for the next one.
    fn end(self) -> u64 {
        (self.start + u64::from(self.cut.chunks()) * self.cut.chunk) % self.bytes
    }

    /// As words for the receiver: the ring, the message's length, ring's size and start.
    pub(crate) fn words(self) -> [u64; 3] {
        [self.ring.bits(), self.cut.len, self.bytes << 32 | self.start]
    }

    /// What the words say. Words that a sender never writes give a berth that ends no division by zero.
    pub(crate) fn of([ring, len, rest]: [u64; 3]) -> Berth {
        let (bytes, start) = ((rest >> 32).max(CHUNK_MAX), rest & u64::from(u32::MAX));
        Berth { ring: GlobalAddress::from_bits(ring), bytes, start, cut: Cut::of(len) }
    }
}

/// A ring, taken by one message at a time.
#[derive(Debug)]
struct Ring {
    at: GlobalAddress,
    bytes: u64,
    /// Where the last message ended.
    next: AtomicU64,
    is_held: AtomicBool,
    /// The message that lies in it, whose send is over.
    untaken: Mutex<Option<Arc<Untaken>>>,
}

/// A ring that a message has to itself until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Ring>);

/// A message that lies in a ring, and of which its sender's program knows that it was sent.
#[derive(Debug)]
pub(crate) struct Untaken {
    page: Arc<Page>,
    /// The page's then. This rank may let go of the page, and the message can be taken as long as the peer has not.
    generation: u32,
    block: Block,
    number: u32,
    chunks: u32,
    /// The operation that asks whether anybody can take it.
    asked: Mutex<Option<u64>>,
}

impl Untaken {
    pub(crate) fn new(page: &Arc<Page>, block: Block, number: u32, chunks: u32) -> Untaken {
        let generation = page.holding().generation();
        Untaken { page: page.clone(), generation, block, number, chunks, asked: Mutex::default() }
    }

    /// Whether it was taken, as far as the page's lines tell; or nobody can take it any more, since both ranks have let
    /// go. Then the lines may be another pair's by now, and whatever they say is right.
    fn is_taken(&self) -> bool {
        self.page.holding().generation() != self.generation
            || self.page.taken(self.block, self.number, self.chunks) == self.chunks
    }

    /// Whether nobody waits for it any more: it was taken, or nobody can take it. For the one thread that looks after
    /// the ring. Of a page that this rank has let go it asks the page's entry, and has the answer some calls later:
    /// calls of the fabric that wait are impossible here.
    fn is_over(&self, machine: &Machine) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match *asked {
            None if self.is_taken() => return true,
            None if self.page.holding().is_open() => return false,
            None => match directory::ask_generation(machine, self.page.peer, self.page.holding().entry()) {
                Ok(Launched::UnderWay(operation)) => {
                    *asked = Some(operation);
                    return false;
                }
                Ok(Launched::Done(word)) => Ok(word),
                Ok(Launched::Later) | Err(_) => return false,
            },
            Some(operation) => match machine.landed(operation) {
                None => return false,
                Some(answer) => answer,
            },
        };
        *asked = None;
        self.is_taken() || answer.is_ok_and(|word| directory::read_generation(word) != self.generation)
    }

    /// Whether an operation asks about it, or is about to.
    fn is_asked_about(&self) -> bool {
        self.asked.try_lock().map_or(true, |asked| asked.is_some())
    }
}

impl Event for Untaken {
    fn happened(&self) -> bool {
        self.is_taken()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        Some((self.page.peer, Stage::Leaving)) // its program receives nothing any more
    }
}

impl Held {
    /// Where a message of `len` bytes lies in it: behind the last one.
    pub(crate) fn berth(&self, len: u64) -> Berth {
        let (cut, bytes) = (Cut::of(len), self.0.bytes);
        let start = self.0.next.load(Ordering::Relaxed).next_multiple_of(cut.chunk) % bytes;
        let berth = Berth { ring: self.0.at, bytes, start, cut };
        self.0.next.store(berth.end(), Ordering::Relaxed);
        berth
    }

    /// The send is over; the ring is for others when that message was taken.
    pub(crate) fn leave(&self, message: Untaken) {
        *self.0.untaken() = Some(Arc::new(message));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.is_held.store(false, Ordering::Release);
    }
}

impl Ring {
    /// Takes it, if nobody has it and nothing lies in it. No lock is held while the receiver's word is looked at.
    fn hold(self: Arc<Ring>, machine: &Machine) -> Option<Held> {
        if self.is_held.swap(true, Ordering::Acquire) {
            return None;
        }
        let held = Held(self);
        let left = held.0.untaken().clone();
        if left.is_some_and(|message| !message.is_over(machine)) {
            return None;
        }
        *held.0.untaken() = None;
        Some(held)
    }

    fn untaken(&self) -> MutexGuard<'_, Option<Arc<Untaken>>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rings of a rank, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    narrow: Mutex<Vec<Arc<Ring>>>,
    wide: Mutex<Vec<Arc<Ring>>>,
    /// Bytes staged so far.
    staged: AtomicU64,
    /// What copies into them take.
    pub(crate) pace: Pace,
}

impl Rings {
    /// A ring that nobody uses, for a message of `len` bytes; none if all are in use.
    pub(crate) fn take(&self, machine: &Machine, len: u64) -> Result<Option<Held>, Cause> {
        let (of, bytes) = if self.staged.load(Ordering::Relaxed) < WIDE_AFTER {
            (&self.narrow, RING)
        } else {
            (&self.wide, WIDE)
        };
        let held = take(of, bytes, machine)?;
        if held.is_some() {
            self.staged.fetch_add(len, Ordering::Relaxed);
        }
        Ok(held)
    }

    /// Waits until nothing lies in them, or nobody will take it. For a rank that leaves.
    pub(crate) fn drain(&self, machine: &Machine) {
        for ring in self.all() {
            let Some(message) = ring.untaken().clone() else { continue };
            let (peer, slot) = (message.page.peer, message.page.slot(message.block));
            let call = || format!("leave(): a message to rank {peer}, slot {slot}, is being taken");
            while ring.clone().hold(machine).is_none() {
                // Nobody tells when the peer lets go of a page that this rank has let go.
                let limit = (!message.page.holding().is_open()).then_some(LOOK_AGAIN);
                match machine.wait(&Condition::Event(message.clone()), limit, &call) {
                    Err(error) if error.is_timeout() => {}
                    _ => break, // it was taken; or the peer, or the job, has ended, and then nobody takes it
                }
            }
        }
    }

    /// Forgets messages on these pages that were taken: before the pages' lines may become another pair's.
    pub(crate) fn forget_taken(&self, pages: &[Arc<Page>]) {
        for ring in self.all() {
            let Some(message) = ring.untaken().clone() else { continue };
            let is_concerned = pages.iter().any(|page| Arc::ptr_eq(page, &message.page));
            if is_concerned && message.is_taken() && !message.is_asked_about() {
                let mut left = ring.untaken();
                if left.as_ref().is_some_and(|left| Arc::ptr_eq(left, &message)) {
                    *left = None;
                }
            }
        }
    }

    fn all(&self) -> Vec<Arc<Ring>> {
        [&self.narrow, &self.wide].map(|rings| lock(rings).clone()).concat()
    }
}

/// One of the rings of a size that nobody uses, or a new one.
fn take(rings: &Mutex<Vec<Arc<Ring>>>, bytes: u64, machine: &Machine) -> Result<Option<Held>, Cause> {
    for index in 0..RINGS_MAX {
        let Some(ring) = lock(rings).get(index).cloned() else { return make(rings, bytes, machine) };
        if let Some(held) = ring.hold(machine) {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

fn make(rings: &Mutex<Vec<Arc<Ring>>>, bytes: u64, machine: &Machine) -> Result<Option<Held>, Cause> {
    let mut all = lock(rings);
    if all.len() == RINGS_MAX {
        return Ok(None);
    }
    let offset = machine.registry().allocate_local(COLOUR + bytes);
    let offset = offset.map_err(|error: Error| error.cause().clone())?;
    let at = GlobalAddress::new(machine.rank(), offset + COLOUR);
    let (is_held, next) = (AtomicBool::new(true), AtomicU64::new(0));
    let ring = Arc::new(Ring { at, bytes, next, is_held, untaken: Mutex::default() });
    all.push(ring.clone());
    Ok(Some(Held(ring)))
}

fn lock(rings: &Mutex<Vec<Arc<Ring>>>) -> MutexGuard<'_, Vec<Arc<Ring>>> {
    rings.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_chunk() {
        for len in [49, 4095, 4096, 4097, 16 << 10, 65_537, 1 << 20, (1 << 20) + 1] {
            let cut = Cut::of(len);
            let mut next = 0;
            for chunk in 0..cut.chunks() {
                let (start, bytes) = cut.part(chunk);
                assert!(start == next && bytes > 0 && bytes <= cut.chunk, "{len}: {chunk}");
                next += bytes;
            }
            assert_eq!(next, len);
            assert!(RING / cut.chunk >= 8);
        }
    }

    #[test]
    fn chunks_stay_inside_the_ring_and_apart() {
        let at = GlobalAddress::new(Rank(0), 1 << 20);
        let (is_held, next) = (AtomicBool::new(true), AtomicU64::new(0));
        let ring = Held(Arc::new(Ring { at, bytes: RING, next, is_held, untaken: Mutex::default() }));
        for len in [49, 5000, 100, 1 << 20, 70_000, 4096, 4096].into_iter().cycle().take(200) {
            let berth = ring.berth(len);
            let places: Vec<u64> = (0..berth.cut.chunks()).map(|chunk| berth.place(chunk).offset()).collect();
            assert!(places.iter().all(|place| place - at.offset() + berth.cut.chunk <= RING));
            for near in places.windows(berth.room() as usize) {
                let mut near = near.to_vec();
                near.sort_unstable();
                assert!(near.windows(2).all(|pair| pair[1] - pair[0] >= berth.cut.chunk));
            }
            let told = berth.words();
            assert_eq!(Berth::of(told), berth);
        }
        assert!(Berth::of([u64::MAX; 3]).room() > 0 && Berth::of([0; 3]).room() > 0);
    }
}
