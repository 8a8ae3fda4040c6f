//! Requests: work that was begun, and the functions that wait for several of them.

use crate::own_rank::on_own_rank;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::task::{self, Poll};
use std::time::Duration;
use tasuki_core::engine::{Limit, block_until};

/// Work that was begun: a message, a collective call, a transfer, a signal to come, a reply, a start of a plan.
///
/// It can be tested, waited for, waited for with a limit, awaited, and mixed with other requests in [`wait_any`] and
/// [`wait_all`]. Every kind of request is also a future, whose output is what [`wait`](Request::wait) returns. Any
/// executor will do; [`block_on`] waits as a blocking call does. While a request is awaited under
/// another executor, a thread of the library waits for it.
///
/// If the work has failed, the test returns true and the wait returns the error. Dropping a request is never wrong;
/// the documentation of each kind says what then happens to the work.
///
/// # Time limits
///
/// | limit | holds for |
/// |---|---|
/// | [`wait_timeout`](Request::wait_timeout), [`wait_any_timeout`] | that wait |
/// | of the rank ([`Job::set_timeout`](crate::Job::set_timeout)) | each `wait`, of all kinds, and [`wait_any`] |
/// | of a handle ([`Job::within`](crate::Job::within)) | `wait` of a [`Reply`](crate::engine::Reply) and of a [`nicam::Sync`](crate::nicam::Sync); of [`ChannelReady`](crate::message::ChannelReady), and all other waits of that channel; of requests of a scope, whose limit counts from its beginning |
/// | of the executor | `.await` and [`block_on`]: no limit of the rank or of a handle |
///
/// All other kinds do not keep the limit of the handle with which they were begun: messages, also
/// [from any member](crate::message::RecvAnyRequest), collective calls, plans, fuzzy barriers, transfers,
/// [`Trigger`](crate::onesided::Trigger) and [`PayloadReader`](crate::onesided::PayloadReader).
///
/// ```
/// use std::time::Duration;
/// use tasuki::{Rank, Request, Slot};
/// tasuki::local(2, |job| {
///     let (world, peer) = (job.world(), job.rank_after(1));
///     let mut receive = world.irecv(vec![0_u64; 100], peer, Slot(0))?;
///     if job.rank() == 0 {
///         // Nothing comes before this rank has sent, so the limit is reached, and the receive goes on.
///         assert!(receive.wait_timeout(Duration::from_micros(100))?.is_none());
///     } else {
///         receive.wait()?;
///     }
///     world.isend(vec![7_u64; 100], peer, Slot(0))?.wait()?;
///     if job.rank() == 0 {
///         while !receive.test() {} // work that needs no values may come here
///         assert_eq!(receive.wait()?.0, [7; 100]);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Request: Unpin {
    /// What the wait returns.
    type Value;

    /// Returns true if [`wait`](Request::wait) would return at once, with a value or an error. Moves the rank's work
    /// on. Never waits.
    fn test(&mut self) -> bool;

    /// Waits for the work and returns its value. Meanwhile it [makes progress](crate::engine#progress), as all calls do
    /// that wait.
    ///
    /// Errors: the work has failed; its value was returned before; a [time limit](Request#time-limits) is reached,
    /// after which the work goes on, and one may wait again.
    fn wait(&mut self) -> Result<Self::Value>;

    /// Waits for at most `limit`. Returns `None` if the time runs out: the work goes on, and nothing has changed.
    ///
    /// Errors: those of [`wait`](Request::wait).
    fn wait_timeout(&mut self, limit: Duration) -> Result<Option<Self::Value>> {
        match block_until(Limit::After(limit), |context| self.poll_finished(context)) {
            Ok(()) => self.wait().map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Returns `Ready` if [`test`](Request::test) would return true; otherwise the task is woken when it would.
    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()>;
}

impl<R: Request + ?Sized> Request for &mut R {
    type Value = R::Value;

    fn test(&mut self) -> bool {
        (**self).test()
    }

    fn wait(&mut self) -> Result<R::Value> {
        (**self).wait()
    }

    fn wait_timeout(&mut self, limit: Duration) -> Result<Option<R::Value>> {
        (**self).wait_timeout(limit)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        (**self).poll_finished(context)
    }
}

/// Waits until a request has finished whose wait has a time limit. Error: the limit is reached; the work goes on.
#[cold]
#[inline(never)]
pub(crate) fn finish_limited<R: Request + ?Sized>(request: &mut R) -> Result<()> {
    block_until(Limit::OfCall, |context| request.poll_finished(context))
}

/// Makes a kind of request a future. The generic parameters come first, in brackets.
macro_rules! future_by_request {
    ([$($generics:tt)*] $request:ty) => {
        // Nothing is ever pinned inside a request: values are on the heap while a message uses them.
        impl<$($generics)*> Unpin for $request {}

        impl<$($generics)*> std::future::Future for $request {
            type Output = $crate::Result<<$request as $crate::Request>::Value>;

            fn poll(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Self::Output> {
                std::task::ready!($crate::Request::poll_finished(&mut *self, context));
                std::task::Poll::Ready($crate::Request::wait(&mut *self))
            }
        }
    };
}
pub(crate) use future_by_request;

/// Runs a future on this thread and returns its output. Requests that it awaits are waited for as in a blocking call:
/// the thread serves peers, runs handlers, moves the rank's other work on, and sleeps if the wait is long.
///
/// The future may also await what belongs to no rank, such as a channel of another library. Cost, beside that of a
/// blocking call: some tens of nanoseconds.
///
/// ```
/// use tasuki::{Job, Slot, Sum, block_on};
///
/// async fn step(job: &Job, own: Vec<u64>) -> tasuki::Result<u64> {
///     let (world, next, previous) = (job.world(), job.rank_after(1), job.rank_after(-1));
///     let receive = world.irecv(vec![0_u64; own.len()], previous, Slot(0))?;
///     world.isend(own, next, Slot(0))?.await?;
///     let (got, _) = receive.await?;
///     Ok(world.iallreduce(got, Sum)?.await?[0])
/// }
///
/// tasuki::local(3, |job| {
///     let sum = block_on(step(job, vec![job.rank().0 as u64; 100]))?;
///     assert_eq!(sum, 3);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    tasuki_core::engine::block_on(future)
}

/// A request of any kind, for lists of different kinds: [`wait_any`].
///
/// ```
/// use tasuki::engine::AnyRequest;
/// use tasuki::{Request, Slot, wait_any};
/// tasuki::local(2, |job| {
///     let (peer, done) = (job.rank_after(1), job.signal()?);
///     let mut message = job.world().irecv([0], peer, Slot(0))?;
///     let mut signal = done.reaches(1);
///     job.raise(done.on(peer), 1)?;
///     let first = wait_any([&mut message as &mut dyn AnyRequest, &mut signal])?;
///     assert_eq!(first, 1); // nobody has sent a message
///     job.barrier()?;
///     job.world().send(&[7], peer, Slot(0))?;
///     assert_eq!(message.wait()?.0, [7]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait AnyRequest {
    #[doc(hidden)]
    fn poll_any(&mut self, context: &mut task::Context<'_>) -> Poll<()>;
}

impl<R: Request + ?Sized> AnyRequest for R {
    fn poll_any(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.poll_finished(context)
    }
}

/// Waits until one of the requests has finished and returns its index. Its own [`wait`](Request::wait) then returns the
/// value at once. If several have finished, it is the first of them.
///
/// Requests of different kinds need one cast in the list. Error: there are no requests. Cost: a look at each request
/// whenever one of them may have finished, so the order of n requests that finish one after the other costs n * n
/// looks.
///
/// ```
/// use tasuki::engine::AnyRequest;
/// use tasuki::{Request, Slot, wait_any};
/// tasuki::local(2, |job| {
///     let (world, peer, ready) = (job.world(), job.rank_after(1), job.signal()?);
///     let mut message = world.irecv(vec![0_u64; 3], peer, Slot(0))?;
///     let mut signal = ready.reaches(1);
///     job.raise(ready.on(peer), 1)?;
///     let first = wait_any([&mut message as &mut dyn AnyRequest, &mut signal])?;
///     assert_eq!(first, 1, "no message was sent");
///     signal.wait()?;
///     job.barrier()?;
///     world.isend(vec![5_u64; 3], peer, Slot(0))?.wait()?;
///     message.wait()?;
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn wait_any<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<usize> {
    first_of("wait_any", requests, Limit::OfCall)
}

/// Waits like [`wait_any`], for at most `limit`. Returns `None` if the time runs out; nothing has changed then.
///
/// ```
/// use std::time::Duration;
/// tasuki::local(1, |job| {
///     let signal = job.signal()?;
///     let mut steps = [signal.reaches(1), signal.reaches(2)];
///     job.raise(signal.on(job.rank()), 1)?;
///     assert_eq!(tasuki::wait_any_timeout(&mut steps, Duration::from_millis(1))?, Some(0));
///     assert_eq!(tasuki::wait_any_timeout(&mut steps[1..], Duration::from_millis(1))?, None);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn wait_any_timeout<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
    limit: Duration,
) -> Result<Option<usize>> {
    match first_of("wait_any_timeout", requests, Limit::After(limit)) {
        Err(error) if error.is_timeout() => Ok(None),
        first => first.map(Some),
    }
}

fn first_of<'r, R: AnyRequest + ?Sized + 'r>(
    call: &str,
    requests: impl IntoIterator<Item = &'r mut R>,
    limit: Limit,
) -> Result<usize> {
    let mut requests: SmallVec<[&mut R; 8]> = requests.into_iter().collect();
    if requests.is_empty() {
        let error = Error::argument("there is no request to wait for").in_call(|| call.to_string());
        return Err(on_own_rank(error));
    }
    block_until(limit, |context| {
        let mut polled = requests.iter_mut().map(|request| request.poll_any(context));
        polled.position(|polled| polled.is_ready()).map_or(Poll::Pending, Poll::Ready)
    })
}

/// Waits for all requests, also if some fail. Returns their values in order, or the first error in that order.
///
/// The requests are a vector or an array of one kind, or a tuple of up to eight requests of any kinds. References to
/// requests are requests.
///
/// ```
/// use tasuki::{Slot, Sum, wait_all};
/// tasuki::local(3, |job| {
///     let (world, me, next, previous) = (job.world(), job.rank().0, job.rank_after(1), job.rank_after(-1));
///     let receive = world.irecv(vec![0; 5], previous, Slot(0))?;
///     let send = world.isend(vec![me; 5], next, Slot(0))?;
///     let ((got, _), _, sum) = wait_all((receive, send, world.iallreduce(vec![me], Sum)?))?;
///     assert_eq!((got, sum), (vec![previous.0; 5], vec![3]));
///
///     let sends = (0..4).map(|slot| world.isend(vec![me; 5], next, Slot(slot)));
///     let sends = sends.collect::<tasuki::Result<Vec<_>>>()?;
///     let receives = (0..4).map(|slot| world.irecv(vec![0_usize; 5], previous, Slot(slot)));
///     assert_eq!(wait_all(receives.collect::<tasuki::Result<Vec<_>>>()?)?.len(), 4);
///     wait_all(sends).map(drop)
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn wait_all<R: Requests>(requests: R) -> Result<R::Values> {
    requests.wait_each()
}

/// Several requests that [`wait_all`] waits for.
///
/// ```
/// use tasuki::{Slot, Sum, wait_all};
/// tasuki::local(2, |job| {
///     let (world, peer) = (job.world(), job.rank_after(1));
///     let receive = world.irecv(0, peer, Slot(0))?;
///     let (send, sum) = (world.isend(7, peer, Slot(0))?, world.iallreduce(1, Sum)?);
///     let ((got, _), _, two) = wait_all((receive, send, sum))?; // of different kinds
///     assert_eq!((got, two), (7, 2));
///     let sums = (0..4).map(|value| world.iallreduce(value, Sum)).collect::<tasuki::Result<Vec<_>>>()?;
///     assert_eq!(wait_all(sums)?, [0, 2, 4, 6]); // a list
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Requests: sealed::SealedRequests {
    /// The values of the requests.
    type Values;

    #[doc(hidden)]
    fn wait_each(self) -> Result<Self::Values>;
}

mod sealed {
    pub trait SealedRequests {}
}

/// Keeps the first error.
fn keep<T>(waited: Result<T>, failed: &mut Option<Error>) -> Option<T> {
    waited.map_err(|error| _ = failed.get_or_insert(error)).ok()
}

impl<R: Request> sealed::SealedRequests for Vec<R> {}
impl<R: Request> Requests for Vec<R> {
    type Values = Vec<R::Value>;

    fn wait_each(self) -> Result<Vec<R::Value>> {
        let mut failed = None;
        let values = self.into_iter().filter_map(|mut request| keep(request.wait(), &mut failed)).collect();
        failed.map_or(Ok(values), Err)
    }
}

impl<R: Request, const N: usize> sealed::SealedRequests for [R; N] {}
impl<R: Request, const N: usize> Requests for [R; N] {
    type Values = [R::Value; N];

    fn wait_each(self) -> Result<[R::Value; N]> {
        let mut failed = None;
        let values = self.map(|mut request| keep(request.wait(), &mut failed));
        match failed {
            Some(error) => Err(error),
            None => Ok(values.map(|value| value.expect("a wait without an error returned a value"))),
        }
    }
}

macro_rules! requests_of_tuple {
    ($($request:ident)+) => {
        impl<$($request: Request),+> sealed::SealedRequests for ($($request,)+) {}
        impl<$($request: Request),+> Requests for ($($request,)+) {
            type Values = ($($request::Value,)+);

            #[allow(non_snake_case)] // a request has the name of its type
            fn wait_each(self) -> Result<Self::Values> {
                let ($(mut $request,)+) = self;
                let waited = ($($request.wait(),)+);
                let ($($request,)+) = waited;
                Ok(($($request?,)+))
            }
        }
    };
}

requests_of_tuple!(A);
requests_of_tuple!(A B);
requests_of_tuple!(A B C);
requests_of_tuple!(A B C D);
requests_of_tuple!(A B C D E);
requests_of_tuple!(A B C D E F);
requests_of_tuple!(A B C D E F G);
requests_of_tuple!(A B C D E F G H);
