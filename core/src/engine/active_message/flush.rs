//! The end of all calls that a rank has posted.

use super::request::{PendingCall, WhenFull};
use crate::base::sync::Ordering;
use crate::base::{Cause, Rank, Result};
use crate::engine::worker::Worker;
use crate::queue::handler_call::{Args, FLUSH};
use crate::queue::inline_data::Inline;
use std::collections::VecDeque;

/// Most flushes that a rank waits for at a time. Other threads of the rank need reply lines, too.
const FLUSHES_MAX: usize = 64;

impl Worker {
    /// Returns when all calls have run that this rank has posted. The error is the first failure of a call that neither
    /// a reply nor an effect has reported; the others are forgotten. `call` names the wait in errors and reports.
    ///
    /// Calls of one rank through one call queue run in order. So a flush posts one more call to each queue that this
    /// rank has used, and waits for the replies. Each says how the earlier calls ended.
    pub fn flush_calls(&self, call: &dyn Fn() -> String) -> Result<()> {
        let Some(calls) = self.calls() else { return Ok(()) };
        self.release_unread_replies(calls);
        let (mut first, mut pending) = (Ok(()), VecDeque::new());
        let mut note = |outcome: Result<()>| {
            if first.is_ok() {
                first = outcome;
            }
        };
        let wait = |one: PendingCall<'_>| self.wait_reply(one, call).map(drop);
        for (to, posted) in Rank::all(self.size()).zip(&calls.posted) {
            if posted.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let levels = posted.swap(0, Ordering::SeqCst);
            for level in (0..calls.levels.len()).filter(|level| levels >> level & 1 != 0) {
                let none = Args::Inline(Inline::EMPTY);
                let post = || self.write_call_with_reply(calls, to, level, FLUSH, none);
                let posted_flush = loop {
                    match (self.until_room(WhenFull::Wait, post), pending.is_empty()) {
                        // The program has many unread replies. The replies to flushes free lines, too.
                        (Err(Cause::Full { .. }), false) => {
                            pending.pop_front().into_iter().for_each(|one| note(wait(one)))
                        }
                        (posted_flush, _) => break posted_flush,
                    }
                };
                match posted_flush {
                    Ok(one) => pending.push_back(one),
                    Err(cause) => {
                        posted.fetch_or(1 << level, Ordering::SeqCst); // the next flush waits for these calls
                        note(Err(self.fault(cause, call)));
                    }
                }
                if pending.len() == FLUSHES_MAX {
                    pending.pop_front().into_iter().for_each(|one| note(wait(one)));
                }
            }
        }
        pending.into_iter().for_each(|one| note(wait(one)));
        if let Some(failed) = calls.failed.take(self.rank()) {
            note(Err(
                self.fault(Cause::Failed { rank: self.rank(), cause: failed.into_cause().into() }, call)
            ));
        }
        first
    }
}
