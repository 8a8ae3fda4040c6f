//! Calls of handlers, and their replies.

use crate::command::Effect;
use crate::handler::handler_number::{Handler, HandlerName};
use crate::handler::inline_args::inline;
use crate::job::Job;
use crate::{Error, GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use tasuki_core::base::Cause;
use tasuki_core::engine::{AwaitedCondition, PendingCall};
use tasuki_core::queue::handler_call::Args;

/// The reply to a call, which is still to come. If it is dropped, the reply is lost, but the handler runs all the
/// same.
#[derive(Debug)]
#[must_use = "wait() returns the handler's reply, or its failure"]
pub struct Reply<'job, R> {
    pub(super) job: &'job Job,
    /// Taken by the first wait.
    pub(super) pending: Option<PendingCall<'job>>,
    pub(super) awaited: AwaitedCondition,
    value: PhantomData<fn() -> R>,
}

impl Job {
    /// Calls a handler of a rank; `to` may be this rank. The handler runs when a thread of that rank waits, or in
    /// that rank's helper. Calls from one rank to another run in order.
    ///
    /// `args` are read now. Errors: the rank has no room for another call ([`Cause::Full`]), which is an ordinary
    /// result: make a waiting call, and try again; there is no such handler, or it takes another number of bytes; the
    /// rank has left. If the handler fails, only [`Job::call_failure`] reports it; [`Job::call_with_reply`] and
    /// [`Job::call_then`] report more. Cost: one written cache line, two for more than 8 bytes.
    pub fn call<A: Pod>(&self, to: Rank, handler: impl HandlerName, args: &A) -> Result<()> {
        self.call_in(to, handler, inline(args), None)
    }

    /// Calls a handler like [`Job::call`], and raises a signal of any rank when the handler has
    /// run. If the handler fails, the signal is poisoned instead.
    pub fn call_then<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Effect,
    ) -> Result<()> {
        self.call_in(to, handler, inline(args), Some(effect))
    }

    /// Calls a handler with `count` values at `from`, at most 64 KiB. They are copied to the called rank before the
    /// handler runs, and may be changed again when `effect` has happened.
    pub fn call_with<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        from: GlobalPtr<A>,
        count: usize,
        effect: Effect,
    ) -> Result<()> {
        self.call_in(to, handler, Ok(at(from, count)), Some(effect))
    }

    /// Calls a handler that returns a reply.
    ///
    /// Errors: those of [`Job::call`]; 256 replies are pending already. Cost: one cache line in each direction.
    #[inline]
    pub fn call_with_reply<A: Pod, R: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
    ) -> Result<Reply<'_, R>> {
        self.call_with_reply_in(to, handler, inline(args))
    }

    /// Calls a handler like [`Job::call_with_reply`], with `count` values at `from`, at most 64
    /// KiB. They may be changed again when the reply has arrived.
    pub fn call_buffer_with_reply<A: Pod, R: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        from: GlobalPtr<A>,
        count: usize,
    ) -> Result<Reply<'_, R>> {
        self.call_with_reply_in(to, handler, Ok(at(from, count)))
    }

    /// Finds a handler by its name, so that its calls need no search. Errors: there is no such handler.
    pub fn handler(&self, name: &str) -> Result<Handler> {
        Handler::find(&self.worker, name)
            .map_err(|cause| self.worker.fault(cause, || format!("handler({name:?})")))
    }

    /// The value that [`Handlers::local`](crate::Handlers::local) made for this rank; `None` if no value of this type
    /// was made.
    pub fn local<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.locals.get()
    }

    /// The first failure of a call of this rank that has no effect and no reply to report it. Calls that this rank's
    /// handlers made are included. The error names the handler; the output of the handler's rank has the handler's
    /// message.
    pub fn call_failure(&self) -> Option<Error> {
        let cause = self.worker.call_failure()?;
        Some(self.worker.fault(cause, || "call(..)".into()))
    }

    fn call_in(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: Result<Args, Cause>,
        effect: Option<Effect>,
    ) -> Result<()> {
        let posted = args.and_then(|args| {
            let number = handler.number(&self.worker, None)?;
            self.worker.call(to, number, args, [effect.map(|effect| effect.0), None])
        });
        posted.map_err(|cause| self.refused(cause, "call", to, handler))
    }

    #[inline]
    fn call_with_reply_in<R: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: Result<Args, Cause>,
    ) -> Result<Reply<'_, R>> {
        let pending = args.and_then(|args| {
            let number = handler.number(&self.worker, Some(size_of::<R>()))?;
            self.worker.call_with_reply(to, number, args)
        });
        match pending {
            Ok(pending) => {
                let (pending, awaited) = (Some(pending), AwaitedCondition::default());
                Ok(Reply { job: self, pending, awaited, value: PhantomData })
            }
            Err(cause) => Err(self.refused(cause, "call_with_reply", to, handler)),
        }
    }

    #[cold]
    fn refused(&self, cause: Cause, call: &str, to: Rank, handler: impl HandlerName) -> Error {
        self.worker.fault(cause, || format!("{call}({handler:?} of rank {to})"))
    }
}

fn at<A: Pod>(from: GlobalPtr<A>, count: usize) -> Args {
    Args::at(from.address(), (count as u64).saturating_mul(size_of::<A>() as u64))
}
