//! What ranks are to measure and with how much effort: made by the bench, handed to its ranks as one argument.

use super::case::Case;
use super::limit::Rounds;
use super::repetition::Patience;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The argument of two ranks that play cases against limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Which cases; those for two ranks among them.
    pub(super) cases: Vec<Case>,
    /// Bytes of the blocks of bandwidth cases.
    pub(super) sizes: Vec<u64>,
    /// Where the limit's memory is opened.
    pub(super) shared: String,
    /// Whether the limit takes memory for its blocks before the job does.
    pub(super) limit_first: bool,
    /// How much of everything.
    pub(super) effort: Effort,
}

/// How much is done for a figure.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Effort {
    /// Rounds of the hand-over.
    pub(super) hand_over: Rounds,
    /// Ping-pongs of a repetition.
    pub(super) rounds: u64,
    /// Words that get and atomic visit,
    pub(super) words: usize,
    /// so many times in a repetition.
    pub(super) passes: u64,
    /// Bytes that one direction of a bandwidth case moves in a repetition,
    pub(super) moved_bytes: u64,
    /// in no more blocks than this.
    pub(super) blocks_max: u64,
    /// Bytes of buffers through which a cold case rotates.
    pub(super) cold_bytes: usize,
    /// When to stop.
    pub(super) patience: Patience,
}

impl Effort {
    /// What figures for people are made with.
    pub(super) const FULL: Effort = Effort {
        // 10^6 rounds decide which way is the quickest; a repetition is short, so that a disturbance hits few.
        hand_over: Rounds { search: 1_000_000, measure: 100_000 },
        rounds: 100_000,
        words: 10_000,
        passes: 10,
        moved_bytes: 256 << 20,
        blocks_max: 4096,
        cold_bytes: 128 << 20,
        // For each of two jobs.
        patience: Patience { wanted: 5, repetitions_max: 30, time_max: Duration::from_secs(6) },
    };

    /// What walks every path once and proves nothing about speed.
    #[cfg(test)]
    pub(super) const TINY: Effort = Effort {
        hand_over: Rounds { search: 5, measure: 5 },
        rounds: 20,
        words: 100,
        passes: 2,
        moved_bytes: 16 << 10,
        blocks_max: 4,
        cold_bytes: 64 << 10,
        patience: Patience { wanted: 1, repetitions_max: 2, time_max: Duration::from_secs(5) },
    };

    /// Buffers of `bytes` bytes through which a state rotates.
    pub(super) fn slots(&self, bytes: u64, cold: bool) -> usize {
        if cold { (self.cold_bytes / bytes as usize).max(2) } else { 1 }
    }

    /// Bytes that one area of buffers needs for all these sizes.
    pub(super) fn area(&self, sizes: &[u64]) -> usize {
        sizes.iter().map(|&bytes| self.slots(bytes, true) * bytes as usize).max().unwrap_or(0)
    }

    /// Blocks of `bytes` bytes that a repetition moves in each direction.
    pub(super) fn blocks(&self, bytes: u64) -> u64 {
        (self.moved_bytes / bytes).clamp(2, self.blocks_max)
    }
}
