//! The words of a signal line, and how one writer and one reader share them.
//!
//! | word | holds | written |
//! |---|---|---|
//! | 0 | counter | last: a reader that sees it sees the payload (`SYNC signal-raise`) |
//! | 1-6 | payload; or words 1-4 the tags of raises without a payload | in between |
//! | 7 | the next counter value | first: a reader that sees a new payload word sees it, too (`SYNC line-torn`) |
//!
//! All words lie in one cache line, so handing over a value moves one line. The reader copies the payload and then
//! reads word 7: if the writer has begun the next value, the copy may be torn and is discarded.

use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};
use crate::segment::layout::LINE_PAYLOAD;

/// Words of payload.
pub const PAYLOAD_WORDS: usize = LINE_PAYLOAD / 8;

/// Number of starts whose tags a line holds.
const TAGS: usize = 4;

/// The tags of the last starts in which a signal was raised, each with the number of the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RaiseTags([u64; TAGS]);

#[inline(always)]
fn tag_word(start: u32, tag: u32) -> u64 {
    u64::from(start) << 32 | u64::from(tag)
}

impl RaiseTags {
    /// The tags of no raises: each place has the number of a start that belongs elsewhere.
    pub fn none() -> RaiseTags {
        RaiseTags(std::array::from_fn(|place| tag_word(place as u32 + 1, 0)))
    }

    /// Returns the tag of a start, if it is among them.
    #[inline(always)]
    pub fn of(self, start: u32) -> Option<u32> {
        let word = self.0[start as usize % TAGS];
        (word >> 32 == u64::from(start)).then_some(word as u32)
    }

    /// Returns true if both hold the tag of a start, and the tags differ.
    pub fn differ_from(self, others: RaiseTags) -> bool {
        let mut both = self.0.into_iter().zip(others.0);
        both.any(|(ours, theirs)| ours >> 32 == theirs >> 32 && ours != theirs)
    }
}

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

    /// Called by the writer when no payload is used, but a tag, in a start of that number. Everything it wrote before
    /// is visible to a reader that sees the counter, the tag too. The tags of the last four starts lie in the payload.
    #[inline(always)]
    pub fn raise_tagged(&self, value: u64, start: u32, tag: u32) {
        let store_tag = || self.store_tag(start, tag);
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

    /// Called by the writer: stores the tag of a start, numbered from 1, without a raise.
    #[inline(always)]
    pub fn store_tag(&self, start: u32, tag: u32) {
        self.payload[start as usize % TAGS].store(tag_word(start, tag), Ordering::Relaxed);
    }

    /// Called by the owner before the line has a writer: from now on it holds no tags of starts numbered from 1.
    pub fn clear_tags(&self) {
        self.payload[..TAGS].iter().for_each(|tag| tag.store(0, Ordering::Relaxed));
    }

    /// Called by the reader after it has loaded the counter with acquire. Returns the tags of the start of that raise
    /// and of those before it, unless later ones have taken their places.
    #[inline(always)]
    pub fn tags(&self) -> RaiseTags {
        RaiseTags(std::array::from_fn(|place| self.payload[place].load(Ordering::Relaxed)))
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
