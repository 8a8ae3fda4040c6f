//! What commands of a queue that begins anew say besides: a threshold that grows from pass to pass, and who hurries.

use super::command::Trigger;
use super::encoding::{EACH, EncodedCommand, LEFT, trigger_of};
use super::ring::LINE_WORDS;
use crate::base::Cause;

impl EncodedCommand {
    /// In a queue that begins anew: it is read when that is met, whose threshold grows by `more` with each pass.
    /// Instead of any other trigger.
    pub fn when_each(&mut self, first: Trigger, more: u32) -> Result<(), Cause> {
        self.when(first)?;
        self.words[0][0] |= EACH;
        self.words[0][LINE_WORDS - 1] |= u64::from(more) << 32;
        Ok(())
    }

    /// In a queue that begins anew: whoever raises the signal that it waits for leaves it to the queue's rank.
    pub fn leave_to_owner(&mut self) {
        self.words[0][0] |= LEFT;
    }

    /// Whether it is left to the queue's rank.
    pub fn is_left_to_owner(&self) -> bool {
        self.words[0][0] & LEFT != 0
    }

    /// What it waits for in that pass before it is read, if it does.
    #[inline(always)]
    pub fn head(&self, pass: u64) -> Option<Trigger> {
        let [first, threshold, .., last] = self.words[0];
        if first & EACH == 0 {
            return None;
        }
        trigger_of(first, threshold.wrapping_add(pass.wrapping_mul(last >> 32)))
    }
}
