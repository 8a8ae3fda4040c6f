//! Triggers: the moments when signals reach a count.

use crate::Result;
use crate::request::{Request, future_by_request};
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition, Worker};
use tasuki_core::fabric::SignalCell;
use tasuki_core::queue::command::Trigger as CoreTrigger;

/// The moment when this rank's counter of a signal has reached a threshold. Made by
/// [`Signal::reaches`](crate::Signal::reaches).
///
/// As a request it is finished when the counter has reached the threshold. It may be waited for any number of times.
/// Errors of a wait, and its cost: those of [`Signal::wait_at_least`](crate::Signal::wait_at_least); but a wait does
/// not have the limit of the handle on which the signal was made ([time limits](Request#time-limits)).
///
/// As the condition of a command ([`Command::when`](crate::Command::when)) it means the counter of the rank that owns
/// the command's queue.
///
/// ```
/// use tasuki::onesided::Trigger;
/// use tasuki::{Command, Request};
/// tasuki::local(2, |job| {
///     let (queue, arrived, passed) = (job.queue(4)?, job.signal()?, job.signal()?);
///     let peer = job.rank_after(1);
///     let comes: Trigger<'_> = arrived.reaches(1); // as the condition of a command
///     queue.post(Command::nothing().when(comes).then(passed.on(peer).add(1)))?;
///     job.raise(arrived.on(peer), 1)?;
///     passed.reaches(1).wait()?; // as a request
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Trigger<'job> {
    worker: &'job Arc<Worker>,
    signal: u32,
    cell: SignalCell,
    threshold: u64,
    awaited: AwaitedCondition,
}

impl<'job> Trigger<'job> {
    /// The moment when `signal`, whose counter of this rank is at `cell`, reaches a threshold.
    pub(crate) fn new(
        worker: &'job Arc<Worker>,
        (signal, cell): (u32, SignalCell),
        threshold: u64,
    ) -> Trigger<'job> {
        Trigger { worker, signal, cell, threshold, awaited: AwaitedCondition::default() }
    }

    /// The serial number of the worker of its job, and the trigger of a command.
    pub(crate) fn into_core(self) -> (u64, CoreTrigger) {
        (self.worker.serial(), CoreTrigger { signal: self.signal, threshold: self.threshold })
    }

    fn condition(&self) -> Condition {
        Condition::Signal(self.cell, self.threshold, None)
    }
}

/// Names a wait.
pub(crate) fn wait_call(signal: u32, threshold: u64) -> String {
    format!("wait(signal {signal} >= {threshold})")
}

impl Request for Trigger<'_> {
    type Value = ();

    fn test(&mut self) -> bool {
        !matches!(self.worker.test(&self.condition(), &String::new), Ok(false))
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        let call = || wait_call(self.signal, self.threshold);
        self.worker.wait_signal(self.cell, self.threshold, None, &call)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        self.awaited.set(self.worker, Awaited::only(self.condition()), context.waker());
        Poll::Pending
    }
}

future_by_request!(['job] Trigger<'job>);
