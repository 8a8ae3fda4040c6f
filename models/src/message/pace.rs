//! Whether copies into rings go through the processor's caches or past them: by what either took lately.
//!
//! Where the two processors share a cache, a line of the ring is quickly had, and the receiver finds it there. Where
//! they do not, each line must be fetched from the other's before it is written: then a copy past the caches is several
//! times as quick (docs/design/messages.md has the figures). Which it is no program can know, and on a virtual machine
//! it changes while it runs. The sender's own copy shows it, so one message in eight is timed, and now and then two go
//! the other way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use tasuki_core::engine::Caching;

/// Shorter messages are cached: what they take is the way there and back.
const LEAST: u64 = 4 << 10;
/// One message in so many is timed.
const TIMED: u32 = 8;
/// Of so many the first two that are timed go the other way.
const ROUND: u32 = 256;
/// Copies past the caches cost the receiver more, which the sender does not see: they must take less than this part,
/// two fifths, of what cached ones take. Where a cache is shared 4 KiB take about half.
const MARGIN: (u64, u64) = (2, 5);

/// What copies of a rank into its rings took.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    messages: AtomicU32,
    /// In 1/1024 ns a byte, of either way; 0: not known.
    took: [AtomicU64; 2],
}

/// How a message is to be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stride {
    pub(crate) caching: Caching,
    /// Whether somebody wants to know what it takes.
    pub(crate) timed: bool,
}

impl Pace {
    /// How the next message goes, of `len` bytes.
    pub(crate) fn next(&self, len: u64) -> Stride {
        if len < LEAST {
            return Stride { caching: Caching::Cached, timed: false };
        }
        // Two threads that draw the same number do no harm.
        let number = self.messages.load(Relaxed);
        self.messages.store(number.wrapping_add(1), Relaxed);
        let timed = number.is_multiple_of(TIMED);
        let other_way = timed && number % ROUND < 2 * TIMED;
        let quicker = self.quicker();
        Stride { caching: if other_way { opposite(quicker) } else { quicker }, timed }
    }

    /// What a message took that was timed.
    pub(crate) fn took(&self, caching: Caching, bytes: u64, ns: u64) {
        let took = &self.took[caching as usize];
        let (old, new) = (took.load(Relaxed), (ns << 10) / bytes.max(1));
        // One that was interrupted counts for something, not for all.
        let now = if old == 0 { new } else { (old + new.min(4 * old)) / 2 };
        took.store(now.max(1), Relaxed);
    }

    fn quicker(&self) -> Caching {
        let [cached, streamed] = [&self.took[0], &self.took[1]].map(|took| took.load(Relaxed));
        let is_streamed = streamed > 0 && MARGIN.1 * streamed < MARGIN.0 * cached;
        if is_streamed { Caching::Streamed } else { Caching::Cached }
    }
}

fn opposite(caching: Caching) -> Caching {
    match caching {
        Caching::Cached => Caching::Streamed,
        Caching::Streamed => Caching::Cached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends so many messages where either way takes so many ns; how many of them were streamed.
    fn send(pace: &Pace, messages: u32, cached_ns: u64, streamed_ns: u64) -> u32 {
        (0..messages)
            .filter(|_| {
                let Stride { caching, timed } = pace.next(1 << 16);
                let ns = if caching == Caching::Cached { cached_ns } else { streamed_ns };
                if timed {
                    pace.took(caching, 1 << 16, ns);
                }
                caching == Caching::Streamed
            })
            .count() as u32
    }

    #[test]
    fn the_quicker_way_is_taken_and_a_change_is_noticed() {
        let pace = Pace::default();
        assert!(send(&pace, 1024, 3000, 4000) <= 8, "cached, but for the tries");
        assert!(send(&pace, 1024, 20_000, 4000) >= 1024 - 8 - 100);
        assert!(send(&pace, 1024, 20_000, 4000) >= 1024 - 8);
        assert!(send(&pace, 1024, 3000, 4000) < 600, "it is tried twice in 256");
        assert!(send(&pace, 1024, 3000, 4000) <= 8);
    }

    #[test]
    fn one_that_was_interrupted_changes_nothing() {
        let pace = Pace::default();
        send(&pace, 1024, 3000, 4000);
        pace.took(Caching::Cached, 1 << 16, 4_000_000);
        assert!(send(&pace, 1024, 3000, 4000) <= 8);
    }

    #[test]
    fn short_messages_are_cached_and_count_for_nothing() {
        let pace = Pace::default();
        send(&pace, 1024, 20_000, 4000);
        assert_eq!(pace.next(LEAST - 1), Stride { caching: Caching::Cached, timed: false });
        assert_eq!(pace.next(LEAST).caching, Caching::Cached, "the first of a round goes the other way");
        assert_eq!(pace.next(LEAST).caching, Caching::Streamed);
    }
}
