//! The hand-over: half a round trip of one word between two processors, in the fastest of four variants.

use super::Side;
use super::shared_memory::Shared;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Blocks of the two words. They lie on different pages, so that fetching one does not prefetch the other. All variants
/// use the same blocks.
const WORDS: [usize; 2] = [64, 192];

/// How the word is stored, and what the reading side does between two reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HandOverVariant {
    seq_cst: bool,
    pause: bool,
}

/// All variants.
const VARIANTS: [HandOverVariant; 4] = [
    HandOverVariant { seq_cst: false, pause: false },
    HandOverVariant { seq_cst: false, pause: true },
    HandOverVariant { seq_cst: true, pause: false },
    HandOverVariant { seq_cst: true, pause: true },
];

/// The measurement as one side makes it. Both sides must call it the same number of times.
#[derive(Debug)]
pub(crate) struct HandOver {
    shared: Arc<Shared>,
    side: Side,
    /// The current value of the words, which only grow.
    count: u64,
    rounds: u64,
    way: usize,
}

/// Numbers of rounds that are timed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rounds {
    /// Rounds of each variant when the fastest variant is determined at the start.
    pub(crate) search: u64,
    /// Rounds of the fastest variant in each measurement.
    pub(crate) measure: u64,
}

impl HandOver {
    /// Makes a measurement with the variant of this index. Without an index, it determines the fastest variant now.
    pub(crate) fn new(shared: Arc<Shared>, side: Side, rounds: Rounds, way: Option<usize>) -> HandOver {
        let mut this = HandOver { shared, side, count: 0, rounds: rounds.measure, way: 0 };
        this.way = way.unwrap_or_else(|| {
            let times = VARIANTS.map(|variant| this.time(variant, rounds.search));
            let best = (0..VARIANTS.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).unwrap_or_default();
            this.agree(best as u64) as usize
        });
        this
    }

    /// Returns the index of the variant.
    pub(crate) fn way(&self) -> usize {
        self.way
    }

    /// Describes the variant for users.
    pub(crate) fn describe(&self) -> String {
        let HandOverVariant { seq_cst, pause } = VARIANTS[self.way];
        let store = if seq_cst { "seq-cst store" } else { "release store" };
        format!("{store}, {}", if pause { "pause" } else { "no pause" })
    }

    /// Returns half a round trip, in ns.
    pub(crate) fn measure(&mut self) -> f64 {
        self.time(VARIANTS[self.way], self.rounds)
    }

    fn time(&mut self, variant: HandOverVariant, rounds: u64) -> f64 {
        self.exchange(variant, rounds / 10 + 1);
        let start = Instant::now();
        self.exchange(variant, rounds);
        start.elapsed().as_nanos() as f64 / rounds as f64 / 2.0
    }

    fn exchange(&mut self, variant: HandOverVariant, rounds: u64) {
        let words = WORDS.map(|block| self.shared.word(block));
        let (mine, theirs) = (words[self.side.index()], words[1 - self.side.index()]);
        let exchange: fn(&AtomicU64, &AtomicU64, bool, u64, u64) = match (variant.seq_cst, variant.pause) {
            (false, false) => pass::<false, false>,
            (false, true) => pass::<false, true>,
            (true, false) => pass::<true, false>,
            (true, true) => pass::<true, true>,
        };
        exchange(mine, theirs, self.side == Side::Lead, self.count, rounds);
        self.count += rounds;
    }

    /// Returns on both sides the value that the lead passes.
    pub(crate) fn agree(&mut self, said: u64) -> u64 {
        let shared = self.shared.clone();
        let word = shared.word(WORDS[0] + 1);
        if self.side == Side::Lead {
            word.store(said, Ordering::Relaxed);
        }
        self.exchange(VARIANTS[1], 1);
        let seen = word.load(Ordering::Relaxed);
        self.exchange(VARIANTS[1], 1); // both sides have read the word before it changes again
        seen
    }
}

#[inline(never)]
fn pass<const SEQ_CST: bool, const PAUSE: bool>(
    mine: &AtomicU64,
    theirs: &AtomicU64,
    is_lead: bool,
    from: u64,
    rounds: u64,
) {
    if is_lead {
        for value in from + 1..=from + rounds {
            store::<SEQ_CST>(mine, value);
            await_value::<PAUSE>(theirs, value);
        }
    } else {
        for value in from + 1..=from + rounds {
            await_value::<PAUSE>(theirs, value);
            store::<SEQ_CST>(mine, value);
        }
    }
}

#[inline(always)]
fn store<const SEQ_CST: bool>(word: &AtomicU64, value: u64) {
    word.store(value, if SEQ_CST { Ordering::SeqCst } else { Ordering::Release });
}

#[inline(always)]
fn await_value<const PAUSE: bool>(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {
        if PAUSE {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared_memory::SharedFile;
    use super::*;

    #[test]
    fn both_sides_take_the_same_way() {
        let file = SharedFile::create(0).unwrap();
        let path = file.path();
        let side = |side| {
            let shared = Arc::new(Shared::open(&path).unwrap());
            let mut hand_over = HandOver::new(shared, side, Rounds { search: 20, measure: 20 }, None);
            assert!(hand_over.measure() > 0.0);
            (hand_over.way(), hand_over.count)
        };
        let (lead, follow) = std::thread::scope(|scope| {
            let follow = scope.spawn(|| side(Side::Follow));
            (side(Side::Lead), follow.join().unwrap())
        });
        assert_eq!(lead, follow);
    }
}
