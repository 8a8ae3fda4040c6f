//! The number behind what lies in the same line: whoever sees it sees what it seals.
//!
//! One rank at a time lays something out there, and puts the number of the start behind it (`SYNC seal`: it releases,
//! and who looks acquires). Who takes it waits for that very number. It has said so, by a signal or what it lays out
//! itself, before anything else is laid out there.

use crate::base::relaxed_if_planted;
use crate::base::sync::{AtomicU64, Ordering};

/// Such a word.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct InlineFlag(AtomicU64);

impl InlineFlag {
    /// What lies before it is there, as the `number`th.
    #[inline(always)]
    pub fn put(&self, number: u64) {
        self.0.store(number, relaxed_if_planted("inline_flag_set_relaxed", Ordering::Release)); // SYNC seal
    }

    /// Whether the `number`th is there.
    #[inline(always)]
    pub fn is(&self, number: u64) -> bool {
        self.0.load(relaxed_if_planted("inline_flag_read_relaxed", Ordering::Acquire)) == number // SYNC seal
    }
}
