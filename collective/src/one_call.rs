//! The word of the collective call that a rank is in. It lets the rank make one call on a communicator at a time.
//!
//! A plain store writes the word, as it writes the state of slots. A locked instruction would wait until the stores of
//! the previous call have reached its partners, which costs a cache-line transfer. So if two threads call at exactly
//! the same time, both may begin. That is an error of the program, and it disturbs only this communicator.

use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{planted, relaxed_if_planted};

/// The word while no thread is in a call.
const NO_CALL: u64 = 0;

/// The word of the call under way.
#[derive(Debug)]
pub(crate) struct OneCall(AtomicU64);

impl OneCall {
    /// Makes the word of a communicator without a call.
    pub(crate) fn none() -> OneCall {
        OneCall(AtomicU64::new(NO_CALL))
    }

    /// Returns true if no call is under way. The caller then sees what the last call has written, which another thread
    /// may have made.
    #[inline(always)]
    pub(crate) fn is_none(&self) -> bool {
        let order = relaxed_if_planted("one_call_look_relaxed", Ordering::Acquire); // SYNC one-call
        self.0.load(order) == NO_CALL || planted("one_call_not_looked_at")
    }

    /// Begins the call of that word, which is not 0. The caller must have just seen that there is none.
    #[inline(always)]
    pub(crate) fn begin(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// Ends the call.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.0.store(NO_CALL, relaxed_if_planted("one_call_end_relaxed", Ordering::Release)); // SYNC one-call
    }

    /// Returns the word of the call under way, or 0.
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
