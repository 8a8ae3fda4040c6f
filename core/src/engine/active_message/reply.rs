//! Writing replies into the reply lines of calling ranks.
#![allow(unsafe_code)]
//! Unsafe: lines of other ranks that the fabric has just mapped.

use crate::engine::worker::Worker;
use crate::os::prefetch;
use crate::queue::handler_call::ReplyAddress;
use crate::queue::ring::{LINE_WORDS, RingLine};
use std::ptr::NonNull;

impl Worker {
    /// Prefetches the reply line for writing, so that the cache line moves here while the handler runs. This makes
    /// calls 8 % faster: a round trip takes 188 ns instead of 205 (measured alternately, where a cache line takes 35 ns
    /// to move).
    #[inline(always)]
    pub(super) fn fetch_reply_line(&self, place: ReplyAddress) {
        if !place.is_none()
            && let Some(line) = self.reply_line(place)
        {
            prefetch::for_writing(line.as_ptr());
        }
    }

    /// The reply line in this process, if it is mapped.
    #[inline(always)]
    fn reply_line(&self, place: ReplyAddress) -> Option<NonNull<u8>> {
        if self.reaches_words() {
            self.fabric().mapped(place.line(), size_of::<RingLine>() as u64)
        } else {
            None
        }
    }

    /// Writes a reply into its line and wakes the rank that waits for it. Returns false if the line is not mapped.
    #[inline(always)]
    pub(super) fn write_reply(&self, place: ReplyAddress, words: &[u64; LINE_WORDS]) -> bool {
        let Some(line) = self.reply_line(place) else { return false };
        // SAFETY: `reply_line` has just found the line mapped. Reply addresses are aligned to a line, and a line is
        // made of atomics.
        unsafe { line.cast::<RingLine>().as_ref() }.write(place.sequence(), words);
        self.node_state().wake_sleepers(place.line().rank());
        true
    }
}
