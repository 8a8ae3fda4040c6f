//! Remote access: a load or a locked addition on a line that the other processor wrote last. Each access depends on the
//! one before it.
#![allow(unsafe_code)]
//! Unsafe: makes a slice of atomics over a range of shared memory that is checked to lie in the mapping.

use super::Side;
use super::shared_memory::{BLOCK, REMOTE_BLOCK, Shared};
use crate::cases::pointer_chase::{STEP, chain, next, pass};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Blocks of the words with which the two sides tell each other whose turn it is.
const REWRITTEN: usize = 320;
const VISITED: usize = 384;

/// What is done with each word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A load.
    Load,
    /// A locked addition that returns the old value.
    Add,
}

/// A word that has a pair of lines to itself.
#[repr(C, align(128))]
struct WordBlock {
    word: AtomicU64,
}

const _: () = assert!(size_of::<WordBlock>() == BLOCK);

/// The measurement as one side makes it.
#[derive(Debug)]
pub(crate) struct RemoteLimit {
    shared: Arc<Shared>,
    side: Side,
    words: usize,
    passes: u64,
    pass: u64,
    access: Access,
}

impl RemoteLimit {
    /// Prepares a measurement of `passes` passes over `words` words. Several measurements may take turns on the shared
    /// words.
    pub(crate) fn new(shared: Arc<Shared>, side: Side, words: usize, passes: u64, access: Access) -> Self {
        RemoteLimit { shared, side, words, passes, pass: 0, access }
    }

    /// Returns the time per access, in ns; the result is valid only on the lead. Returns `None` if a word was not the
    /// one that the other side wrote. A warm-up pass before does not count.
    pub(crate) fn measure(&mut self) -> Option<f64> {
        // Other measurements have left the two turn words at some pass. Both sides continue from there.
        self.pass = self.shared.word(VISITED).load(Ordering::Acquire);
        let mut total = Duration::ZERO;
        for counted in 0..=self.passes {
            self.pass += 1;
            let time = match self.side {
                Side::Lead => self.visit()?,
                Side::Follow => self.rewrite(),
            };
            total += if counted > 0 { time } else { Duration::ZERO };
        }
        Some(total.as_nanos() as f64 / (self.passes * self.words as u64) as f64)
    }

    fn rewrite(&self) -> Duration {
        for (block, word) in self.blocks().iter().zip(chain(self.words, self.pass)) {
            block.word.store(word, Ordering::Relaxed);
        }
        self.shared.word(REWRITTEN).store(self.pass, Ordering::Release);
        self.await_pass(VISITED);
        Duration::ZERO
    }

    fn visit(&self) -> Option<Duration> {
        self.await_pass(REWRITTEN);
        let start = Instant::now();
        let wrong = match self.access {
            Access::Load => visit_all(self.blocks(), self.pass, |word| word.load(Ordering::Acquire)),
            Access::Add => visit_all(self.blocks(), self.pass, |word| word.fetch_add(STEP, Ordering::SeqCst)),
        };
        let elapsed = start.elapsed();
        self.shared.word(VISITED).store(self.pass, Ordering::Release);
        (wrong == 0).then_some(elapsed)
    }

    fn await_pass(&self, block: usize) {
        while self.shared.word(block).load(Ordering::Acquire) != self.pass {
            std::hint::spin_loop();
        }
    }

    fn blocks(&self) -> &[WordBlock] {
        let start = self.shared.range(REMOTE_BLOCK * BLOCK, self.words * BLOCK);
        // SAFETY: the range lies in the mapping, which `shared` keeps; all that is ever done to it are atomics.
        unsafe { std::slice::from_raw_parts(start.cast(), self.words) }
    }
}

/// Follows the chain once. Returns a value other than 0 if a word did not belong to this pass.
#[inline(always)]
fn visit_all(blocks: &[WordBlock], now: u64, access: impl Fn(&AtomicU64) -> u64) -> u64 {
    let (mut at, mut wrong) = (0, 0);
    for _ in 0..blocks.len() {
        let word = access(&blocks[at].word);
        wrong |= pass(word) ^ now;
        at = next(word);
    }
    wrong | at as u64
}

#[cfg(test)]
mod tests {
    use super::super::shared_memory::SharedFile;
    use super::*;

    #[test]
    fn every_word_is_visited_in_every_pass() {
        let file = SharedFile::create(0).unwrap();
        let path = file.path();
        let side = |side| {
            let shared = Arc::new(Shared::open(&path).unwrap());
            for access in [Access::Load, Access::Add] {
                assert!(RemoteLimit::new(shared.clone(), side, 50, 2, access).measure().is_some());
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| side(Side::Follow));
            side(Side::Lead);
        });
    }
}
