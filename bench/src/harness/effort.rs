//! How long repetitions are. A repetition of words or of calls does the same amount in every run; the hand-over,
//! blocks, contended queues and work beside plans are repeated less often in a usual run than in a long one.

use crate::limit::Rounds;
use serde::{Deserialize, Serialize};

/// How much one repetition does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Effort {
    pub(crate) hand_over: Rounds,
    pub(crate) is_long: bool,
    /// The divisor of all counts: 1, except in tests.
    pub(crate) shorter: u64,
    /// Number of commands that ranks post to a contended queue.
    pub(crate) commands: u64,
    /// Number of rounds of plans beside work.
    rounds_beside: u64,
    /// Number of bytes that are moved in each direction; they are moved in at most `blocks_max` blocks.
    moved_bytes: u64,
    blocks_max: u64,
    /// Number of bytes of buffers that exceed the caches.
    cold_bytes: usize,
}

impl Effort {
    /// The effort of a long run.
    pub(crate) const LONG: Effort = Effort {
        // 10^6 rounds determine the fastest variant. A repetition is short, so that a disturbance affects few
        // repetitions.
        hand_over: Rounds { search: 1_000_000, measure: 100_000 },
        is_long: true,
        shorter: 1,
        commands: 1_000_000,
        rounds_beside: 8,
        moved_bytes: 256 << 20,
        blocks_max: 4096,
        cold_bytes: 128 << 20,
    };
    /// The effort of a usual run.
    pub(crate) const USUAL: Effort = Effort {
        hand_over: Rounds { search: 200_000, measure: 50_000 },
        is_long: false,
        commands: 250_000,
        rounds_beside: 4,
        moved_bytes: 64 << 20,
        ..Effort::LONG
    };
    /// The effort of tests.
    #[cfg(test)]
    pub(crate) const TINY: Effort = Effort {
        hand_over: Rounds { search: 5, measure: 5 },
        is_long: false,
        shorter: 5_000,
        commands: 5_000,
        rounds_beside: 2,
        moved_bytes: 16 << 10,
        blocks_max: 4,
        cold_bytes: 64 << 10,
    };

    /// Returns the number of repetitions that replaces `count`.
    pub(crate) fn times(&self, count: u64) -> u64 {
        (count / self.shorter).max(2)
    }

    pub(crate) fn rounds_beside(&self, rounds: u64) -> u64 {
        rounds.min(self.rounds_beside)
    }

    /// Returns the number of blocks in a rotation.
    pub(crate) fn places(&self, bytes: u64, is_cold: bool) -> usize {
        if is_cold { (self.cold_bytes / bytes as usize).max(2) } else { 1 }
    }

    /// Returns the number of bytes of an area for blocks of this size.
    pub(crate) fn area(&self, bytes: u64) -> usize {
        self.places(bytes, true) * bytes as usize
    }

    /// Returns the number of blocks that are moved in each direction.
    pub(crate) fn blocks(&self, bytes: u64) -> u64 {
        (self.moved_bytes / bytes).clamp(2, self.blocks_max)
    }
}
