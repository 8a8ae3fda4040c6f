//! Encoding of commands in a repeating queue: a threshold that grows with each round, and
//! the bit that leaves a command to the queue's rank.

use super::command::Trigger;
use super::encoding::{EncodedCommand, OWNER_ONLY, THRESHOLD_GROWS, trigger_of};
use super::ring::LINE_WORDS;
use crate::base::Cause;

impl EncodedCommand {
    /// Sets the trigger that must be met before a repeating queue reads the command. Its threshold grows by `more` with
    /// each round. The command may have no other trigger.
    pub fn when_each(&mut self, first: Trigger, more: u32) -> Result<(), Cause> {
        self.when(first)?;
        self.words[0][0] |= THRESHOLD_GROWS;
        self.words[0][LINE_WORDS - 1] |= u64::from(more) << 32;
        Ok(())
    }

    /// Leaves a command of a repeating queue to the queue's rank: a rank that raises the signal does not run it.
    pub fn leave_to_owner(&mut self) {
        self.words[0][0] |= OWNER_ONLY;
    }

    /// Returns true if it is left to the queue's rank.
    pub fn is_left_to_owner(&self) -> bool {
        self.words[0][0] & OWNER_ONLY != 0
    }

    /// Returns the trigger that must be met before the command is read in round `pass`, if it has one.
    #[inline(always)]
    pub fn head(&self, pass: u64) -> Option<Trigger> {
        let [first, threshold, .., last] = self.words[0];
        if first & THRESHOLD_GROWS == 0 {
            return None;
        }
        trigger_of(first, threshold.wrapping_add(pass.wrapping_mul(last >> 32)))
    }
}
