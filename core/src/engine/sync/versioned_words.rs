//! Some words that are read together without a lock: a reader that meets a writer gets nothing.
//!
//! `version` is odd while a thread writes (`SYNC versioned-words`). A reader reads it before and after the words. If it
//! has read a word of a later write, the fences show it that write's version.

use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};

/// `N` words of this process.
#[derive(Debug)]
pub struct VersionedWords<const N: usize> {
    version: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for VersionedWords<N> {
    /// All words are 0.
    fn default() -> VersionedWords<N> {
        VersionedWords { version: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl<const N: usize> VersionedWords<N> {
    /// Returns the words of one write. None: a thread writes.
    #[inline(always)]
    pub fn read(&self) -> Option<[u64; N]> {
        let version = self.version.load(Ordering::Acquire); // SYNC versioned-words
        let words = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
        if !planted("versioned_words_reader_fence") {
            fence(Ordering::Acquire); // SYNC versioned-words
        }
        (version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version).then_some(words)
    }

    /// Writes the words, unless another thread does at this moment. Returns false then.
    pub fn try_write(&self, words: [u64; N]) -> bool {
        let version = self.version.load(Ordering::Relaxed);
        let free = version.is_multiple_of(2);
        if !free
            || self
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        if !planted("versioned_words_writer_fence") {
            fence(Ordering::Release); // SYNC versioned-words
        }
        self.words.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        let order = relaxed_if_planted("versioned_words_write_relaxed", Ordering::Release); // SYNC versioned-words
        self.version.store(version + 2, order);
        true
    }
}
