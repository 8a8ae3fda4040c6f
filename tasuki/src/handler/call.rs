//! Calling handlers.

use crate::command::Effect;
use crate::handler::registry::{Handler, HandlerName, inline};
use crate::job::Job;
use crate::{Error, GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use tasuki_core::base::Cause;
use tasuki_core::engine::PendingCall;
use tasuki_core::queue::handler_call::Args;

/// An answer that will come. Dropped, nobody hears it; the handler runs all the same.
#[derive(Debug)]
#[must_use = "what the handler answers, or why it failed, is told by wait()"]
pub struct Reply<'job, R> {
    job: &'job Job,
    asked: PendingCall<'job>,
    value: PhantomData<fn() -> R>,
}

impl Job {
    /// Calls a handler of a rank; `to` may be this one. It runs there when a thread of that rank waits, or its helper
    /// looks. Calls of one rank to another run in their order.
    ///
    /// `args` are read now. Errors: the rank has no room for another call ([`Cause::Full`]), which is an ordinary
    /// answer: serve others, and try again; there is no such handler, or it is given another number of bytes; the
    /// rank has left. If the handler fails, [`Job::call_failure`] says so; [`Job::call_with_reply`] or [`Job::call_then`] tell
    /// more.
    /// Costs one line written, two for more than 8 bytes.
    pub fn call<A: Pod>(&self, to: Rank, handler: impl HandlerName, args: &A) -> Result<()> {
        self.call_in(to, handler, inline(args), None)
    }

    /// The same; when the handler has run, a signal of any rank is raised. If it fails, that is poisoned instead.
    pub fn call_then<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Effect,
    ) -> Result<()> {
        self.call_in(to, handler, inline(args), Some(effect))
    }

    /// Calls a handler with `count` values that lie at `from`, 64 KiB at most: they are copied to the called rank
    /// before the handler runs, and may be changed again when `effect` has happened.
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

    /// Calls a handler and asks for its answer.
    ///
    /// Errors as for [`Job::call`]; 256 answers can be waited for at once. Costs a line there and a line back.
    #[inline]
    pub fn call_with_reply<A: Pod, R: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
    ) -> Result<Reply<'_, R>> {
        self.call_with_reply_in(to, handler, inline(args))
    }

    /// The same with `count` values that lie at `from`, 64 KiB at most, which may be changed again when the answer has
    /// come.
    pub fn call_buffer_with_reply<A: Pod, R: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        from: GlobalPtr<A>,
        count: usize,
    ) -> Result<Reply<'_, R>> {
        self.call_with_reply_in(to, handler, Ok(at(from, count)))
    }

    /// The handler of that name, to be called without a search. Errors: there is none.
    pub fn handler(&self, name: &str) -> Result<Handler> {
        Handler::find(&self.worker, name)
            .map_err(|cause| self.worker.fault(cause, || format!("handler({name:?})")))
    }

    /// What [`Handlers::local`](crate::Handlers::local) made for this rank; `None` if nothing of that type.
    pub fn local<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.locals.get()
    }

    /// Why a call of this rank failed of which nobody else was told: the first, if one did. Calls that handlers made
    /// count as their rank's. Names the handler; what that said stands in the output of its rank.
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
        let asked = args.and_then(|args| {
            let number = handler.number(&self.worker, Some(size_of::<R>()))?;
            self.worker.call_with_reply(to, number, args)
        });
        match asked {
            Ok(asked) => Ok(Reply { job: self, asked, value: PhantomData }),
            Err(cause) => Err(self.refused(cause, "ask", to, handler)),
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

impl<R: Pod> Reply<'_, R> {
    /// Whether the answer has come, or a failure. Looks only; the rank's own calls and queues are served by waits.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.asked.has_come()
    }

    /// Waits for the answer. Serves peers, runs handlers and moves queues on meanwhile.
    ///
    /// Errors: the handler panicked or failed, with the beginning of what it said; the called rank died, or left.
    #[inline]
    pub fn wait(self) -> Result<R> {
        let (worker, to) = (&self.job.worker, self.asked.to());
        let value = worker.wait_reply(self.asked, &|| format!("wait(answer of rank {to})"))?;
        bytemuck::try_pod_read_unaligned(value.bytes())
            .map_err(|_| worker.fault(Cause::Bug("an answer of another size".into()), || "wait".into()))
    }
}
