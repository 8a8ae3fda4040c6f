//! How long repetitions are. Those of words and calls are always alike; blocks, and what takes seconds, are moved less
//! often in a usual run than in a long one.

use crate::limit::Rounds;
use serde::{Deserialize, Serialize};

/// How much one repetition does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Effort {
    pub(crate) hand_over: Rounds,
    /// All counts are divided by it: 1, but in tests.
    pub(crate) shorter: u64,
    /// Commands that ranks post to a contended queue.
    pub(crate) commands: u64,
    /// Rounds of plans beside work.
    rounds_beside: u64,
    /// Bytes that are moved each way, in no more than so many blocks.
    moved_bytes: u64,
    blocks_max: u64,
    /// Bytes of buffers that are more than caches hold.
    cold_bytes: usize,
}

impl Effort {
    /// Of a long run.
    pub(crate) const LONG: Effort = Effort {
        // 10^6 rounds decide which way is the quickest; a repetition is short, so that a disturbance hits few.
        hand_over: Rounds { search: 1_000_000, measure: 100_000 },
        shorter: 1,
        commands: 1_000_000,
        rounds_beside: 8,
        moved_bytes: 256 << 20,
        blocks_max: 4096,
        cold_bytes: 128 << 20,
    };
    /// Of a usual one.
    pub(crate) const USUAL: Effort = Effort {
        hand_over: Rounds { search: 200_000, measure: 50_000 },
        commands: 250_000,
        rounds_beside: 4,
        moved_bytes: 64 << 20,
        ..Effort::LONG
    };
    /// Of tests.
    #[cfg(test)]
    pub(crate) const TINY: Effort = Effort {
        hand_over: Rounds { search: 5, measure: 5 },
        shorter: 5_000,
        commands: 5_000,
        rounds_beside: 2,
        moved_bytes: 16 << 10,
        blocks_max: 4,
        cold_bytes: 64 << 10,
    };

    /// A count.
    pub(crate) fn times(&self, count: u64) -> u64 {
        (count / self.shorter).max(2)
    }

    pub(crate) fn rounds_beside(&self, rounds: u64) -> u64 {
        rounds.min(self.rounds_beside)
    }

    /// How many blocks a rotation has.
    pub(crate) fn places(&self, bytes: u64, is_cold: bool) -> usize {
        if is_cold { (self.cold_bytes / bytes as usize).max(2) } else { 1 }
    }

    /// Bytes of an area for blocks of that size.
    pub(crate) fn area(&self, bytes: u64) -> usize {
        self.places(bytes, true) * bytes as usize
    }

    /// Blocks that are moved each way.
    pub(crate) fn blocks(&self, bytes: u64) -> u64 {
        (self.moved_bytes / bytes).clamp(2, self.blocks_max)
    }
}
