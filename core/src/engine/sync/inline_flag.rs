//! A sequence number in the same cache line as its data: a rank that sees the number sees the data.
//!
//! One rank at a time writes the data and then the number of the start behind them
//! (`SYNC inline-flag`: the store releases, the load acquires). The reader waits for exactly that
//! number. Before the writer may write again, the reader has confirmed by a signal, or by data of
//! its own, that it has read.
//!
//! Beside the number stands a tag, by which the reader finds out that the data belong to another
//! call than its own.

use crate::base::relaxed_if_planted;
use crate::base::sync::{AtomicU64, Ordering};

/// The low half of the sequence number, and the tag.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct InlineFlag(AtomicU64);

impl InlineFlag {
    /// Publishes the data in front of it as number `number`, with a tag.
    #[inline(always)]
    pub fn set(&self, number: u64, tag: u32) {
        let word = number << 32 | u64::from(tag);
        self.0.store(word, relaxed_if_planted("inline_flag_set_relaxed", Ordering::Release)); // SYNC inline-flag
    }

    /// Returns the tag if the data of number `number` are visible.
    #[inline(always)]
    pub fn tag_of(&self, number: u64) -> Option<u32> {
        let word = self.0.load(relaxed_if_planted("inline_flag_read_relaxed", Ordering::Acquire)); // SYNC inline-flag
        (word >> 32 == number & u64::from(u32::MAX)).then_some(word as u32)
    }
}
