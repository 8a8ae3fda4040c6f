//! Nonblocking collective calls, which are also futures.
//!
//! All members begin them in the same order, one thread of each member at a time. Other collective calls, messages
//! and plans may come in between. Members may wait for them in any order, and different members in different orders.
//! Nonblocking calls match only each other. [`Communicator::iallreduce`] describes what holds for all of them.
//!
//! The first three calls of a kind use messages. If the ranks can access each other's memory and are at most 32, later
//! calls of the kind with up to 256 KiB run a schedule, which the members compile at the fourth call.

use crate::message::Peer;
use crate::reduction::reduce_op::{OnBytes, ReduceOp};
use crate::request::{Request, future_by_request};
use crate::{Communicator, Pod, Result};
use std::task::{self, Poll};
use tasuki_collective::StartedCollective;
use tasuki_core::queue::reduction::BoxedOperation;

/// A collective call that was begun. [`wait`](Request::wait) or `.await` returns its result.
///
/// It is complete when this member's part is, which may be before the parts of other members are.
///
/// # Cancel safety
///
/// Dropping the request does not cancel the call: this member's part goes on in later waiting calls of the rank, so
/// that the other members get their results.
#[must_use = "wait() returns the result"]
#[derive(Debug)]
pub struct CollectiveRequest<R>(pub(crate) StartedCollective<R>);

impl<R> Request for CollectiveRequest<R> {
    type Value = R;

    fn test(&mut self) -> bool {
        self.0.test()
    }

    fn wait(&mut self) -> Result<R> {
        self.0.wait()
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.0.poll(context.waker())
    }
}

future_by_request!([R] CollectiveRequest<R>);

/// The operation, in the form in which a nonblocking call owns it.
fn boxed<T: Pod>(operation: impl ReduceOp<T> + Send + 'static) -> BoxedOperation {
    OnBytes::<T, _>::new(operation).owned(|operation| Box::new(operation) as _)
}

impl Communicator {
    /// Begins a barrier, which is complete when all members have begun it.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: ceil(log8 P) rounds of up to seven short messages each.
    /// [`Communicator::fuzzy_barrier`] also goes on while all members compute, without helpers.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     let mut request = job.world().ibarrier()?;
    ///     let sum: u64 = (0..1000).sum();                        // work that needs no other rank
    ///     request.wait()?;
    ///     assert_eq!(sum, 499_500);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ibarrier(&self) -> Result<CollectiveRequest<()>> {
        self.inner().start_barrier().map(CollectiveRequest)
    }

    /// Begins a broadcast of the root's values. Each member passes the same number of values.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. The root's part may be complete before all members have the
    /// values. Cost: messages down a tree of ceil(log8 P) levels, as in [`Communicator::bcast`].
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let own = vec![job.rank().0; 100];
    ///     let (first, last) = (job.world().ibcast(own.clone(), Rank(0))?, job.world().ibcast(own, Rank(2))?);
    ///     // Any executor will do; this one waits as a blocking call does.
    ///     let both = tasuki::block_on(async { Ok::<_, tasuki::Error>((last.await?, first.await?)) })?;
    ///     assert_eq!(both, (vec![2; 100], vec![0; 100]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ibcast<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        let root = self.root(root, "ibcast")?;
        self.inner().start_bcast(values, root.place()).map(CollectiveRequest)
    }

    /// Begins a reduction. The root gets all members' values, combined in the combining order ([`ReduceOp`]); other
    /// members get `None`.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: that of [`Communicator::reduce`].
    pub fn ireduce<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        let root = self.root(root, "ireduce")?;
        self.inner().start_reduce(values, boxed::<T>(operation), root.place()).map(CollectiveRequest)
    }

    /// Begins a reduction. All members get all members' values, combined in the combining order ([`ReduceOp`]), equal
    /// in every bit on all members and to the result of [`Communicator::allreduce`].
    ///
    /// Collective: all members begin it, and all other nonblocking collective calls, in the same order, one thread of
    /// each member at a time. Blocking collective calls and plans may come in between. Each member passes the same
    /// number of values. The call owns the values until it is complete; the result is another vector.
    ///
    /// The call does not wait, except to find the slots of pairs that have none yet. It goes on whenever a thread of
    /// the rank is in a call that waits for anything or tests it ([`Request::test`]), and while a task
    /// awaits the future of a message or a collective call: then a thread of the library waits for it. A helper of the
    /// rank continues it, too. Without helpers it does not go on while all members compute: a member that computes
    /// delays the members that need its values or what it passes on. Calls of one kind that run a compiled schedule run
    /// one after the other, in the order in which they began. The operation need not commute. Any of those threads may
    /// call it, also the one that begins this call. If the operation panics, that thread's call panics, and the
    /// communicator fails.
    ///
    /// Up to 64 calls that use messages may be active on a communicator, and up to 64 of each kind that runs a compiled
    /// schedule. One more is an error that begins nothing ([`Cause::Full`](crate::engine::Cause::Full)); so is the 64th call
    /// after one that uses messages and is still active. Wait for the oldest call and begin this one again.
    ///
    /// Errors of this call, which has then not begun: there is no such root; `values` has the wrong length. Later
    /// errors: members disagree about the number of bytes, or are in different calls; a member died, or left before its
    /// part was complete. After such an error the communicator has failed on all members: this call and all others on
    /// it that are active or come later return an error that names the first failure
    /// ([`Cause::CommunicatorFailed`](crate::engine::Cause::CommunicatorFailed)). [`Communicator::recreate`] makes a new one. A
    /// member that drops the request and leaves before its part is complete may get errors about messages that were not
    /// received, as after a send.
    ///
    /// Cost, of this call and of the other nonblocking calls: that of the blocking call, except that they do not use
    /// the network's own barrier and multicast; a few copies of the values on the heap; once about 8 KiB for the slots
    /// of each pair that exchanges messages. Compiled schedules take up to about 64 MiB for each member and
    /// communicator, besides those of blocking calls, for up to 128 kinds of calls; further kinds use messages.
    /// [`Communicator::quiesce`] frees them.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(4, |job| {
    ///     let (mut x, mut norm) = (vec![1.0_f64; 100], 0.0);
    ///     for _ in 0..3 {
    ///         let square: f64 = x.iter().map(|x| x * x).sum();
    ///         let mut total = job.world().iallreduce(vec![square], Sum)?;
    ///         let next: Vec<f64> = x.iter().map(|x| x / 2.0).collect();   // work that does not need it
    ///         norm = total.wait()?[0].sqrt();
    ///         x = next;
    ///     }
    ///     assert_eq!(norm, 5.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iallreduce<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allreduce(values, boxed::<T>(operation)).map(CollectiveRequest)
    }

    /// Begins a gather. The root gets all members' values, one block behind the other; other members get `None`.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: that of [`Communicator::gather`].
    pub fn igather<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        let root = self.root(root, "igather")?;
        self.inner().start_gather(values, root.place()).map(CollectiveRequest)
    }

    /// Begins a scatter. This member gets its block of the root's values, which are one block of `count` values for
    /// each member. `values` of members other than the root are ignored.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: one message from the root to each member.
    pub fn iscatter<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        count: usize,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        let root = self.root(root, "iscatter")?;
        self.inner().start_scatter(values, count, root.place()).map(CollectiveRequest)
    }

    /// Begins an allgather. All members get all members' values, one block behind the other.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: that of [`Communicator::allgather`].
    pub fn iallgather<T: Pod + Send + Sync>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allgather(values).map(CollectiveRequest)
    }

    /// Begins an exchange of one block between each two members. `values` are this member's blocks, one for each
    /// member. The result are the blocks that the members had for this one. Both are in the order of the members.
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: one message to each member.
    pub fn ialltoall<T: Pod + Send + Sync>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_alltoall(values).map(CollectiveRequest)
    }

    /// Begins a reduction whose result has one block for each member. All members' values, one block for each member,
    /// are combined in the combining order ([`ReduceOp`]).
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: one message to each member.
    pub fn ireduce_scatter<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_reduce_scatter(values, boxed::<T>(operation)).map(CollectiveRequest)
    }

    /// Begins a scan. This member gets the values of the members from the first to this one, combined in the combining
    /// order ([`ReduceOp`]).
    ///
    /// The rules of [`Communicator::iallreduce`] apply. Cost: that of [`Communicator::scan`].
    pub fn iscan<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_scan(values, boxed::<T>(operation)).map(CollectiveRequest)
    }

    /// Begins a scan like [`Communicator::iscan`], over the members before this one. The first
    /// member gets `None`.
    pub fn iexscan<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        self.inner().start_exscan(values, boxed::<T>(operation)).map(CollectiveRequest)
    }
}
