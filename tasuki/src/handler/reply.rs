//! The reply to a call of a handler.

use super::argument::Outcome;
use crate::Result;
use crate::job::Job;
use crate::request::{Request, finish_limited, future_by_request};
use std::fmt;
use std::marker::PhantomData;
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Awaited, AwaitedCondition, PendingCall};

/// The reply to a call, which is still to come. Made by [`Handler::call`](crate::Handler::call).
///
/// If it is dropped, the reply is lost, but the handler runs all the same.
///
/// ```
/// use tasuki::{Handler, Handlers, Request};
///
/// const SQUARE: Handler<u64, u64> = Handler::new("square", |_, value| value * value);
///
/// tasuki::local_with(2, Handlers::new().add(SQUARE), |job| {
///     let next = job.rank_after(1);
///     let replies = (0..9).map(|value| SQUARE.call(job, next, &value)).collect::<tasuki::Result<Vec<_>>>()?;
///     for (value, mut reply) in (0..9).zip(replies) {
///         assert_eq!(reply.wait()?, value * value);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// A drop ends nothing: the handler runs all the same, and its result is lost. A result of more than 48 bytes stays in the
/// memory of the handler's rank until the caller needs the place of its reply again, or calls
/// [`Job::flush_calls`](crate::Job::flush_calls): at most 256 results of each caller
/// (docs/guide/memory.md has the formula). Polling again after a branch of a `select!`
/// was lost loses nothing.
#[must_use = "wait() returns the handler's result, or its failure"]
pub struct Reply<'job, R: Outcome + ?Sized> {
    job: &'job Job,
    /// Taken by the first wait.
    pending: Option<PendingCall<'job>>,
    awaited: AwaitedCondition,
    result: PhantomData<fn() -> Box<R>>,
}

impl<'job, R: Outcome + ?Sized> Reply<'job, R> {
    #[inline]
    pub(super) fn new(job: &'job Job, pending: PendingCall<'job>) -> Reply<'job, R> {
        Reply { job, pending: Some(pending), awaited: AwaitedCondition::default(), result: PhantomData }
    }
}

/// Errors of a wait: the handler panicked or failed, with its message; the called rank died or left. Cost: a result of
/// more than 48 bytes is copied twice, into memory of the handler's rank and from there.
impl<R: Outcome + ?Sized> Request for Reply<'_, R> {
    type Value = R::Owned;

    #[inline]
    fn test(&mut self) -> bool {
        let Some(pending) = &self.pending else { return true };
        pending.has_arrived() || !matches!(self.job.worker.test(&pending.arrival(), &String::new), Ok(false))
    }

    #[inline]
    fn wait(&mut self) -> Result<R::Owned> {
        let (worker, _limit) = (&self.job.worker, self.job.limited());
        if worker.has_limit() {
            finish_limited(self)?;
        }
        let Some(pending) = self.pending.take() else {
            let cause = Cause::AlreadyReturned { what: "the reply" };
            return Err(worker.fault(cause, || "wait(reply)".into()));
        };
        let to = pending.to();
        let value = worker.wait_reply(pending, &|| format!("wait(reply of rank {to})"))?;
        match R::read(value.len(), |into| value.read(into))? {
            Ok(result) => Ok(result),
            Err(cause) => {
                Err(worker.fault(cause, || format!("wait(reply of rank {to})")).with_peer(Some(to)))
            }
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        if let Some(arrival) = self.pending.as_ref().map(PendingCall::arrival) {
            self.awaited.set(&self.job.worker, Awaited::only(arrival), context.waker());
        }
        Poll::Pending
    }
}

future_by_request!(['job, R: Outcome + ?Sized] Reply<'job, R>);

impl<R: Outcome + ?Sized> fmt::Debug for Reply<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pending {
            Some(pending) => write!(f, "Reply(of rank {}, ready: {})", pending.to(), pending.has_arrived()),
            None => write!(f, "Reply(returned)"),
        }
    }
}
