//! Nonblocking collective calls, which are also futures.
//!
//! The head of `collective` has what holds for all of them. Calls of a kind with up to 256 KiB run a schedule, which
//! the members compile at the fourth call.

use crate::collective::blocking::name_type;
use crate::collective::{
    OwnedBlocks, OwnedEqualBlocks, OwnedGather, OwnedScatter, OwnedScatterTarget, OwnedValues,
};
use crate::message::Peer;
use crate::reduction::reduce_op::{OnBytes, ReduceOp};
use crate::request::{Request, finish_limited, future_by_request};
use crate::{Communicator, Error, Pod, Result};
use std::task::{self, Poll};
use tasuki_collective::StartedCollective;
use tasuki_core::queue::reduction::BoxedOperation;

/// A collective call that was begun. [`wait`](Request::wait) or `.await` returns its result.
///
/// It is complete when this member's part is, which may be before the parts of other members are.
///
/// ```
/// use tasuki::{Request, Sum};
/// tasuki::local(2, |job| {
///     let mut request = job.world().iallreduce(job.rank().index(), Sum)?;
///     while !request.test() {
///         std::thread::yield_now(); // or a part of the program's work
///     }
///     assert_eq!(request.wait()?, 1);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping the request does not cancel the call: this member's part goes on in later waiting calls of the rank, so
/// that the other members get their results.
#[must_use = "wait() returns the result"]
#[derive(Debug)]
pub struct CollectiveRequest<R> {
    started: StartedCollective<R>,
    /// Names the type of the values in the error of a wait.
    name_type: fn(Error) -> Error,
}

impl<R> CollectiveRequest<R> {
    /// A call on values of type `T`.
    pub(crate) fn of<T: Pod>(started: StartedCollective<R>) -> CollectiveRequest<R> {
        CollectiveRequest { started, name_type: name_type::<T> }
    }
}

impl<R> Request for CollectiveRequest<R> {
    type Value = R;

    fn test(&mut self) -> bool {
        self.started.test()
    }

    fn wait(&mut self) -> Result<R> {
        if self.started.has_limit() {
            finish_limited(self)?;
        }
        self.started.wait().map_err(self.name_type)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.started.poll(context.waker())
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
    /// Collective ([rules](crate::collective#nonblocking-calls)). Cost: ceil(log8 P) rounds of up
    /// to seven short messages each. [`Communicator::fuzzy_barrier`] also goes on while all members compute, without
    /// helpers.
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
        self.inner().start_barrier().map(CollectiveRequest::of::<u8>)
    }

    /// Begins a broadcast of the root's values. Each member passes the same number of values.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). The root's part may be complete
    /// before all members have the values. Cost: messages down a tree of ceil(log8 P) levels, as in
    /// [`Communicator::bcast`].
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
    pub fn ibcast<D: OwnedValues>(&self, values: D, root: impl Peer) -> Result<CollectiveRequest<D>> {
        let root = self.root(root, "ibcast")?;
        self.inner()
            .start_bcast(values.into_vec(), root.place(), D::from_vec)
            .map(CollectiveRequest::of::<D::Value>)
    }

    /// Begins a reduction. The root gets all members' values, combined in the combining order ([`ReduceOp`]); other
    /// members get `None`.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). Cost: that of
    /// [`Communicator::reduce`].
    ///
    /// ```
    /// use tasuki::{Rank, Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().0 as u64;
    ///     let mut all = job.world().iallgather(vec![me])?;
    ///     let mut sum = job.world().ireduce(me, Sum, Rank(1))?;
    ///     assert_eq!(all.wait()?, [0, 1, 2]);
    ///     assert_eq!(sum.wait()?, (job.rank() == 1).then_some(3)); // only the root gets the sum
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ireduce<D: OwnedValues>(
        &self,
        values: D,
        operation: impl ReduceOp<D::Value> + Send + 'static,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Option<D>>> {
        let (root, operation) = (self.root(root, "ireduce")?, boxed::<D::Value>(operation));
        let started = self.inner().start_reduce(values.into_vec(), operation, root.place(), D::from_vec);
        started.map(CollectiveRequest::of::<D::Value>)
    }

    /// Begins a reduction. All members get all members' values, combined in the combining order ([`ReduceOp`]), equal
    /// in every bit on all members and to the result of [`Communicator::allreduce`].
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). The values are a number, an
    /// array or a vector ([`OwnedValues`]). Cost: that of [`Communicator::allreduce`].
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(4, |job| {
    ///     let (mut x, mut norm) = (vec![1.0_f64; 100], 0.0);
    ///     for _ in 0..3 {
    ///         let square: f64 = x.iter().map(|x| x * x).sum();
    ///         let mut total = job.world().iallreduce(square, Sum)?;
    ///         let next: Vec<f64> = x.iter().map(|x| x / 2.0).collect();   // work that does not need it
    ///         norm = total.wait()?.sqrt();
    ///         x = next;
    ///     }
    ///     assert_eq!(norm, 5.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iallreduce<D: OwnedValues>(
        &self,
        values: D,
        operation: impl ReduceOp<D::Value> + Send + 'static,
    ) -> Result<CollectiveRequest<D>> {
        let operation = boxed::<D::Value>(operation);
        self.inner()
            .start_allreduce(values.into_vec(), operation, D::from_vec)
            .map(CollectiveRequest::of::<D::Value>)
    }

    /// Begins a gather. The root gets all members' blocks, one behind the other, in the form of its argument
    /// ([`OwnedGather`]); other members get `None`.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)); a gather of
    /// [`Uneven`](crate::Uneven) blocks always uses messages. Cost: that of [`Communicator::gather`].
    ///
    /// ```
    /// use tasuki::{Rank, Request, Uneven};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().0;
    ///     let mut equal = job.world().igather(me, Rank(0))?;
    ///     let mut uneven = job.world().igather(Uneven(vec![me; me]), Rank(0))?;      // none, one, two values
    ///     let sum: u64 = (0..1000).sum();                                        // work that needs no other rank
    ///     let uneven = uneven.wait()?.map(|blocks| blocks.into_values());
    ///     let got = (me == 0).then(|| (vec![0, 1, 2], vec![1, 2, 2]));
    ///     assert_eq!((equal.wait()?.zip(uneven), sum), (got, 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn igather<B: OwnedGather>(
        &self,
        block: B,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Option<B::Output>>> {
        let root = self.root(root, "igather")?;
        block.igather(self, root).map(CollectiveRequest::of::<B::Value>)
    }

    /// Begins a scatter of the root's blocks, equal ones or [`Blocks`](crate::Blocks). The result is this member's
    /// block, and `own` its number of values, room for them, or `()` if this member does not know the number
    /// ([`OwnedScatterTarget`]). The `blocks` of members other than the root are ignored.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)); a scatter with `()` or
    /// [`Blocks`](crate::Blocks) always uses messages. Cost: that of [`Communicator::scatter`].
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let all = if job.rank() == 1 { vec![1, 2, 3] } else { vec![] };
    ///     let mut known = job.world().iscatter(all.clone(), 1, Rank(1))?;
    ///     let mut learned = job.world().iscatter(all, (), Rank(1))?;
    ///     assert_eq!((known.wait()?, learned.wait()?), (vec![job.rank().0 + 1], vec![job.rank().0 + 1]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iscatter<B: OwnedScatter, O: OwnedScatterTarget<B::Value>>(
        &self,
        blocks: B,
        own: O,
        root: impl Peer,
    ) -> Result<CollectiveRequest<O::Output>> {
        let root = self.root(root, "iscatter")?;
        self.iscatter_to(blocks, own, root).map(CollectiveRequest::of::<B::Value>)
    }

    /// Begins an allgather. All members get all members' blocks, one behind the other, in the form of their argument
    /// ([`OwnedGather`]).
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)); an allgather of
    /// [`Uneven`](crate::Uneven) blocks always uses messages. Cost: that of [`Communicator::allgather`].
    ///
    /// ```
    /// use tasuki::{Request, Uneven};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().index();
    ///     let mut equal = job.world().iallgather([me, 7])?;
    ///     let mut uneven = job.world().iallgather(Uneven(vec![me; me]))?; // none, one, two values
    ///     assert_eq!(uneven.wait()?.into_values(), [1, 2, 2]);
    ///     assert_eq!(equal.wait()?, [0, 7, 1, 7, 2, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iallgather<B: OwnedGather>(&self, block: B) -> Result<CollectiveRequest<B::Output>> {
        block.iallgather(self).map(CollectiveRequest::of::<B::Value>)
    }

    /// Begins an exchange of one block between each two members. `blocks` are this member's blocks, one for each
    /// member. The result are the blocks that the members had for this one, in the form of the argument
    /// ([`OwnedBlocks`]). Both are in the order of the members.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)); an exchange of
    /// [`Blocks`](crate::Blocks) always uses messages. Cost: that of [`Communicator::alltoall`].
    ///
    /// ```
    /// use tasuki::{Blocks, Request};
    /// tasuki::local(2, |job| {
    ///     let me = job.rank().0;
    ///     let mut equal = job.world().ialltoall([10 * me, 10 * me + 1])?;
    ///     let blocks: Blocks<usize> = (0..2).map(|to| vec![me; to]).collect();
    ///     let mut uneven = job.world().ialltoall(blocks)?;
    ///     assert_eq!(uneven.wait()?.block(1), vec![1; me]);
    ///     assert_eq!(equal.wait()?, [me, 10 + me]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ialltoall<B: OwnedBlocks>(&self, blocks: B) -> Result<CollectiveRequest<B::Output>> {
        blocks.ialltoall(self).map(CollectiveRequest::of::<B::Value>)
    }

    /// Begins a reduction whose result has one block for each member. All members' values, one block for each member,
    /// are combined in the combining order ([`ReduceOp`]). [`OwnedEqualBlocks`] has the forms.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). Cost: one message to each
    /// member.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().0 as u64;
    ///     let mut sum = job.world().ireduce_scatter(vec![me, 10 * me, 100 * me], Sum)?; // a block for each member
    ///     assert_eq!(sum.wait()?, [[3], [30], [300]][job.rank().0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ireduce_scatter<B: OwnedEqualBlocks>(
        &self,
        blocks: B,
        operation: impl ReduceOp<B::Value> + Send + 'static,
    ) -> Result<CollectiveRequest<B::Output>> {
        blocks.ireduce_scatter(self, boxed::<B::Value>(operation)).map(CollectiveRequest::of::<B::Value>)
    }

    /// Begins a scan. This member gets the values of the members from the first to this one, combined in the combining
    /// order ([`ReduceOp`]).
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). Cost: that of
    /// [`Communicator::scan`].
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), job.rank().0 as u64);
    ///     let mut upto = world.iscan(me + 1, Sum)?;
    ///     let mut before = world.iexscan(me + 1, Sum)?;
    ///     assert_eq!(upto.wait()?, [1, 3, 6][job.rank().0]);
    ///     assert_eq!(before.wait()?, [None, Some(1), Some(3)][job.rank().0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iscan<D: OwnedValues>(
        &self,
        values: D,
        operation: impl ReduceOp<D::Value> + Send + 'static,
    ) -> Result<CollectiveRequest<D>> {
        let operation = boxed::<D::Value>(operation);
        self.inner()
            .start_scan(values.into_vec(), operation, D::from_vec)
            .map(CollectiveRequest::of::<D::Value>)
    }

    /// Begins a scan like [`Communicator::iscan`], over the members before this one. The first
    /// member gets `None`.
    ///
    /// ```
    /// use tasuki::{Request, Sum};
    /// tasuki::local(3, |job| {
    ///     let count = [5, 2, 4][job.rank().index()];
    ///     let mut before = job.world().iexscan(count, Sum)?;
    ///     let first = before.wait()?.unwrap_or(0); // where this member's items begin
    ///     assert_eq!(first, [0, 5, 7][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iexscan<D: OwnedValues>(
        &self,
        values: D,
        operation: impl ReduceOp<D::Value> + Send + 'static,
    ) -> Result<CollectiveRequest<Option<D>>> {
        let operation = boxed::<D::Value>(operation);
        self.inner()
            .start_exscan(values.into_vec(), operation, D::from_vec)
            .map(CollectiveRequest::of::<D::Value>)
    }
}
