//! The declaration of a handler: a name, a function, and the types of its argument and result.

use super::argument::{Argument, Outcome};
use super::registry::HandlerCx;
use crate::Result;
use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use tasuki_core::base::{Cause, TypeHasher};
use tasuki_core::engine::{CallContext, ValueShape, Worker};
use tasuki_core::queue::inline_data::Inline;

/// A function that any rank may call on any rank. UCX calls it an active message handler.
///
/// A program declares its handlers as constants, adds them to [`Handlers`](crate::Handlers), and passes these to
/// [`main_with`](crate::main_with). The function runs on the called rank, in one of the threads that
/// [make progress](crate::engine#progress). It gets its argument by
/// reference: a value `&A`, or a slice `&[T]` if `A` is `[T]`. It returns a value, or a vector if `R` is `[T]`.
///
/// The handlers of one rank run one at a time. A handler must not wait; [`HandlerCx`] and [`Handler::forward`] are what
/// it may call. A panic ends the call, not the rank, and the caller gets an error. Calls from one rank to another of
/// handlers with the same number of [`follow_ups`](Handler::follow_ups) levels run in order.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use tasuki::{Handler, HandlerCx, Handlers, Request};
///
/// type Part = Mutex<HashMap<u64, u64>>;
///
/// fn insert(cx: &HandlerCx<'_>, &[key, value]: &[u64; 2]) {
///     cx.local::<Part>().lock().expect("no handler panics").insert(key, value);
/// }
///
/// fn look_up(cx: &HandlerCx<'_>, keys: &[u64]) -> Vec<u64> {
///     let part = cx.local::<Part>().lock().expect("no handler panics");
///     keys.iter().map(|key| part.get(key).copied().unwrap_or(0)).collect()
/// }
///
/// const INSERT: Handler<[u64; 2], ()> = Handler::new("insert", insert);
/// const LOOK_UP: Handler<[u64], [u64]> = Handler::new("look up", look_up);
///
/// tasuki::local_with(2, Handlers::new().local(Part::default).add(INSERT).add(LOOK_UP), |job| {
///     let next = job.rank_after(1);
///     for key in 0..100 {
///         INSERT.post(job, next, &[key, key * key])?;
///     }
///     job.flush_calls()?; // all inserts have run
///     assert_eq!(LOOK_UP.call(job, next, &[7, 300, 9])?.wait()?, [49, 0, 81]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// A closure that captures nothing is a function, too. One that captures does not compile, because there is nothing
/// on another rank that it could mean; state belongs into [`Handlers::local`](crate::Handlers::local):
///
/// ```compile_fail,E0308
/// use tasuki::Handler;
///
/// let factor = 3;
/// let scale: Handler<u64, u64> = Handler::new("scale", |_, value| factor * value);
/// ```
///
/// Source: NICAM, active messages. The levels of the queues, which prevent deadlocks between handlers, are Tasuki's
/// own.
pub struct Handler<A: Argument + ?Sized, R: Outcome + ?Sized> {
    name: &'static str,
    name_hash: u64,
    function: Function<A, R>,
    pub(super) depth: usize,
    pub(super) posts_max: usize,
}

type Infallible<A, R> = for<'x, 'c, 'a> fn(&'x HandlerCx<'c>, &'a A) -> <R as Outcome>::Owned;
type Fallible<A, R> = for<'x, 'c, 'a> fn(&'x HandlerCx<'c>, &'a A) -> Result<<R as Outcome>::Owned>;

enum Function<A: Argument + ?Sized, R: Outcome + ?Sized> {
    Infallible(Infallible<A, R>),
    Fallible(Fallible<A, R>),
}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Clone for Function<A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Copy for Function<A, R> {}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Clone for Handler<A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Copy for Handler<A, R> {}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> fmt::Debug for Handler<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler {:?}", self.name)
    }
}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> Handler<A, R> {
    /// A handler that runs `run`. Each handler of a job has a different name.
    ///
    /// ```
    /// use tasuki::{Handler, HandlerCx, Rank};
    ///
    /// fn distance(cx: &HandlerCx<'_>, from: &Rank) -> usize {
    ///     cx.rank().index().abs_diff(from.index())
    /// }
    ///
    /// const DISTANCE: Handler<Rank, usize> = Handler::new("distance", distance);
    /// assert_eq!(DISTANCE.name(), "distance");
    /// ```
    pub const fn new(name: &'static str, run: Infallible<A, R>) -> Handler<A, R> {
        Handler::of(name, Function::Infallible(run))
    }

    /// A handler that may fail. A caller that waits for its reply gets the text of the error, up to 4096 bytes. A rank
    /// that waits for the effect of the call gets an error without the text. The log of the handler's rank has all of
    /// it.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Request};
    ///
    /// const ROOT: Handler<i64, f64> = Handler::fallible("root", |_, &value| {
    ///     if value < 0 { Err(format!("{value} has no root").into()) } else { Ok((value as f64).sqrt()) }
    /// });
    ///
    /// tasuki::local_with(2, Handlers::new().add(ROOT), |job| {
    ///     let next = job.rank_after(1);
    ///     assert_eq!(ROOT.call(job, next, &16)?.wait()?, 4.0);
    ///     let error = ROOT.call(job, next, &-1)?.wait().unwrap_err();
    ///     assert!(error.to_string().contains("handler \"root\" failed: -1 has no root"));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const fn fallible(name: &'static str, run: Fallible<A, R>) -> Handler<A, R> {
        Handler::of(name, Function::Fallible(run))
    }

    /// Permits the handler to call other handlers and to post commands: one call of it leads to at most `depth` levels
    /// of calls (at most 16), and one run of it posts at most `each` calls and commands (at most 64). Otherwise a
    /// handler posts nothing. [`Handler::forward`] has an example.
    ///
    /// Cost: 72 KiB of memory on each rank for each level.
    ///
    /// ```
    /// use tasuki::{Handler, HandlerCx, Handlers, onesided::RemoteSignal};
    /// fn tell(cx: &HandlerCx<'_>, whom: &RemoteSignal) {
    ///     cx.raise(*whom, 1).expect("there is room for one follow-up");
    /// }
    /// const TELL: Handler<RemoteSignal, ()> = Handler::new("tell", tell).follow_ups(1, 1);
    /// tasuki::local_with(2, Handlers::new().add(TELL), |job| {
    ///     let told = job.signal()?;
    ///     TELL.post(job, job.rank_after(1), &told.on(job.rank()))?;
    ///     told.wait_at_least(1)?; // by the other rank's handler
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[must_use]
    pub const fn follow_ups(mut self, depth: usize, each: usize) -> Handler<A, R> {
        (self.depth, self.posts_max) = (depth, each);
        self
    }

    /// The name of the handler.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers};
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    /// let error = tasuki::local(1, |job| DOUBLE.post(job, job.rank(), &1)).unwrap_err();
    /// assert!(error.to_string().contains(DOUBLE.name()), "it was not added to the job: {error}");
    /// ```
    pub const fn name(&self) -> &'static str {
        self.name
    }

    const fn of(name: &'static str, function: Function<A, R>) -> Handler<A, R> {
        const {
            let (takes_slice, returns_slice) = (A::IS_SLICE, R::IS_SLICE);
            assert!(!takes_slice || size_of::<A::Item>() > 0, "the values of a slice have at least one byte");
            assert!(
                !returns_slice || size_of::<R::Item>() > 0,
                "the values of a vector have at least one byte"
            );
        }
        Handler { name, name_hash: hash(name), function, depth: 0, posts_max: 0 }
    }

    /// By what the job finds the number of the handler. The types are part of it, because a program may declare another
    /// handler of the same name. The compiler computes it.
    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        let mut types = TypeHasher::new(self.name_hash);
        TypeId::of::<A>().hash(&mut types);
        TypeId::of::<R>().hash(&mut types);
        types.finish()
    }

    /// The number of the handler in a job.
    #[inline(always)]
    pub(super) fn number(&self, worker: &Worker) -> Result<u8, Cause> {
        match worker.handler_table().find(self.key()) {
            Some(number) => Ok(number),
            None => Err(self.not_found(worker)),
        }
    }

    #[cold]
    fn not_found(&self, worker: &Worker) -> Cause {
        worker.handler_table().not_found(self.name)
    }

    pub(super) fn takes() -> ValueShape {
        A::shape()
    }

    pub(super) fn returns() -> ValueShape {
        R::shape()
    }

    /// Runs the function on an argument of these bytes and stores its result.
    #[inline(always)]
    pub(super) fn run(
        &self,
        cx: &HandlerCx<'_>,
        call: &CallContext<'_>,
        bytes: &[u8],
        into: &mut Inline,
    ) -> Result<(), Cause> {
        let outcome = A::with(bytes, |args| match self.function {
            Function::Infallible(run) => Ok(run(cx, args)),
            Function::Fallible(run) => run(cx, args),
        });
        match outcome? {
            Ok(value) => {
                R::with_bytes(
                    &value,
                    |bytes| {
                        if into.set(bytes) { Ok(()) } else { call.set_long_result(bytes) }
                    },
                )?
            }
            Err(error) => Err(Cause::Program(error.cause().to_string())),
        }
    }
}

/// FNV-1a by Fowler, Noll and Vo.
const fn hash(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_types_decide_about_the_key() {
        let double: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
        let other: Handler<u64, u64> = Handler::new("double", |_, value| value + value);
        assert_eq!(double.key(), other.follow_ups(1, 1).key());
        let keys = [
            double.key(),
            Handler::<u64, u64>::new("doubles", |_, value| 2 * value).key(),
            Handler::<f64, u64>::new("double", |_, _| 2).key(),
            Handler::<u64, f64>::new("double", |_, _| 2.0).key(),
            Handler::<[u64], u64>::new("double", |_, _| 2).key(),
            Handler::<u64, [u64]>::new("double", |_, _| vec![]).key(),
        ];
        let mut different = keys.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), keys.len());
    }
}
