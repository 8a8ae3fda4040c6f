//! What ranks are to measure and with how much effort: made by the bench, handed to its ranks as one argument.

use crate::case::Case;
use crate::cases::handler_call;
use crate::harness::repetition::{NEEDED, Patience};
use crate::limit::Rounds;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tasuki::Handlers;

/// The argument of ranks that play cases in turn with limits and other libraries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Which cases.
    pub(crate) cases: Vec<Case>,
    /// Bytes of the blocks of bandwidth cases; their usual ones if there are none.
    pub(crate) sizes: Vec<u64>,
    /// Where the limit's memory is opened.
    pub(crate) shared: String,
    /// Whether the limit takes memory for its blocks before the job does.
    pub(crate) limit_first: bool,
    /// Whether the bench has other libraries to be measured in turn.
    pub(crate) has_peers: bool,
    /// How much of everything.
    pub(crate) effort: Effort,
}

impl Plan {
    /// The handlers that its job has: none if no case calls any.
    pub(crate) fn handlers(&self) -> Handlers {
        if self.cases.contains(&Case::Handler) { handler_call::handlers() } else { Handlers::new() }
    }
}

/// How much is done for a figure.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Rounds of the hand-over.
    pub(crate) hand_over: Rounds,
    /// Ping-pongs of a repetition,
    pub(crate) rounds: u64,
    /// of one with many receives outstanding.
    pub(crate) posted_rounds: u64,
    /// Windows of receives whose posting is timed,
    pub(crate) gap_windows: u64,
    /// and windows of the message rate.
    pub(crate) rate_windows: u64,
    /// Rows of commands that are posted, and chains of them.
    pub(crate) command_rounds: u64,
    /// Commands that many ranks post to one queue.
    pub(crate) commands: u64,
    /// Rounds of work beside which is copied, of which a repetition is the median,
    pub(crate) overlaps: u64,
    /// and values that are worked out in each.
    pub(crate) points: u64,
    /// Collective calls back to back.
    pub(crate) calls: u64,
    /// Words that get and atomic visit,
    pub(crate) words: usize,
    /// so many times in a repetition.
    pub(crate) passes: u64,
    /// Bytes that one direction of a bandwidth case moves in a repetition,
    pub(crate) moved_bytes: u64,
    /// in no more blocks than this.
    pub(crate) blocks_max: u64,
    /// Bytes of buffers through which a cold case rotates.
    pub(crate) cold_bytes: usize,
    /// When to stop.
    pub(crate) patience: Patience,
}

impl Effort {
    /// What figures for people are made with.
    pub(crate) const FULL: Effort = Effort {
        // 10^6 rounds decide which way is the quickest; a repetition is short, so that a disturbance hits few.
        hand_over: Rounds { search: 1_000_000, measure: 100_000 },
        rounds: 100_000,
        posted_rounds: 20_000,
        gap_windows: 200,
        rate_windows: 2000,
        command_rounds: 40,
        commands: 1_000_000,
        // Some milliseconds: a hundred copies.
        overlaps: 5,
        points: 4 << 20,
        calls: 1000,
        words: 10_000,
        passes: 10,
        moved_bytes: 256 << 20,
        blocks_max: 4096,
        cold_bytes: 128 << 20,
        // For each of two jobs.
        patience: Patience { wanted: 5, repetitions_max: 30, time_max: Duration::from_secs(6) },
    };

    /// The same beside other libraries, each of which takes its turn: fewer repetitions of more figures.
    pub(crate) const AGAINST: Effort = Effort {
        patience: Patience { wanted: 3, repetitions_max: 12, time_max: Duration::from_secs(20) },
        ..Effort::FULL
    };

    /// For a choice of which two ways is quicker.
    pub(crate) const TUNE: Effort = Effort {
        patience: Patience { wanted: 4, repetitions_max: 8, time_max: Duration::from_secs(2) },
        ..Effort::FULL
    };

    /// What walks every path once and proves nothing about speed.
    #[cfg(test)]
    pub(crate) const TINY: Effort = Effort {
        hand_over: Rounds { search: 5, measure: 5 },
        rounds: 20,
        posted_rounds: 5,
        gap_windows: 2,
        rate_windows: 3,
        command_rounds: 3,
        commands: 5_000,
        overlaps: 1,
        points: 10_000,
        calls: 10,
        words: 100,
        passes: 2,
        moved_bytes: 16 << 10,
        blocks_max: 4,
        cold_bytes: 64 << 10,
        patience: Patience { wanted: 1, repetitions_max: 2, time_max: Duration::from_secs(5) },
    };

    /// The same in so many jobs: enough repetitions in all of them together.
    pub(crate) fn in_jobs(self, jobs: usize) -> Effort {
        let wanted = self.patience.wanted.max(NEEDED.div_ceil(jobs));
        Effort { patience: Patience { wanted, ..self.patience }, ..self }
    }

    /// Buffers of `bytes` bytes through which a state rotates.
    pub(crate) fn slots(&self, bytes: u64, cold: bool) -> usize {
        if cold { (self.cold_bytes / bytes as usize).max(2) } else { 1 }
    }

    /// Bytes that one area of buffers needs for all these sizes.
    pub(crate) fn area(&self, sizes: &[u64]) -> usize {
        sizes.iter().map(|&bytes| self.slots(bytes, true) * bytes as usize).max().unwrap_or(0)
    }

    /// Windows of `window` such blocks that a repetition moves.
    pub(crate) fn windows(&self, bytes: u64, window: u64) -> u64 {
        (self.moved_bytes / (bytes * window)).clamp(2, self.blocks_max)
    }

    /// Blocks of `bytes` bytes that a repetition moves in each direction.
    pub(crate) fn blocks(&self, bytes: u64) -> u64 {
        (self.moved_bytes / bytes).clamp(2, self.blocks_max)
    }
}
