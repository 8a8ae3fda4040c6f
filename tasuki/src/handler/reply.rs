//! The reply to a call of a handler.

use super::argument::Outcome;
use crate::Result;
use crate::job::Job;
use std::fmt;
use std::marker::PhantomData;
use tasuki_core::base::Cause;
use tasuki_core::engine::PendingCall;

/// The reply to a call, which is still to come. Made by [`Handler::call`](crate::Handler::call).
///
/// If it is dropped, the reply is lost, but the handler runs all the same.
///
/// ```
/// use tasuki::{Handler, Handlers};
///
/// const SQUARE: Handler<u64, u64> = Handler::new("square", |_, value| value * value);
///
/// tasuki::local_with(2, Handlers::new().add(SQUARE), |job| {
///     let next = job.rank_after(1);
///     let replies = (0..9).map(|value| SQUARE.call(job, next, &value)).collect::<tasuki::Result<Vec<_>>>()?;
///     for (value, reply) in (0..9).zip(replies) {
///         assert_eq!(reply.wait()?, value * value);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[must_use = "wait() returns the handler's result, or its failure"]
pub struct Reply<'job, R: Outcome + ?Sized> {
    job: &'job Job,
    pending: PendingCall<'job>,
    result: PhantomData<fn() -> Box<R>>,
}

impl<'job, R: Outcome + ?Sized> Reply<'job, R> {
    #[inline]
    pub(super) fn new(job: &'job Job, pending: PendingCall<'job>) -> Reply<'job, R> {
        Reply { job, pending, result: PhantomData }
    }

    /// Returns true if the reply, or a failure, has arrived. Only looks: it does not move the rank's own calls and
    /// queues on.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers};
    ///
    /// const NOTHING: Handler<(), ()> = Handler::new("nothing", |_, ()| ());
    ///
    /// tasuki::local_with(1, Handlers::new().add(NOTHING), |job| {
    ///     let reply = NOTHING.call(job, job.rank(), &())?;
    ///     assert!(!reply.is_ready()); // no thread of this rank has waited
    ///     job.serve()?;
    ///     assert!(reply.is_ready());
    ///     reply.wait()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.pending.has_arrived()
    }

    /// Waits for the reply. Meanwhile it serves peers, runs handlers and moves queues on.
    ///
    /// Errors: the handler panicked or failed, with its message; the called rank died or left. Cost: a result of more
    /// than 48 bytes is copied twice, into memory of the handler's rank and from there.
    #[inline]
    pub fn wait(self) -> Result<R::Owned> {
        let (worker, to) = (&self.job.worker, self.pending.to());
        let value = worker.wait_reply(self.pending, &|| format!("wait(reply of rank {to})"))?;
        match R::read(value.len(), |into| value.read(into))? {
            Some(result) => Ok(result),
            None => Err(worker.fault(Cause::Bug("a reply of another size".into()), || "wait".into())),
        }
    }
}

impl<R: Outcome + ?Sized> fmt::Debug for Reply<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply(of rank {}, ready: {})", self.pending.to(), self.is_ready())
    }
}
