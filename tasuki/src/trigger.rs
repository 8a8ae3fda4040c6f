//! Triggers: the moments when signals reach a count.

use crate::request::{Request, future_by_request};
use crate::{Result, Signal};
use std::task::{self, Poll};
use tasuki_core::engine::{Awaited, AwaitedCondition};
use tasuki_core::queue::command::Trigger as CoreTrigger;

/// The moment when this rank's counter of a signal has reached a threshold. Made by [`Signal::reaches`].
///
/// As a request it is finished when the counter has reached the threshold. It may be waited for any number of times.
/// Errors of a wait, and its cost: those of [`Signal::wait_at_least`].
///
/// As the condition of a command ([`Command::when`](crate::Command::when)) it means the counter of the rank that owns the
/// command's queue.
///
/// # Cancel safety
///
/// Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Trigger<'job> {
    signal: Signal<'job>,
    threshold: u64,
    awaited: AwaitedCondition,
}

impl<'job> Trigger<'job> {
    pub(crate) fn new(signal: Signal<'job>, threshold: u64) -> Trigger<'job> {
        Trigger { signal, threshold, awaited: AwaitedCondition::default() }
    }

    /// The serial number of the worker of its job, and the trigger of a command.
    pub(crate) fn into_core(self) -> (u64, CoreTrigger) {
        let trigger = CoreTrigger { signal: self.signal.index(), threshold: self.threshold };
        (self.signal.job().worker.serial(), trigger)
    }
}

impl Request for Trigger<'_> {
    type Value = ();

    fn test(&mut self) -> bool {
        let condition = self.signal.condition(self.threshold);
        !matches!(self.signal.job().worker.test(&condition, &String::new), Ok(false))
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        self.signal.wait_at_least(self.threshold)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        let awaited = Awaited::only(self.signal.condition(self.threshold));
        self.awaited.set(&self.signal.job().worker, awaited, context.waker());
        Poll::Pending
    }
}

future_by_request!(['job] Trigger<'job>);
