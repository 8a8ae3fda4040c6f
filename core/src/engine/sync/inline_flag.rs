//! A sequence number in the same cache line as its data: a rank that sees the number sees the data.
//!
//! One rank at a time writes the data and then the number of the start behind them
//! (`SYNC inline-flag`: the store releases, the load acquires). The reader waits for exactly that
//! number. Before the writer may write again, the reader has confirmed by a signal, or by data of
//! its own, that it has read.

use crate::base::relaxed_if_planted;
use crate::base::sync::{AtomicU64, Ordering};

/// The sequence number.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct InlineFlag(AtomicU64);

impl InlineFlag {
    /// Publishes the data in front of it as number `number`.
    #[inline(always)]
    pub fn set(&self, number: u64) {
        self.0.store(number, relaxed_if_planted("inline_flag_set_relaxed", Ordering::Release)); // SYNC inline-flag
    }

    /// Returns true if the data of number `number` are visible.
    #[inline(always)]
    pub fn is_set_to(&self, number: u64) -> bool {
        self.0.load(relaxed_if_planted("inline_flag_read_relaxed", Ordering::Acquire)) == number // SYNC inline-flag
    }
}
