//! Where commands lie from their post until they are read: many posters, one reader at a time.
//!
//! ```text
//!      read            reserved          read + capacity
//!  -----+-----------------+---------------------+------> positions
//!       | posted, or      | free                |
//!       | being written   |                     |
//! ```
//!
//! A poster *reserves* positions by one compare-and-swap on a line that no reader looks at while it runs commands,
//! writes the lines, and stores the number of the position, plus one, into each (`SYNC ring-posted`). The reader sees
//! by that number that a line is there, and never writes to it. EncodedCommand are used again when the reader has gone past them
//! (`SYNC ring-read`). That there is no room is known before anything was reserved.
//!
//! Positions are numbers that only grow; 64 bits of them do not run out.

#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::sync::fence;
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Words of a line besides its number.
pub const LINE_WORDS: usize = 7;

/// One line of a command.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RingLine {
    /// One more than the position of what lies here.
    number: AtomicU64,
    words: [AtomicU64; LINE_WORDS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RingLine>() == 64);

impl Default for RingLine {
    fn default() -> RingLine {
        RingLine { number: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl RingLine {
    /// Whether what belongs to `position` is there.
    #[inline(always)]
    pub fn holds(&self, position: u64) -> bool {
        let order = relaxed_if_planted("ring_reader_relaxed", Ordering::Acquire); // SYNC ring-posted
        self.number.load(order) == position + 1
    }

    /// The words, after [`RingLine::holds`] said that they are there.
    #[inline(always)]
    pub fn read(&self) -> [u64; LINE_WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }

    /// Writes what belongs to a position that was reserved.
    #[inline(always)]
    pub fn write(&self, position: u64, words: &[u64; LINE_WORDS]) {
        for (word, &value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("ring_posted_relaxed", Ordering::Release); // SYNC ring-posted
        self.number.store(position + 1, order);
    }
}

/// What there is at a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingLineState {
    /// Nobody has reserved it.
    Nothing,
    /// It was reserved, and not written when it was looked at.
    Reserved,
    /// A line.
    Written,
}

/// The posters' line.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RingWriters {
    /// Positions that were given out.
    reserved: AtomicU64,
    /// As far as the reader had come when a poster last looked. Any poster writes it; it is never ahead.
    seen: AtomicU64,
}

/// The reader's line.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RingReader {
    /// Positions that were read.
    read: AtomicU64,
}

impl Default for RingWriters {
    fn default() -> RingWriters {
        RingWriters { reserved: AtomicU64::new(0), seen: AtomicU64::new(0) }
    }
}

impl Default for RingReader {
    fn default() -> RingReader {
        RingReader { read: AtomicU64::new(0) }
    }
}

impl RingWriters {
    /// Takes `count` positions in a row; the first of them. `None`: there is no room for so many.
    #[inline(always)]
    pub fn reserve(&self, count: u64, capacity: u64, reader: &RingReader) -> Option<u64> {
        let mut first = self.reserved.load(Ordering::Relaxed);
        loop {
            let most = capacity + u64::from(planted("ring_overrun"));
            let free_after = |read: u64| first + count <= read + most;
            if !free_after(self.seen.load(Ordering::Acquire)) && !free_after(self.look(reader)) {
                return None;
            }
            let next = first + count;
            match self.reserved.compare_exchange_weak(first, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(first),
                Err(now) => first = now,
            }
        }
    }

    /// Looks how far the reader has come.
    #[cold]
    fn look(&self, reader: &RingReader) -> u64 {
        let read = reader.read.load(Ordering::Acquire); // SYNC ring-read
        // Another poster may have seen more: this one goes back then, and somebody looks once more.
        self.seen.store(read, Ordering::Release); // SYNC ring-read: whoever takes it from here has it from the reader
        read
    }

    /// The poster's look for a reader, after it has posted: a fence where the reader's going away needs one.
    #[inline(always)]
    pub fn fence_after_reserve() {
        // On x86_64 the compare-and-swap was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        fence(Ordering::SeqCst); // SYNC serving
    }

    /// Positions that were given out.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire) & !CLOSED
    }

    /// What there is at a position, whose line that is. Looks at the line once: what is written between two looks would
    /// be neither there at the first nor missing at the second.
    #[inline(always)]
    pub fn found_at(&self, position: u64, line: &RingLine) -> RingLineState {
        if line.holds(position) {
            return RingLineState::Written;
        }
        let is_missing = || !(planted("queue_polled_once_more") && line.holds(position));
        if self.reserved() > position && is_missing() {
            RingLineState::Reserved
        } else {
            RingLineState::Nothing
        }
    }

    /// Whether no more are given out.
    pub fn are_closed(&self) -> bool {
        self.reserved.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Gives no more positions out: the queue is being dropped.
    pub fn close(&self) {
        self.reserved.fetch_or(CLOSED, Ordering::SeqCst);
    }
}

/// No position is as large: with it in `reserved` there is room for nothing.
pub const CLOSED: u64 = 1 << 62;

impl RingReader {
    /// Positions that were read.
    #[inline(always)]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// EncodedCommand up to that position may be used again. Only the reader.
    #[inline(always)]
    pub fn set_read(&self, read: u64) {
        self.read.store(read, Ordering::Release); // SYNC ring-read
    }
}
