//! Rings: memory of the job's, small enough to stay in cache, through which messages between memories that only
//! their owners reach go a chunk at a time, so that both processors copy at once.
//!
//! A ring lies at the sender. The sender copies a chunk in and tells the receiver how many there are; the receiver
//! copies it out and tells the sender how many it has taken. A message has the ring to itself from its first chunk until
//! its last was taken; its sender need not wait for that.

use super::page::{Block, Page};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Error, Rank};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};
use tasuki_core::segment::GlobalAddress;

/// Bytes of a ring.
const RING: u64 = 256 << 10;
/// Bytes of the smallest and of the largest chunk.
const CHUNK_MIN: u64 = 4 << 10;
const CHUNK_MAX: u64 = 16 << 10;
/// Rings of a rank: so many messages go through rings at a time, the others wait.
const RINGS_MAX: usize = 4;
/// Where a ring begins in a page of memory. Buffers of programs begin near the beginning of one; copies between places
/// that lie alike are slow (`os/copy.rs` in core).
const COLOUR: u64 = 2048;

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
        Cut { len, chunk: (len / 4).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX) }
    }

    /// How many chunks it has.
    pub(crate) fn chunks(self) -> u32 {
        self.len.div_ceil(self.chunk) as u32
    }

    /// How many of its chunks the ring holds.
    pub(crate) fn room(self) -> u32 {
        (RING / self.chunk) as u32
    }

    /// The bytes of a chunk: where they begin in the message, and how many there are.
    pub(crate) fn part(self, chunk: u32) -> (u64, u64) {
        let start = u64::from(chunk) * self.chunk;
        (start, self.chunk.min(self.len.saturating_sub(start)))
    }

    /// Where a chunk lies in a ring.
    pub(crate) fn place(self, ring: GlobalAddress, chunk: u32) -> GlobalAddress {
        ring.add(u64::from(chunk % self.room()) * self.chunk)
    }
}

/// A ring, taken by one message at a time.
#[derive(Debug)]
struct Ring {
    at: GlobalAddress,
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
    pub(crate) page: Arc<Page>,
    pub(crate) block: Block,
    pub(crate) number: u32,
    pub(crate) chunks: u32,
}

impl Untaken {
    fn is_taken(&self) -> bool {
        self.page.taken(self.block, self.number, self.chunks) == self.chunks
    }
}

impl Event for Untaken {
    fn happened(&self) -> bool {
        self.is_taken()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        Some((self.page.peer, Stage::Left))
    }
}

impl Held {
    /// Where the ring begins.
    pub(crate) fn at(&self) -> GlobalAddress {
        self.0.at
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
    fn hold(self: Arc<Ring>) -> Option<Held> {
        if self.is_held.swap(true, Ordering::Acquire) {
            return None;
        }
        let held = Held(self);
        let left = held.0.untaken().clone();
        if left.is_some_and(|message| !message.is_taken()) {
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
    all: Mutex<Vec<Arc<Ring>>>,
}

impl Rings {
    /// A ring that nobody uses; none if all are in use.
    pub(crate) fn take(&self, machine: &Machine) -> Result<Option<Held>, Cause> {
        for index in 0..RINGS_MAX {
            let Some(ring) = self.all().get(index).cloned() else { return self.make(machine) };
            if let Some(held) = ring.hold() {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    fn make(&self, machine: &Machine) -> Result<Option<Held>, Cause> {
        let mut all = self.all();
        if all.len() == RINGS_MAX {
            return Ok(None);
        }
        let offset =
            machine.registry().allocate_local(COLOUR + RING).map_err(|error: Error| error.cause().clone())?;
        let at = GlobalAddress::new(machine.rank(), offset + COLOUR);
        let ring = Arc::new(Ring { at, is_held: AtomicBool::new(true), untaken: Mutex::default() });
        all.push(ring.clone());
        Ok(Some(Held(ring)))
    }

    /// Waits until nothing lies in them, or nobody will take it. For a rank that leaves.
    pub(crate) fn drain(&self, machine: &Machine) {
        let left: Vec<Arc<Untaken>> = self.all().iter().filter_map(|ring| ring.untaken().clone()).collect();
        for message in left {
            let (peer, slot) = (message.page.peer, message.page.slot(message.block));
            let call = || format!("leave(): a message to rank {peer}, slot {slot}, is being taken");
            // Fails if the peer, or the job, has ended, and then nobody takes it.
            let _ = machine.wait(&Condition::Event(message), None, &call);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Ring>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            assert!(cut.room() >= 8);
        }
    }

    #[test]
    fn chunks_stay_inside_the_ring() {
        let ring = GlobalAddress::new(Rank(0), 1 << 20);
        for len in [49, 5000, 1 << 20] {
            let cut = Cut::of(len);
            for chunk in 0..1000 {
                let at = cut.place(ring, chunk).offset() - ring.offset();
                assert!(at + cut.chunk <= RING);
            }
        }
    }
}
