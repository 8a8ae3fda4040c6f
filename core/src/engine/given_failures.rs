//! The failures of other ranks that calls of a rank have returned. The program may return one of them in an error that
//! hides it, as those of the crate anyhow do, which tell neither their type nor their source: their text is that of the
//! failure. An error that adds something has the failure as its source, or is the program's own.

use crate::base::{Cause, Error, ErrorKind};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of failures that are kept: the last ones. A program that ends after a failure makes few calls in between.
const KEPT: usize = 8;

/// The last failures.
#[derive(Debug, Default)]
pub(super) struct GivenFailures(Mutex<VecDeque<Error>>);

impl GivenFailures {
    /// Keeps an error that a call returns, if it follows from a failure elsewhere.
    pub(super) fn keep(&self, error: &Error) {
        use Cause::{CommunicatorFailed, JobOver, QueueDropped, QueueUnwound};
        let follows =
            matches!(error.cause(), CommunicatorFailed { .. } | JobOver | QueueDropped | QueueUnwound { .. });
        if follows || error.kind() == ErrorKind::PeerFailed {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(KEPT - 1);
            kept.push_front(error.clone());
        }
    }

    /// Returns the failure that an error of the program hides, if there is one; otherwise the error.
    pub(super) fn reveal(&self, error: Error) -> Error {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find_map(|kept| error.reveal(kept)).unwrap_or(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rank;
    use std::time::Duration;

    #[test]
    fn an_error_of_the_program_that_hides_a_failure_is_that_failure() {
        let given = GivenFailures::default();
        let died = |peer| Cause::PeerDied { peer, how: "signal 9".into(), ago: Duration::from_millis(2) };
        for peer in [1, 2] {
            given.keep(&Error::new(died(Rank(peer))).in_call(|| "job.barrier()".into()).on_rank(Rank(0)));
        }
        given.keep(&Error::new(Cause::NullAddress).on_rank(Rank(0)));
        let text = "rank 0: job.barrier(): rank 1 died (signal 9) 2ms ago";
        let hidden = given.reveal(Error::program(format!("{text}\n  hint: see there")));
        assert_eq!((hidden.cause(), &*hidden.headline()), (&died(Rank(1)), text));
        assert!(!hidden.to_string().contains("\n  in "), "{hidden}");
        // A call has named itself in the error after it was kept.
        let in_call = given.reveal(Error::program("rank 0: step(3): rank 1 died (signal 9) 2ms ago"));
        assert_eq!((in_call.cause(), in_call.call()), (&died(Rank(1)), "step(3)"));
        assert!(in_call.to_string().contains("\n  in its step job.barrier()\n"), "{in_call}");
        // Errors of the program's own, some of which quote a failure.
        let quoted =
            [format!("no bread ({text})"), format!("{text}, and no bread"), format!("{text}\nno bread")];
        for other in quoted.iter().map(|text| &**text).chain(["no bread", "the global address is null"]) {
            assert_eq!(given.reveal(Error::program(other)).kind(), ErrorKind::Program, "{other}");
        }
        for _ in 0..KEPT {
            given.keep(&Error::new(Cause::JobOver));
        }
        assert_eq!(given.reveal(Error::program(text)).kind(), ErrorKind::Program, "long ago");
    }
}
