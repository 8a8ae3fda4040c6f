//! Large copies that several ranks of a node share: each rank claims and copies one chunk at a time.
//!
//! ```text
//! FREE --open--> chunks are claimed, copied and reported as done --the last chunk is done--> FREE
//! ```
//!
//! The rank that opens a slot writes the description of the copy, and then a claim word with a
//! generation and the next chunks (`SYNC copy-open`). A rank that wants a chunk reads the claim
//! word, then the description, and then advances the word by a compare-and-swap. If that succeeds,
//! the description belongs to the same copy: the slot is not reused before all chunks are done,
//! including this one (`SYNC copy-done`). No rank takes over a chunk that another one has claimed:
//! the first might write late.
//!
//! Ranks claim chunks from both ends, each rank always from the same end. So if a copy is repeated,
//! each processor has its part in its caches.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// The most copies that are shared at a time. A model needs only one.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 8 };
/// The most chunks of a copy.
pub const CHUNKS_MAX: u32 = ENDS - 2;
/// Words of the description of a copy.
pub const WORDS: usize = 6;

/// The slot of one shared copy.
#[repr(C, align(128))]
#[derive(Debug)]
struct CopySlot {
    /// 0: the slot is free; 1: it is in use.
    state: AtomicU32,
    /// Chunks of the copy.
    total: AtomicU32,
    /// Chunks that are done.
    done: AtomicU32,
    /// Chunks that failed.
    failed: AtomicU32,
    /// Bits 32-63: generation. Bits 16-31: chunks claimed from the back. Bits 0-15: 1 + chunks
    /// claimed from the front, or 0 if no copy is offered.
    claim: AtomicU64,
    /// The description of the copy.
    words: [AtomicU64; WORDS],
}

/// The shared copies of a node.
#[repr(C)]
#[derive(Debug)]
pub struct SharedCopies {
    /// The number of open copies. A hint.
    open: AtomicU32,
    slots: [CopySlot; SLOTS],
}

/// The end of a copy from which a rank claims chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyEnd {
    /// The rank claims the first unclaimed chunk.
    Front,
    /// The rank claims the last unclaimed chunk.
    Back,
}

/// The number of values of each 16-bit count in a claim word.
const ENDS: u32 = 1 << 16;

/// A claimed chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedChunk {
    slot: usize,
    /// The chunk's index in its copy.
    pub index: u32,
    /// The description of the copy.
    pub words: [u64; WORDS],
}

/// A copy whose last chunk has just been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedCopy {
    /// The description of the copy.
    pub words: [u64; WORDS],
    /// True if all chunks were copied.
    pub is_ok: bool,
}

impl Default for CopySlot {
    fn default() -> CopySlot {
        let word = || AtomicU32::new(0);
        CopySlot {
            state: word(),
            total: word(),
            done: word(),
            failed: word(),
            claim: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Default for SharedCopies {
    fn default() -> SharedCopies {
        SharedCopies { open: AtomicU32::new(0), slots: std::array::from_fn(|_| CopySlot::default()) }
    }
}

impl CopySlot {
    fn words(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }
}

impl SharedCopies {
    /// Returns true if there may be a chunk to claim.
    #[inline(always)]
    pub fn has_any(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }

    /// Offers a copy of `chunks` chunks, at most [`CHUNKS_MAX`]. Returns false if all slots are in use.
    pub fn open(&self, words: [u64; WORDS], chunks: u32) -> bool {
        debug_assert!(chunks <= CHUNKS_MAX);
        let take = |slot: &&CopySlot| {
            slot.state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() // SYNC copy-done
        };
        let Some(slot) = self.slots.iter().find(take) else { return false };
        for (into, from) in slot.words.iter().zip(words) {
            into.store(from, Ordering::Relaxed);
        }
        slot.total.store(chunks, Ordering::Relaxed);
        slot.done.store(0, Ordering::Relaxed);
        slot.failed.store(0, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        let generation = (slot.claim.load(Ordering::Relaxed) >> 32).wrapping_add(1);
        let order = relaxed_if_planted("shared_copy_open_relaxed", Ordering::Release); // SYNC copy-open
        slot.claim.store(generation << 32 | 1, order);
        true
    }

    /// Claims a chunk of any copy.
    pub fn claim(&self, end: CopyEnd) -> Option<SharedChunk> {
        (0..SLOTS).find_map(|slot| self.claim_of(slot, end))
    }

    fn claim_of(&self, number: usize, end: CopyEnd) -> Option<SharedChunk> {
        let slot = &self.slots[number];
        let mut word = slot.claim.load(Ordering::Acquire); // SYNC copy-open
        loop {
            let (words, total) = (slot.words(), slot.total.load(Ordering::Relaxed));
            let (front, back) = ((word as u32 % ENDS).checked_sub(1)?, word as u32 / ENDS);
            let begun = if planted("shared_copy_ends_cross") { front } else { front + back };
            let left = total.saturating_sub(begun);
            let (index, next) = match end {
                _ if left == 0 => return None,
                CopyEnd::Front => (front, word + 1),
                CopyEnd::Back => (front + left - 1, word + u64::from(ENDS)),
            };
            let claimed = if planted("shared_copy_claim_by_store") {
                slot.claim.store(next, Ordering::Release);
                Ok(word)
            } else {
                slot.claim.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire)
            };
            match claimed {
                Ok(_) => return Some(SharedChunk { slot: number, index, words }),
                Err(now) => word = now,
            }
        }
    }

    /// Reports that a chunk has been copied (`is_ok`) or has failed. If it was the last chunk of its copy, frees the
    /// slot and returns the copy.
    pub fn done(&self, chunk: &SharedChunk, is_ok: bool) -> Option<CompletedCopy> {
        let slot = &self.slots[chunk.slot];
        let total = slot.total.load(Ordering::Relaxed);
        if !is_ok {
            slot.failed.fetch_add(1, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("shared_copy_done_relaxed", Ordering::AcqRel); // SYNC copy-done
        if slot.done.fetch_add(1, order) + 1 != total {
            return None;
        }
        let complete = CompletedCopy { words: chunk.words, is_ok: slot.failed.load(Ordering::Relaxed) == 0 };
        let word = slot.claim.load(Ordering::Relaxed);
        slot.claim.store(word >> 32 << 32, Ordering::Relaxed);
        slot.state.store(0, Ordering::Release); // SYNC copy-done
        self.open.fetch_sub(1, Ordering::Release);
        Some(complete)
    }
}
