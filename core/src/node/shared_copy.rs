//! Large copies that several ranks of a node share: each takes a chunk at a time.
//!
//! ```text
//! FREE --open--> chunks are claimed, copied, told as done --the last one done--> FREE
//! ```
//!
//! Whoever opens a slot writes what is to be copied, and then a word of generation and next chunk (`SYNC bulk-open`).
//! Who wants a chunk reads the word, then the description, and then moves the word on by a compare-and-swap: if that
//! succeeds the description was that of the same copy, because the slot is not used again before all chunks are done,
//! this one, too (`SYNC bulk-done`). A chunk that was claimed is never taken by another: the first might write late.
//!
//! Chunks are taken from both ends, by each rank always from the same: of a copy that is done again each processor then
//! has its part at hand.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Copies that may be shared at a time; a model needs no more than one.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 8 };
/// Most chunks of a copy.
pub const CHUNKS_MAX: u32 = ENDS - 2;
/// Words that say what a copy is about, and whose it is.
pub const WORDS: usize = 6;

/// One copy that is shared.
#[repr(C, align(128))]
#[derive(Debug)]
struct CopySlot {
    /// 0 free; 1 in use.
    state: AtomicU32,
    /// Chunks of the copy.
    total: AtomicU32,
    /// Chunks that are done.
    done: AtomicU32,
    /// Chunks that failed.
    failed: AtomicU32,
    /// Generation above; below, chunks that were taken from the back, and one more than those from the front, or 0
    /// while nothing is offered: 16 bits each.
    claim: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The copies of a node.
#[repr(C)]
#[derive(Debug)]
pub struct SharedCopies {
    /// How many are open: a hint.
    open: AtomicU32,
    slots: [CopySlot; SLOTS],
}

/// From where a rank takes chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyEnd {
    /// The first that is left.
    Front,
    /// The last.
    Back,
}

/// Values that each half of a claim has.
const ENDS: u32 = 1 << 16;

/// A chunk that was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedChunk {
    slot: usize,
    /// The how many-th of its copy.
    pub index: u32,
    /// What the copy is about.
    pub words: [u64; WORDS],
}

/// A copy of which the last chunk has just been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedCopy {
    /// What it was about.
    pub words: [u64; WORDS],
    /// Whether all chunks went well.
    pub is_good: bool,
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
    /// Whether there may be a chunk to claim.
    #[inline(always)]
    pub fn has_any(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }

    /// Offers a copy of so many chunks, at most [`CHUNKS_MAX`]. False: all slots are in use.
    pub fn open(&self, words: [u64; WORDS], chunks: u32) -> bool {
        debug_assert!(chunks <= CHUNKS_MAX);
        let take = |slot: &&CopySlot| {
            slot.state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() // SYNC bulk-done
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
        let order = relaxed_if_planted("shared_copy_open_relaxed", Ordering::Release); // SYNC bulk-open
        slot.claim.store(generation << 32 | 1, order);
        true
    }

    /// Claims a chunk of any copy.
    pub fn claim(&self, end: CopyEnd) -> Option<SharedChunk> {
        (0..SLOTS).find_map(|slot| self.claim_of(slot, end))
    }

    fn claim_of(&self, number: usize, end: CopyEnd) -> Option<SharedChunk> {
        let slot = &self.slots[number];
        let mut word = slot.claim.load(Ordering::Acquire); // SYNC bulk-open
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

    /// A chunk has been copied, or failed to be. If it was the last of its copy, what that was about; the slot is free
    /// then.
    pub fn done(&self, chunk: &SharedChunk, is_good: bool) -> Option<CompletedCopy> {
        let slot = &self.slots[chunk.slot];
        let total = slot.total.load(Ordering::Relaxed);
        if !is_good {
            slot.failed.fetch_add(1, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("shared_copy_done_relaxed", Ordering::AcqRel); // SYNC bulk-done
        if slot.done.fetch_add(1, order) + 1 != total {
            return None;
        }
        let complete =
            CompletedCopy { words: chunk.words, is_good: slot.failed.load(Ordering::Relaxed) == 0 };
        let word = slot.claim.load(Ordering::Relaxed);
        slot.claim.store(word >> 32 << 32, Ordering::Relaxed);
        slot.state.store(0, Ordering::Release); // SYNC bulk-done
        self.open.fetch_sub(1, Ordering::Release);
        Some(complete)
    }
}
