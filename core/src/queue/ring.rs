//! The ring that holds commands from their post until they are read: many posters, one reader at a time.
//!
//! ```text
//!      read            reserved          read + capacity
//!  -----+-----------------+---------------------+------> positions
//!       | posted, or      | free                |
//!       | being written   |                     |
//! ```
//!
//! A poster *reserves* positions by one compare-and-swap on a cache line that the reader does not read while it runs
//! commands. Then it writes the lines, and stores the number of the position, plus one, into each (`SYNC ring-posted`).
//! The reader knows by that number that a line is written, and never writes to a line. Lines are used again when the
//! reader has advanced past them (`SYNC ring-read`). A poster finds out that there is no room before it reserves
//! anything.
//!
//! Positions only grow. They have 64 bits, so they do not run out.

#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::base::sync::fence;
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};

/// Words of a line, without its number.
pub const LINE_WORDS: usize = 7;

/// One line of a command. Written by the poster that reserved its position, read by the lease holder.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RingLine {
    /// One more than the position whose words are here.
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
    /// Returns true if the words of `position` are there.
    #[inline(always)]
    pub fn holds(&self, position: u64) -> bool {
        let order = relaxed_if_planted("ring_reader_relaxed", Ordering::Acquire); // SYNC ring-posted
        self.number.load(order) == position + 1
    }

    /// The words, after [`RingLine::holds`] has returned true.
    #[inline(always)]
    pub fn read(&self) -> [u64; LINE_WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }

    /// Writes the words of a position that the caller has reserved.
    #[inline(always)]
    pub fn write(&self, position: u64, words: &[u64; LINE_WORDS]) {
        for (word, &value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("ring_posted_relaxed", Ordering::Release); // SYNC ring-posted
        self.number.store(position + 1, order);
    }
}

/// The state of a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingLineState {
    /// The position is not reserved.
    Nothing,
    /// The position was reserved, but its line was not written when it was read.
    Reserved,
    /// The line of the position is written.
    Written,
}

/// The cache line of the posters.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RingWriters {
    /// Number of positions that were reserved, and the bit [`CLOSED`]. Written by posters, by compare-and-swap.
    reserved: AtomicU64,
    /// How far the reader had read when a poster last checked. Any poster writes it. It is never ahead of the reader.
    cached_read: AtomicU64,
}

/// The cache line of the reader.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RingReader {
    /// Number of positions that were read. Written by the lease holder.
    read: AtomicU64,
}

impl Default for RingWriters {
    fn default() -> RingWriters {
        RingWriters { reserved: AtomicU64::new(0), cached_read: AtomicU64::new(0) }
    }
}

impl Default for RingReader {
    fn default() -> RingReader {
        RingReader { read: AtomicU64::new(0) }
    }
}

impl RingWriters {
    /// Reserves `count` consecutive positions and returns the first. `None`: there is no room for them.
    #[inline(always)]
    pub fn reserve(&self, count: u64, capacity: u64, reader: &RingReader) -> Option<u64> {
        let mut first = self.reserved.load(Ordering::Relaxed);
        loop {
            let most = capacity + u64::from(planted("ring_overrun"));
            let free_after = |read: u64| first + count <= read + most;
            if !free_after(self.cached_read.load(Ordering::Acquire)) && !free_after(self.refresh(reader)) {
                return None;
            }
            let next = first + count;
            match self.reserved.compare_exchange_weak(first, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(first),
                Err(now) => first = now,
            }
        }
    }

    /// Reads how far the reader has read, and caches it.
    #[cold]
    fn refresh(&self, reader: &RingReader) -> u64 {
        let read = reader.read.load(Ordering::Acquire); // SYNC ring-read
        // Another poster may have cached a later value. Then this store puts an older one back, and a poster that needs
        // room reads the reader's position again.
        self.cached_read.store(read, Ordering::Release); // SYNC ring-read: passes on what was acquired from the reader
        read
    }

    /// The fence of a poster between its post and its read of the poll state, on processors that need one.
    #[inline(always)]
    pub fn fence_after_reserve() {
        // On x86_64 the compare-and-swap was a full fence.
        #[cfg(any(not(target_arch = "x86_64"), loom))]
        fence(Ordering::SeqCst); // SYNC serving
    }

    /// Number of positions that were reserved.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire) & !CLOSED
    }

    /// The state of a position, whose line is `line`. Reads the line only once. If it read the line twice, a poster
    /// could write the line in between: the line would be missing at the first read and present at the second, and the
    /// result would be `Nothing`.
    #[inline(always)]
    pub fn state_at(&self, position: u64, line: &RingLine) -> RingLineState {
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

    /// Returns true if no more positions can be reserved.
    pub fn is_closed(&self) -> bool {
        self.reserved.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Lets no more positions be reserved, because the queue is being dropped.
    pub fn close(&self) {
        self.reserved.fetch_or(CLOSED, Ordering::SeqCst);
    }
}

/// A bit of `reserved`. It is larger than any position, so a ring with this bit has no room.
pub const CLOSED: u64 = 1 << 62;

impl RingReader {
    /// Number of positions that were read.
    #[inline(always)]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Lets the lines before position `read` be used again. Only the reader may call it.
    #[inline(always)]
    pub fn set_read(&self, read: u64) {
        self.read.store(read, Ordering::Release); // SYNC ring-read
    }
}
