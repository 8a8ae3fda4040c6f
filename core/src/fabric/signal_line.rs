//! The words of a signal line, and how one writer and one reader share them.
//!
//! | word | holds | written |
//! |---|---|---|
//! | 0 | counter | last: a reader that sees it sees the payload (`SYNC signal-raise`) |
//! | 1-6 | payload; or word 1 the tag of a raise without a payload | in between |
//! | 7 | the next counter value | first: a reader that sees a new payload word sees it, too (`SYNC line-torn`) |
//!
//! All words lie in one cache line, so handing over a value moves one line. The reader copies the payload and then
//! reads word 7: if the writer has begun the next value, the copy may be torn and is discarded.

use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};
use crate::segment::layout::LINE_PAYLOAD;

/// Words of payload.
pub const PAYLOAD_WORDS: usize = LINE_PAYLOAD / 8;

/// One line of signal memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct LineWords {
    /// The counter. Its one writer raises it with stores. If no payload is used, any rank may raise it by atomic
    /// addition. The owner reads it.
    pub counter: AtomicU64,
    payload: [AtomicU64; PAYLOAD_WORDS],
    opened: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LineWords>() == 64);

impl Default for LineWords {
    fn default() -> LineWords {
        LineWords {
            counter: AtomicU64::new(0),
            payload: std::array::from_fn(|_| AtomicU64::new(0)),
            opened: AtomicU64::new(0),
        }
    }
}

impl LineWords {
    /// Called by the writer: stores the payload, then the counter.
    #[inline]
    pub fn write(&self, payload: &[u64], value: u64) {
        if !planted("signal_line_not_opened") {
            self.opened.store(value, Ordering::Relaxed);
        }
        if !planted("signal_line_writer_fence") {
            fence(Ordering::Release); // SYNC line-torn
        }
        for (word, &value) in self.payload.iter().zip(payload) {
            word.store(value, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("signal_line_counter_relaxed", Ordering::Release); // SYNC signal-raise
        self.counter.store(value, order);
    }

    /// Called by the writer when no payload is used, but a tag. Everything it wrote before is visible to a reader that
    /// sees the counter. The tag lies in the first word of the payload, beside the low half of `value`, so a reader knows
    /// to which raise it belongs.
    #[inline(always)]
    pub fn raise_tagged(&self, value: u64, tag: u32) {
        let store_tag = || self.payload[0].store(value << 32 | u64::from(tag), Ordering::Relaxed);
        let is_late = planted("signal_line_tag_late");
        if !is_late {
            store_tag();
        }
        let order = relaxed_if_planted("signal_line_raise_relaxed", Ordering::Release); // SYNC signal-raise
        self.counter.store(value, order);
        if is_late {
            store_tag();
        }
    }

    /// Called by the reader after it has loaded `value` from the counter with acquire. Returns the tag of that raise;
    /// `None` if the writer has begun the next one.
    #[inline(always)]
    pub fn tag_of(&self, value: u64) -> Option<u32> {
        let word = self.payload[0].load(Ordering::Relaxed);
        (word >> 32 == value & u64::from(u32::MAX)).then_some(word as u32)
    }

    /// Called by the reader after it has loaded `value` from the counter with acquire. Returns the first `used` words
    /// of the payload that came with that value, and zeros behind them. Returns `None` if the writer has begun
    /// another value.
    #[inline]
    pub fn read(&self, value: u64, used: usize) -> Option<[u64; PAYLOAD_WORDS]> {
        let word = |i: usize| if i < used { self.payload[i].load(Ordering::Relaxed) } else { 0 };
        let words = std::array::from_fn(word);
        if !planted("signal_line_reader_fence") {
            fence(Ordering::Acquire); // SYNC line-torn
        }
        (self.opened.load(Ordering::Relaxed) == value).then_some(words)
    }
}
