//! Pauses of a sender that waits for words of another rank, which nothing tells it of.

use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::{Cause, Result};
use tasuki_core::engine::{Condition, Deadline, WaitEvent, Worker};

/// Pauses that become longer, so that waiting senders do little traffic.
#[derive(Debug)]
pub(crate) struct GrowingPause {
    next_ns: u64,
    longest_ns: u64,
    /// The longest pause, unless the first one is longer.
    limit_ns: u64,
}

impl GrowingPause {
    /// The first pause and the longest one, in ns.
    pub(crate) fn new(first_ns: u64, longest_ns: u64) -> GrowingPause {
        GrowingPause { next_ns: first_ns, longest_ns, limit_ns: longest_ns }
    }

    /// The next pause is that long, in ns.
    pub(crate) fn begin_again(&mut self, first_ns: u64) {
        self.next_ns = first_ns;
        self.longest_ns = self.limit_ns.max(first_ns);
    }

    /// Returns the length of the next pause, in ns. The one after it is longer.
    pub(crate) fn take_ns(&mut self) -> u64 {
        let next_ns = self.next_ns;
        self.lengthen();
        next_ns
    }

    fn lengthen(&mut self) {
        self.next_ns = (2 * self.next_ns).min(self.longest_ns);
    }

    /// Waits for an event, or a pause. Returns true if the event has happened. Errors: those of a wait until the
    /// deadline.
    pub(crate) fn wait(
        &mut self,
        worker: &Worker,
        event: Arc<dyn WaitEvent>,
        deadline: Deadline,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let pause = Deadline::after(worker.now_ns(), Duration::from_nanos(self.next_ns));
        match worker.wait(&Condition::Event(event), pause.or_earlier(deadline), call) {
            Ok(()) => Ok(true),
            Err(error) if !error.is_timeout() => Err(error),
            Err(_) if worker.now_ns() >= deadline.until_ns() => {
                Err(worker.fault(Cause::TimedOut { after: deadline.limit() }, call))
            }
            Err(_) => {
                self.lengthen();
                Ok(false)
            }
        }
    }
}
