//! Memory for arguments and results of handlers that are too long for the line of a call or a reply.
//!
//! The rank writes the bytes into a *block* of its job memory. The other rank reads them and gives the block back: it
//! writes the block's first line, as if it replied to a call. Each use of a block has a sequence number, so nobody has
//! to clear that line.
#![allow(unsafe_code)]
//! Unsafe: blocks of job memory of this rank. Only this rank frees them, and only while they are not in use.

use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{Cause, Error, Rank};
use crate::os::copy;
use crate::queue::handler_call::{BlockBytes, ReplyAddress, SEQUENCES};
use crate::queue::ring::RingLine;
use crate::segment::{GlobalAddress, Registry};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a short block, with its first line: the unit in which job memory is allocated.
const BLOCK: u64 = 64 * 1024;
/// Short blocks that are allocated together.
const BLOCKS_AT_ONCE: u64 = 16;
/// Most bytes of blocks that hold arguments at a time; a longer argument waits until there is no other. A rank whose
/// callers are quicker than the handlers would run out of memory otherwise.
pub(super) const ARGUMENTS_MAX: u64 = 16 * 1024 * 1024;
/// Most bytes of long blocks that are kept for later calls.
const KEPT_MAX: u64 = 16 * 1024 * 1024;
/// While there are more, each of so many looks of the rank for calls looks for blocks that were given back.
const LOOKED_EVERY: u64 = 64;

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// An argument of a call outside of handlers, which can wait for room.
    Argument,
    /// An argument or a result of a handler, which cannot wait. The callers bound their number: each has a call, and
    /// a line for its reply.
    ByHandler,
}

/// The blocks of a rank.
#[derive(Debug)]
pub(super) struct BlockPool {
    rank: Rank,
    state: Mutex<PoolState>,
    /// Number of looks for calls while there are more long blocks than may be kept, beginning with 1; 0: there are not.
    looks_beyond_limit: AtomicU64,
}

#[derive(Debug, Default)]
struct PoolState {
    blocks: Vec<Block>,
    /// Bytes of the blocks that are used for [`Purpose::Argument`].
    arguments: u64,
}

/// A block of job memory.
#[derive(Debug)]
struct Block {
    offset: u64,
    place: NonNull<u8>,
    bytes: u64,
    /// The sequence number of the current or last use.
    sequence: u64,
    used_for: Option<Purpose>,
}

// SAFETY: the pointer is to job memory that stays mapped while the worker lives, and that is only accessed under the
// lock of the state.
unsafe impl Send for Block {}

impl Block {
    fn is_long(&self) -> bool {
        self.bytes > BLOCK
    }

    fn has_returned(&self) -> bool {
        // SAFETY: a block begins with a line, which is made of atomics; the memory is aligned to 64 KiB, was zero when
        // it was allocated, and is freed only by `PoolState::free_kept`, which removes the block.
        unsafe { self.place.cast::<RingLine>().as_ref() }.holds(self.sequence)
    }
}

impl BlockPool {
    pub(super) fn new(rank: Rank) -> BlockPool {
        BlockPool { rank, state: Mutex::default(), looks_beyond_limit: AtomicU64::new(0) }
    }

    /// Writes `bytes` into a block, for another rank to read. `None`: too many arguments are in blocks at the moment.
    pub(super) fn fill(
        &self,
        purpose: Purpose,
        bytes: &[u8],
        registry: &Registry,
    ) -> Result<Option<BlockBytes>, Cause> {
        let (len, needed) = (bytes.len() as u64, bytes.len() as u64 + BlockBytes::HEADER);
        let mut state = self.state();
        let exceeds = |state: &PoolState| {
            purpose == Purpose::Argument && state.arguments > 0 && state.arguments + needed > ARGUMENTS_MAX
        };
        let mut found = state.smallest_free(needed);
        if found.is_none() || exceeds(&state) {
            state.take_back_returned();
            found = state.smallest_free(needed);
        }
        if exceeds(&state) {
            return Ok(None);
        }
        let at = match found {
            Some(at) => at,
            None => {
                let at = state.allocate(self.rank, needed, registry)?;
                if state.long_bytes() > KEPT_MAX {
                    self.looks_beyond_limit.fetch_max(1, Ordering::Relaxed);
                }
                at
            }
        };
        let block = &mut state.blocks[at];
        block.sequence = (block.sequence + 1) % SEQUENCES;
        block.used_for = Some(purpose);
        let header = ReplyAddress::new(GlobalAddress::new(self.rank, block.offset), block.sequence);
        let (place, held) = (block.place.as_ptr().wrapping_add(BlockBytes::HEADER as usize), block.bytes);
        if purpose == Purpose::Argument {
            state.arguments += held;
        }
        drop(state);
        // SAFETY: the block has `needed` bytes, so there is room behind its first line. It was free and is in use from
        // here on, so neither a rank nor another thread accesses it, and it is not freed; `bytes` is borrowed.
        unsafe { copy::copy(bytes.as_ptr(), place, bytes.len()) };
        Ok(Some(BlockBytes { header, len }))
    }

    /// Takes back a block that no other rank has heard of.
    pub(super) fn take_back(&self, bytes: BlockBytes) {
        let mut state = self.state();
        let offset = bytes.header.line().offset();
        if let Some(at) = state.blocks.iter().position(|block| block.offset == offset) {
            // Nobody writes the block's line for this use. If its number stayed used, further such uses would come
            // round to the number of the last use that was given back, and a block in use would look returned.
            let block = &mut state.blocks[at];
            block.sequence = (block.sequence + SEQUENCES - 1) % SEQUENCES;
            state.end_use(at);
        }
    }

    /// Frees long blocks that were given back and are more than may be kept. Called whenever the rank looks for calls:
    /// whoever has read a result wakes the rank, but does not call it.
    #[inline]
    pub(super) fn trim_now_and_then(&self, registry: &Registry) {
        let looks = self.looks_beyond_limit.load(Ordering::Relaxed);
        if looks > 0 {
            self.looks_beyond_limit.store(looks + 1, Ordering::Relaxed); // a lost count does not matter
            if looks.is_multiple_of(LOOKED_EVERY) {
                self.trim(registry);
            }
        }
    }

    #[cold]
    fn trim(&self, registry: &Registry) {
        let mut state = self.state();
        state.take_back_returned();
        state.free_kept(0, registry);
        if state.long_bytes() <= KEPT_MAX {
            self.looks_beyond_limit.store(0, Ordering::Relaxed);
        }
    }

    /// Bytes of all blocks, without those that may be freed at once.
    pub(super) fn bytes(&self, registry: &Registry) -> u64 {
        self.trim(registry);
        self.state().blocks.iter().map(|block| block.bytes).sum()
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    /// The smallest block of at least `needed` bytes that is not in use.
    fn smallest_free(&self, needed: u64) -> Option<usize> {
        let free = |block: &&Block| block.used_for.is_none() && block.bytes >= needed;
        let numbered = self.blocks.iter().enumerate().filter(|(_, block)| free(block));
        numbered.min_by_key(|(_, block)| block.bytes).map(|(at, _)| at)
    }

    fn take_back_returned(&mut self) {
        for at in 0..self.blocks.len() {
            if self.blocks[at].used_for.is_some() && self.blocks[at].has_returned() {
                self.end_use(at);
            }
        }
    }

    fn end_use(&mut self, at: usize) {
        let block = &mut self.blocks[at];
        if block.used_for.take() == Some(Purpose::Argument) {
            self.arguments -= block.bytes;
        }
    }

    /// Allocates a block of at least `needed` bytes, or several short ones, and returns the number of one.
    fn allocate(&mut self, rank: Rank, needed: u64, registry: &Registry) -> Result<usize, Cause> {
        let (bytes, count) = if needed <= BLOCK {
            (BLOCK, BLOCKS_AT_ONCE)
        } else {
            self.free_kept(needed, registry);
            (needed.next_multiple_of(BLOCK), 1)
        };
        let cause = |error: Error| error.cause().clone();
        let first = registry.allocate_local(bytes * count).map_err(cause)?;
        let start = registry.own_place(GlobalAddress::new(rank, first), bytes * count)?;
        let start = NonNull::new(start).ok_or(Cause::NullAddress)?;
        let at = self.blocks.len();
        self.blocks.extend((0..count).map(|number| {
            let distance = number * bytes;
            // SAFETY: `bytes * count` bytes were just allocated from `start` on.
            let place = unsafe { start.add(distance as usize) };
            Block { offset: first + distance, place, bytes, sequence: 0, used_for: None }
        }));
        Ok(at)
    }

    /// Bytes of all long blocks.
    fn long_bytes(&self) -> u64 {
        self.blocks.iter().filter(|block| block.is_long()).map(|block| block.bytes).sum()
    }

    /// Frees long blocks that are not in use, until one of `needed` bytes is no more than may be kept.
    fn free_kept(&mut self, needed: u64, registry: &Registry) {
        let mut kept = self.long_bytes();
        self.blocks.retain(|block| {
            let stays = !block.is_long() || block.used_for.is_some() || kept + needed <= KEPT_MAX;
            if !stays {
                kept -= block.bytes;
                let freed = registry.free(block.offset);
                debug_assert!(freed.is_ok(), "{freed:?}");
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::MappedRange;
    use std::sync::Arc;

    fn registry() -> Registry {
        Registry::new(Arc::new(MappedRange::new(MappedRange::create_file().unwrap(), 0))).unwrap()
    }

    /// What another rank does when it has read the bytes.
    fn give_back(pool: &BlockPool, bytes: BlockBytes) {
        let state = pool.state();
        let block = state.blocks.iter().find(|block| block.offset == bytes.header.line().offset()).unwrap();
        // SAFETY: the line of a block that exists.
        unsafe { block.place.cast::<RingLine>().as_ref() }.write(bytes.header.sequence(), &[0; 7]);
    }

    #[test]
    fn a_block_is_used_again_when_it_was_given_back() {
        let (pool, registry) = (BlockPool::new(Rank(0)), registry());
        let fill = |len| pool.fill(Purpose::Argument, &vec![7; len], &registry).unwrap().unwrap();
        let mut blocks: Vec<BlockBytes> = (0..BLOCKS_AT_ONCE).map(|_| fill(100)).collect();
        blocks.sort_by_key(|block| block.address().bits());
        blocks.dedup();
        assert_eq!((blocks.len() as u64, pool.bytes(&registry)), (BLOCKS_AT_ONCE, BLOCKS_AT_ONCE * BLOCK));
        for _ in 0..200 {
            give_back(&pool, blocks[3]);
            let again = fill(60_000);
            assert_eq!((again.address(), again.len), (blocks[3].address(), 60_000));
            blocks[3] = again;
        }
        assert_eq!(pool.bytes(&registry), BLOCKS_AT_ONCE * BLOCK, "nothing more was allocated");
        fill(100);
        assert_eq!(
            pool.bytes(&registry),
            2 * BLOCKS_AT_ONCE * BLOCK,
            "a block that is in use is not used again"
        );
    }

    #[test]
    fn arguments_wait_for_room_and_results_do_not() {
        let (pool, registry) = (BlockPool::new(Rank(0)), registry());
        let long = vec![1; ARGUMENTS_MAX as usize];
        let fill = |purpose, len: usize| pool.fill(purpose, &long[..len], &registry).unwrap();
        let first = fill(Purpose::Argument, long.len()).expect("the only one may be longer than the limit");
        assert_eq!(fill(Purpose::Argument, 49), None);
        let result = fill(Purpose::ByHandler, 49).unwrap();
        pool.take_back(first);
        let second = fill(Purpose::Argument, 49).unwrap();
        give_back(&pool, second);
        give_back(&pool, result);
        pool.state().take_back_returned();
        assert!(pool.state().blocks.iter().all(|block| block.used_for.is_none()));
        assert_eq!(pool.state().arguments, 0);
    }

    #[test]
    fn long_blocks_are_freed_beyond_a_limit() {
        let (pool, registry) = (BlockPool::new(Rank(0)), registry());
        let bytes = vec![1; ARGUMENTS_MAX as usize];
        for len in (1..=64).map(|step| step * bytes.len() / 64) {
            let filled = pool.fill(Purpose::ByHandler, &bytes[..len], &registry).unwrap().unwrap();
            give_back(&pool, filled);
            let kept = pool.state().blocks.iter().map(|block| block.bytes).sum::<u64>();
            assert!(kept <= KEPT_MAX + BLOCK * (BLOCKS_AT_ONCE + 1), "{len}: {kept}");
            assert!(registry.usage().local >= kept);
        }
    }

    #[test]
    fn many_long_blocks_are_freed_when_they_were_given_back() {
        let (pool, registry) = (BlockPool::new(Rank(0)), registry());
        let before = registry.usage().local;
        let bytes = vec![1; 800_000];
        let filled: Vec<BlockBytes> = (0..100)
            .map(|_| pool.fill(Purpose::ByHandler, &bytes, &registry).unwrap().expect("results do not wait"))
            .collect();
        let looks = |times: u64| (0..times).for_each(|_| pool.trim_now_and_then(&registry));
        looks(2 * LOOKED_EVERY);
        assert!(registry.usage().local - before >= 80_000_000, "all are in use");
        filled.into_iter().for_each(|one| give_back(&pool, one));
        looks(LOOKED_EVERY);
        assert!(registry.usage().local - before <= KEPT_MAX + BLOCK, "{:?}", registry.usage());
        assert_eq!(pool.looks_beyond_limit.load(Ordering::Relaxed), 0, "nothing is left to look for");
    }
}
