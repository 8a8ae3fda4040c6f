//! Calls of handlers.

use super::argument::{Argument, Outcome};
use super::declaration::Handler;
use super::registry::HandlerCx;
use super::reply::Reply;
use crate::command::{Command, Effect};
use crate::job::Job;
use crate::onesided::GlobalSlice;
use crate::{Error, Rank, Result};
use tasuki_core::base::Cause;
use tasuki_core::engine::WhenFull;
use tasuki_core::queue::handler_call::Args;
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Handler<A, R> {
    /// Calls the handler on rank `to`, which may be this rank. [`Request::wait`](crate::Request::wait) returns its
    /// result.
    ///
    /// `args` are read now. If there is no room for the call, it waits, and runs handlers of this rank meanwhile.
    /// Errors: the job has no such handler; 256 replies of this rank have not been read; the rank has left. Cost: one
    /// cache line in each direction; two for an argument of 9 to 48 bytes. A longer argument is copied into job memory
    /// of this rank, and from there by the called rank.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Request};
    ///
    /// const LENGTH: Handler<[u8], usize> = Handler::new("length", |_, text| text.len());
    ///
    /// tasuki::local_with(2, Handlers::new().add(LENGTH), |job| {
    ///     let long = vec![b'x'; 1_000_000];
    ///     assert_eq!(LENGTH.call(job, job.rank_after(1), &long)?.wait()?, 1_000_000);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn call<'job>(&self, job: &'job Job, to: Rank, args: &A) -> Result<Reply<'job, R>> {
        self.call_in(job, to, args, WhenFull::Wait)
    }

    /// Calls the handler like [`Handler::call`], but never waits for room.
    ///
    /// Errors: those of [`Handler::call`]; there is no room ([`ErrorKind::Full`](crate::ErrorKind::Full)). That is an
    /// ordinary result: run handlers ([`Job::serve`]), so that a peer that waits for this rank can go on, and try
    /// again.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Request};
    ///
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    ///
    /// tasuki::local_with(2, Handlers::new().add(DOUBLE), |job| {
    ///     for value in 0..1000 {
    ///         let mut reply = loop {
    ///             match DOUBLE.try_call(job, job.rank_after(1), &value) {
    ///                 Err(error) if error.is_full() => job.serve()?,
    ///                 reply => break reply?,
    ///             };
    ///         };
    ///         assert_eq!(reply.wait()?, 2 * value);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn try_call<'job>(&self, job: &'job Job, to: Rank, args: &A) -> Result<Reply<'job, R>> {
        self.call_in(job, to, args, WhenFull::Fail)
    }

    #[inline(always)]
    fn call_in<'job>(
        &self,
        job: &'job Job,
        to: Rank,
        args: &A,
        when_full: WhenFull,
    ) -> Result<Reply<'job, R>> {
        let _limit = job.limited();
        let number = self.number(&job.worker);
        let call = |number, bytes: &[u8]| job.worker.call_with_reply(to, number, bytes, when_full);
        match number.and_then(|number| args.with_bytes(|bytes| call(number, bytes))?) {
            Ok(pending) => Ok(Reply::new(job, pending)),
            Err(cause) => {
                let name = if matches!(when_full, WhenFull::Fail) { "try_call" } else { "call" };
                Err(self.refused(job, cause, name, to))
            }
        }
    }

    /// Calls the handler without a reply; its result is lost. [`Job::flush_calls`] waits for it and reports a failure.
    ///
    /// Waits for room, and runs handlers of this rank meanwhile. Errors: those of [`Handler::call`]. Cost: one written
    /// cache line; two for an argument of 9 to 48 bytes.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tasuki::{Handler, HandlerCx, Handlers, Rank};
    ///
    /// fn add(cx: &HandlerCx<'_>, value: &u64) {
    ///     cx.local::<AtomicU64>().fetch_add(*value, Ordering::Relaxed);
    /// }
    /// const ADD: Handler<u64, ()> = Handler::new("add", add);
    ///
    /// tasuki::local_with(3, Handlers::new().local(AtomicU64::default).add(ADD), |job| {
    ///     for value in 1..=10_000 {
    ///         ADD.post(job, Rank(0), &value)?;
    ///     }
    ///     job.flush_calls()?;
    ///     job.barrier()?; // all ranks have flushed
    ///     if job.rank() == 0 {
    ///         let sum = job.local::<AtomicU64>().expect("all ranks have one").load(Ordering::Relaxed);
    ///         assert_eq!(sum, 3 * 50_005_000);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn post(&self, job: &Job, to: Rank, args: &A) -> Result<()> {
        self.post_in(job, to, args, None)
    }

    /// Calls the handler like [`Handler::post`], and raises a signal of any rank when it has run. If it fails, the
    /// signal is poisoned instead.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers};
    ///
    /// const GREET: Handler<u64, ()> = Handler::new("greet", |cx, from| println!("{}: hello, {from}", cx.rank()));
    ///
    /// tasuki::local_with(2, Handlers::new().add(GREET), |job| {
    ///     let greeted = job.signal()?;
    ///     GREET.post_then(job, job.rank_after(1), &7, greeted.on(job.rank()).add(1))?;
    ///     greeted.wait_at_least(1)?;
    ///     job.barrier() // no rank leaves while another one calls it
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn post_then(&self, job: &Job, to: Rank, args: &A, effect: Effect) -> Result<()> {
        self.post_in(job, to, args, Some(effect))
    }

    #[inline(always)]
    fn post_in(&self, job: &Job, to: Rank, args: &A, effect: Option<Effect>) -> Result<()> {
        let (_limit, effects) = (job.limited(), [effect.map(|effect| effect.0), None]);
        let call = |number, bytes: &[u8]| job.worker.call(to, number, bytes, effects, WhenFull::Wait);
        let number = self.number(&job.worker);
        let posted = number.and_then(|number| args.with_bytes(|bytes| call(number, bytes))?);
        posted.map_err(|cause| self.refused(job, cause, "post", to))
    }

    #[cold]
    fn refused(&self, job: &Job, cause: Cause, call: &str, to: Rank) -> Error {
        job.worker.fault(cause, || format!("{call}({self:?} of rank {to})"))
    }

    /// Calls this handler from a handler, one level below. Never waits. Calls to one rank stay in order.
    ///
    /// If it fails, [`Job::flush_calls`] of the calling handler's rank reports it. Errors: the calling handler was not
    /// declared for that many levels, or for that many calls in one run ([`Handler::follow_ups`]); the job has no such
    /// handler.
    ///
    /// ```
    /// use tasuki::onesided::RemoteSignal;
    /// use tasuki::{Handler, HandlerCx, Handlers, Rank};
    ///
    /// /// Goes on to the next rank, until the last one is reached.
    /// fn hop(cx: &HandlerCx<'_>, arrived: &RemoteSignal) -> tasuki::Result<()> {
    ///     let next = Rank(cx.rank().index() + 1);
    ///     if next.index() == cx.size() { cx.raise(*arrived, 1) } else { HOP.forward(cx, next, arrived) }
    /// }
    /// const HOP: Handler<RemoteSignal, ()> = Handler::fallible("hop", hop).follow_ups(3, 1);
    ///
    /// tasuki::local_with(4, Handlers::new().add(HOP), |job| {
    ///     let arrived = job.signal()?;
    ///     if job.rank() == 0 {
    ///         HOP.post(job, Rank(0), &arrived.on(Rank(0)))?;
    ///         arrived.wait_at_least(1)?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn forward(&self, cx: &HandlerCx<'_>, to: Rank, args: &A) -> Result<()> {
        let worker = cx.context.worker();
        let call = |number, bytes: &[u8]| cx.context.call(to, number, bytes);
        let posted = self.number(worker).and_then(|number| args.with_bytes(|bytes| call(number, bytes))?);
        posted.map_err(|cause| worker.fault(cause, || format!("forward({self:?} of rank {to})")))
    }

    /// A command that calls the handler with an argument of at most 48 bytes, which is read now.
    ///
    /// The command's effects happen when the handler has run, on the handler's rank, and are not ordered with the
    /// effects of this queue's other commands. They are poisoned if the handler failed. Calls that fire in one queue
    /// are delivered in the order in which they fire, whatever ranks they go to: a call that finds no room at its
    /// rank delays the calls behind it.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers};
    ///
    /// const GREET: Handler<u64, ()> = Handler::new("greet", |cx, from| println!("{}: hello, {from}", cx.rank()));
    ///
    /// tasuki::local_with(2, Handlers::new().add(GREET), |job| {
    ///     let (go, greeted, queue) = (job.signal()?, job.signal()?, job.queue(4)?);
    ///     let greet = GREET.command(job.rank_after(1), &7);
    ///     queue.post(greet.when(go.reaches(1)).then(greeted.on(job.rank()).add(1)))?;
    ///     job.raise(go.on(job.rank()), 1)?;
    ///     greeted.wait_at_least(1)?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// An argument that is too long does not compile:
    ///
    /// ```compile_fail,E0080
    /// use tasuki::{Handler, Rank};
    ///
    /// const FAR: Handler<[u64; 7], ()> = Handler::new("far", |_, _| ());
    /// let command = FAR.command(Rank(0), &[0; 7]);
    /// ```
    pub fn command(&self, to: Rank, args: &A) -> Command
    where
        A: Sized,
    {
        const {
            let is_fixed = !A::IS_SLICE; // an object has the length of its encoding
            assert!(
                !is_fixed || size_of::<A>() <= INLINE_BYTES,
                "a command carries at most 48 bytes: use command_at"
            )
        }
        let too_long =
            |len| Cause::Argument(format!("a command carries at most 48 bytes, and this object has {len}"));
        let inline = args.with_bytes(|bytes| Inline::of(bytes).ok_or_else(|| too_long(bytes.len())));
        let (args, checked) = match inline.flatten() {
            Ok(args) => (args, Ok(())),
            Err(cause) => (Inline::EMPTY, Err(cause)),
        };
        Command::of_call(to, (self.name(), self.key()), Args::Inline(args)).checked(checked)
    }

    /// A command that calls the handler with values at `args`, of any length. They are read when the handler runs;
    /// nothing is copied before. They may be changed again when the command's effect has happened. Otherwise like
    /// [`Handler::command`].
    ///
    /// ```
    /// use tasuki::{Handler, HandlerCx, Handlers};
    ///
    /// fn check(_: &HandlerCx<'_>, values: &[f64]) {
    ///     assert_eq!(values, vec![1.5; 10_000]);
    /// }
    /// const CHECK: Handler<[f64], ()> = Handler::new("check", check);
    ///
    /// tasuki::local_with(2, Handlers::new().add(CHECK), |job| {
    ///     let (values, done, queue) = (job.alloc::<f64>(10_000)?, job.signal()?, job.queue(4)?);
    ///     values.fill(1.5)?;
    ///     let check = CHECK.command_at(job.rank_after(1), values.pointer().slice(10_000));
    ///     queue.post(check.then(done.on(job.rank()).add(1)))?;
    ///     done.wait_at_least(1)?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn command_at(&self, to: Rank, args: GlobalSlice<A::Item>) -> Command {
        let bytes = (args.len() as u64).saturating_mul(size_of::<A::Item>() as u64);
        let command =
            Command::of_call(to, (self.name(), self.key()), Args::at(args.pointer().address(), bytes));
        if A::IS_SLICE || args.len() == 1 {
            return command;
        }
        let text = format!("{self:?} takes one value, not {}", args.len());
        command.checked(Err(Cause::Argument(text)))
    }
}

impl Job {
    /// Runs the handlers that other ranks, and this rank, have called on this rank. Never waits. Returns true if it ran
    /// any.
    ///
    /// Calls that wait run handlers, too ([progress](crate::engine#progress)). A rank that computes for a long time, or
    /// that tries a call again and again, serves in between: its peers may be waiting for it.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Rank, Request};
    ///
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    ///
    /// tasuki::local_with(2, Handlers::new().add(DOUBLE), |job| {
    ///     let done = job.signal()?;
    ///     if job.rank() == 0 {
    ///         assert_eq!(DOUBLE.call(job, Rank(1), &21)?.wait()?, 42);
    ///         job.raise(done.on(Rank(1)), 1)?;
    ///     }
    ///     while job.rank() == 1 && done.value() == 0 {
    ///         job.serve()?; // between two parts of a long computation
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn serve(&self) -> Result<bool> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || "serve()".into()))?;
        Ok(self.worker.serve_calls())
    }

    /// Lets a thread of the library serve this rank from now on, until it leaves: the thread runs handlers that were
    /// called, and moves messages and queues on, also while the program makes no call of the library. For programs
    /// whose executor may be idle, or that wait for something else, such as a socket.
    ///
    /// The thread sleeps while there is nothing to do, and takes no processor time. It also starts, in a job with
    /// handlers, when a task first awaits a request under an executor of another library. On the simulator this call
    /// does nothing, because a simulated rank acts in its calls only. Local. Error: the system starts no more threads.
    /// Cost: a thread; and peers wake it, which costs them some microseconds for a message, signal or call that comes
    /// when the rank sleeps.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::{Handler, Handlers, Rank, Request};
    ///
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    ///
    /// tasuki::local_with(2, Handlers::new().add(DOUBLE), |job| {
    ///     let done = job.signal()?;
    ///     if job.rank() == 1 {
    ///         job.serve_in_background()?;
    ///         while done.value() == 0 {
    ///             std::thread::sleep(Duration::from_millis(1)); // nothing here runs handlers
    ///         }
    ///     } else {
    ///         assert_eq!(DOUBLE.call(job, Rank(1), &21)?.wait()?, 42);
    ///         job.raise(done.on(Rank(1)), 1)?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn serve_in_background(&self) -> Result<()> {
        self.world().messages().serve_in_background()
    }

    /// Returns when all calls have run that this rank has made without a reply ([`Handler::post`],
    /// [`Handler::post_then`]). Serves as [`serve`](Job::serve) does, at least once.
    ///
    /// Errors: the first failure among these calls that no effect has reported, with the handler's message; the others
    /// are forgotten. Also the failures of calls that handlers of this rank have forwarded, and that have run. A rank
    /// that was called has left. Commands that are calls are not waited for: their effects tell. Cost: a round trip to
    /// each rank that was called since the last flush, all at once.
    ///
    /// ```
    /// use tasuki::{ErrorKind, Handler, Handlers};
    ///
    /// const CHECK: Handler<u64, ()> = Handler::new("check", |_, &value| assert!(value < 10, "{value} is too large"));
    ///
    /// tasuki::local_with(2, Handlers::new().add(CHECK), |job| {
    ///     (0..20).try_for_each(|value| CHECK.post(job, job.rank_after(1), &value))?;
    ///     let error = job.flush_calls().unwrap_err();
    ///     assert_eq!(error.kind(), ErrorKind::Program);
    ///     assert!(error.to_string().contains("10 is too large"));
    ///     job.flush_calls()?; // each failure is reported once
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn flush_calls(&self) -> Result<()> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || "flush_calls()".into()))?;
        let _limit = self.limited();
        self.worker.serve_calls();
        self.worker.flush_calls(&|| "flush_calls()".into())
    }

    /// The value that [`Handlers::local`](crate::Handlers::local) made for this rank; `None` if no value of this type
    /// was made.
    ///
    /// Handlers use the value, too. Do not hold a lock of it over a call that waits, such as a barrier, a receive or
    /// [`Job::serve`]: that call runs handlers in this thread, and one that takes the lock waits for its own thread, for
    /// ever. Copy out what the call needs, and let the guard end before.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use tasuki::Handlers;
    ///
    /// tasuki::local_with(2, Handlers::new().local(|| Mutex::new(vec![1, 2])), |job| {
    ///     assert!(job.local::<u32>().is_none());
    ///     assert!(job.local::<Mutex<Vec<i32>>>().is_some_and(|list| list.lock().is_ok_and(|list| list.len() == 2)));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn local<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.locals.get()
    }
}
