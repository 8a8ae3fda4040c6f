//! The words of a signal line, and how one writer and one reader share them.
//!
//! | word | is | written |
//! |---|---|---|
//! | 0 | counter | last: whoever sees it sees the payload (`SYNC signal-raise`) |
//! | 1-6 | payload | between |
//! | 7 | the counter to come | first: whoever sees a word of a payload sees that it was begun (`SYNC line-torn`) |
//!
//! All in one cache line, so that a value is handed over by moving one line. The reader copies the payload and then
//! looks at word 7: if the writer has begun the next value, the copy may be torn and is thrown away.

use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};
use crate::segment::layout::LINE_PAYLOAD;

/// Words of payload.
pub const PAYLOAD_WORDS: usize = LINE_PAYLOAD / 8;

/// One line of signal memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct LineWords {
    /// Raised by the line's one writer by storing, or by anyone by adding if no payload is used; read by its owner.
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
    /// The writer's part: payload, then counter.
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

    /// The writer's part where no payload is used: what it has written before is visible to whoever sees the counter.
    #[inline(always)]
    pub fn raise_to(&self, value: u64) {
        let order = relaxed_if_planted("signal_line_raise_relaxed", Ordering::Release); // SYNC signal-raise
        self.counter.store(value, order);
    }

    /// The reader's part, after it has seen the counter at `value` (acquire): the first `used` words of the payload
    /// that came with it, zero behind them, unless the writer has begun another.
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
