//! Failures of calls that have neither a reply nor effects, until the rank that called asks for them.

use crate::base::{Cause, Rank};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The failure of a call.
#[derive(Debug)]
pub(super) struct FailedCall {
    /// The rank that called.
    from: Rank,
    pub(super) handler: u8,
    pub(super) cause: Cause,
}

impl FailedCall {
    /// The cause, as the rank that called reports it.
    pub(super) fn into_cause(self) -> Cause {
        match self.cause {
            Cause::Program(text) => Cause::HandlerFailed { handler: self.handler, name: String::new(), text },
            cause => cause,
        }
    }
}

/// The first failure of each calling rank.
#[derive(Debug, Default)]
pub(super) struct FailedCalls(Mutex<Vec<FailedCall>>);

impl FailedCalls {
    /// Records a failure, unless an earlier one of that rank is here.
    pub(super) fn record(&self, from: Rank, handler: u8, cause: Cause) {
        let mut failed = self.failed();
        if failed.iter().all(|call| call.from != from) {
            failed.push(FailedCall { from, handler, cause });
        }
    }

    /// Takes the failure of that rank's calls.
    pub(super) fn take(&self, from: Rank) -> Option<FailedCall> {
        let mut failed = self.failed();
        let at = failed.iter().position(|call| call.from == from)?;
        Some(failed.swap_remove(at))
    }

    fn failed(&self) -> MutexGuard<'_, Vec<FailedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_each_rank_is_kept_until_it_is_taken() {
        let failed = FailedCalls::default();
        failed.record(Rank(1), 7, Cause::JobOver);
        failed.record(Rank(2), 8, Cause::JobOver);
        failed.record(Rank(1), 9, Cause::JobOver);
        let take = |rank| failed.take(Rank(rank)).map(|call| call.handler);
        assert_eq!((take(1), take(1), take(2), take(0)), (Some(7), None, Some(8), None));
    }
}
