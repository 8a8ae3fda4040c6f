//! Blocking collective calls. The head of `collective` has what holds for all of them.

use crate::collective::{
    Data, EqualBlocks, ExchangeBuffers, FuzzyBarrier, GatherBuffers, ReduceBuffers, ScatterBlocks,
    ScatterTarget,
};
use crate::engine::Cause;
use crate::message::Peer;
use crate::reduction::reduce_op::{OnBytes, ReduceOp};
use crate::{Communicator, Error, Pod, Result};
use std::any::type_name;
use tasuki_core::base::ValueKind;

/// Names the type of this member's values in an error about different calls, if it is a type of the program: members tell
/// each other only that.
#[cold]
pub(crate) fn name_type<T: Pod>(error: Error) -> Error {
    let is_number = ValueKind::of::<T>().class().of_numbers().is_some();
    if is_number { error } else { error.of_values(type_name::<T>()) }
}

impl Communicator {
    /// Returns when all members have called it. Everything that any member did before the barrier is visible to all
    /// members after it.
    ///
    /// Collective ([rules](crate::collective#rules)). Cost of the first three calls: ceil(log8 P) rounds of up to seven
    /// short messages each, or a barrier of the network if the fabric has one; later calls: see
    /// [costs](crate::collective#costs).
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let at = job.alloc::<u64>(1)?;
    ///     at.set(0, job.rank().index() as u64 + 1)?;
    ///     job.world().barrier()?; // all members have set their value
    ///     let next = job.rank_after(1);
    ///     assert_eq!(job.load(at.on(next))?, next.index() as u64 + 1);
    ///     job.world().barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn barrier(&self) -> Result<()> {
        self.inner().barrier()
    }

    /// Starts a fuzzy barrier and returns at once. The returned [`FuzzyBarrier`] is complete when all members have
    /// started theirs.
    ///
    /// One call of each member makes one instance. All threads of a member may call it; each call counts. Instances
    /// complete in the order in which they were started, and nothing is reset. Among two members any number of
    /// instances may be active. Among more members 128 may be active; one more is an error that starts nothing
    /// ([`Cause::Full`](crate::engine::Cause::Full)). Instances go on while members compute: a rank that signals a
    /// member also forwards that member's next signals. A fuzzy barrier does not order transfers: data that were put
    /// before it may arrive after it.
    ///
    /// On [`Job::world`](crate::Job::world) no call waits. On another communicator the first call is collective,
    /// because the members exchange the names of their signals.
    ///
    /// Errors, of this call or later of the barrier: a rank died; a member left without having started the barrier. A
    /// rank that leaves waits for the barriers that it has started, unless a member has left that has not started
    /// them. Cost: one raised signal among two members; otherwise ceil(log2 P) signals, some of them raised by
    /// commands in a queue because it is too early to raise them at once. Memory, once, among more than two members:
    /// up to 110 KiB times ceil(log2 P) - 1 for the queue, and 256 bytes for each round.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     let parts = job.alloc::<u64>(1)?;
    ///     for step in 1..4 {
    ///         parts.set(0, step)?;
    ///         let mut barrier = job.world().fuzzy_barrier()?;
    ///         let inner: u64 = (0..1000).sum();            // work that needs no other rank
    ///         barrier.wait()?;                             // all ranks have set their value of this step
    ///         assert_eq!((job.load(parts.on(job.rank_after(1)))?, inner), (step, 499_500));
    ///         job.world().fuzzy_barrier()?.wait()?;        // all ranks have read it
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Source: NICAM, `nicam_barrier`.
    #[inline]
    pub fn fuzzy_barrier(&self) -> Result<FuzzyBarrier> {
        self.inner().fuzzy_barrier(&|| self.start_helper()).map(FuzzyBarrier::new)
    }

    /// Broadcasts the root's values to all members. Each member passes the same number of values. If only the root
    /// knows how many, it broadcasts the number first.
    ///
    /// Collective ([rules](crate::collective#rules)). The root does not wait for all members. Cost of the first three
    /// calls of a kind: messages down a tree of ceil(log8 P) levels, in which a member sends to up to seven others at
    /// each level; up to 40 bytes are one cache line, more are announced by a line of their own; no memory. Later
    /// calls: see [costs](crate::collective#costs).
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let mut row = if job.rank() == 1 { vec![0.5; 100] } else { vec![0.0; 100] };
    ///     job.world().bcast(&mut row, Rank(1))?;
    ///     assert_eq!(row, [0.5; 100]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn bcast<D: Data + ?Sized>(&self, values: &mut D, root: impl Peer) -> Result<()> {
        let root = self.root(root, "bcast")?;
        self.inner().bcast(values.values_mut(), root.place()).map_err(name_type::<D::Value>)
    }

    /// Combines all members' values in the combining order ([`ReduceOp`]). The root gets the result in the form of its
    /// argument ([`ReduceBuffers`]); the other members get `None`, and none of their values changes.
    ///
    /// ```
    /// use tasuki::{Rank, Sum};
    /// tasuki::local(4, |job| {
    ///     let (world, me, root) = (job.world(), job.rank().0, Rank(2));
    ///     assert_eq!(world.reduce(&me, Sum, root)?, (me == 2).then_some(6));
    ///     let mut values = vec![me, 1];
    ///     let got = world.reduce(&mut values, Sum, root)?;              // in place
    ///     assert_eq!((got, values), if me == 2 { (Some(()), vec![6, 4]) } else { (None, vec![me, 1]) });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). This thread calls the operation. Cost: up to 32 members send one
    /// message each to the root; more members form a tree of such groups, whose result takes one more message unless
    /// the root is the first member. From P KiB of values on, P being more than 2, each member combines a share of the
    /// values: one message from each member to each other one, and one to the root. Up to two copies of the values on
    /// the heap, besides a result that is a vector.
    #[inline]
    pub fn reduce<B: ReduceBuffers>(
        &self,
        buffers: B,
        operation: impl ReduceOp<B::Value>,
        root: impl Peer,
    ) -> Result<Option<B::Output>> {
        let root = self.root(root, "reduce")?;
        let operation = OnBytes::<B::Value, _>::new(operation);
        if self.rank() != root {
            let reduced = self.inner().reduce_to(buffers.input(), operation.borrowed(), root.place());
            return reduced.map(|()| None).map_err(name_type::<B::Value>);
        }
        self.fits(buffers.check(), "reduce")?;
        let reduce = |values: &mut [B::Value]| self.inner().reduce_here(values, operation.borrowed());
        buffers.reduce(|values| reduce(values).map_err(name_type::<B::Value>)).map(Some)
    }

    /// Combines all members' values in the combining order ([`ReduceOp`]). All members get the same result, equal in
    /// every bit, also to that of [`Communicator::reduce`], in the form of their argument ([`ReduceBuffers`]): a number
    /// for `&number`, an array for `&array`, a vector for `&slice`; `&mut values` are replaced by it.
    ///
    /// A literal needs a type, because the form of the argument decides that of the result: `&1.0_f64`, or
    /// `let sum: f64 = world.allreduce(&1.0, Sum)?`. Operations of the program, such as closures, are not compared: that
    /// all members pass the same one is up to the program.
    ///
    /// Collective ([rules](crate::collective#rules)). This thread calls the operation. Cost of the first three calls of
    /// a kind: up to 40 bytes among up to 8 members take one round, in which each member sends to all others. From P
    /// KiB of values on, P being more than 2, each member combines a share of the values and sends it to all others:
    /// two messages from each member to each other one. Otherwise a reduction up the tree to the first member and a
    /// broadcast. Later calls on one node send no messages: two copies of each byte, and one signal from each member to
    /// each other; elsewhere, see [costs](crate::collective#costs).
    ///
    /// ```
    /// use tasuki::collective::MaxAbs;
    /// use tasuki::Sum;
    /// tasuki::local(4, |job| {
    ///     let own = job.rank().0 as i64 - 3;                          // -3, -2, -1, 0
    ///     assert_eq!(job.world().allreduce(&[own, 1], Sum)?, [-6, 4]);
    ///     assert_eq!(job.world().allreduce(&own, MaxAbs)?, -3);
    ///     assert_eq!(job.world().allreduce(&own, |a: i64, b| a.min(b))?, -3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn allreduce<B: ReduceBuffers>(
        &self,
        buffers: B,
        operation: impl ReduceOp<B::Value>,
    ) -> Result<B::Output> {
        self.fits(buffers.check(), "allreduce")?;
        let operation = OnBytes::<B::Value, _>::new(operation);
        let reduce = |values: &mut [B::Value]| self.inner().allreduce(values, operation.borrowed());
        buffers.reduce(|values| reduce(values).map_err(name_type::<B::Value>))
    }

    /// Gathers all members' values on the root, one block behind the other in the order of the members, and returns
    /// them there in the form of the argument ([`GatherBuffers`]); `None` on the other members.
    ///
    /// ```
    /// use tasuki::{Rank, Uneven};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), job.rank().0);
    ///     let all = world.gather(&[me, 10 * me], Rank(0))?;
    ///     assert_eq!(all, (me == 0).then(|| vec![0, 0, 1, 10, 2, 20]));
    ///     if let Some(blocks) = world.gather(Uneven(&vec![me; me]), Rank(0))? {     // none, one, two values
    ///         assert_eq!((blocks.block(0), blocks.block(2)), (&[][..], &[2, 2][..]));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Each member passes the same number of values, or each passes
    /// [`Uneven`](crate::Uneven) values. Error: the root's room has another length. Cost of equal blocks:
    /// messages up a tree of ceil(log8 P) levels, in which a member receives from up to seven others at each level, and
    /// heap memory for the values that pass through a member: on the root, all values. Cost of uneven blocks: a message
    /// of one cache line in each direction between the root and each member, then one message with the block; these
    /// calls always use messages.
    #[inline]
    pub fn gather<B: GatherBuffers>(&self, block: B, root: impl Peer) -> Result<Option<B::Output>> {
        let root = self.root(root, "gather")?;
        block.gather(self, root).map_err(name_type::<B::Value>)
    }

    /// Scatters the root's values, one block for each member, equal ones or [`Blocks`](crate::Blocks). `own` says where
    /// this member's block goes ([`ScatterTarget`]): its number of values, or `()` if this member does not know it, and
    /// it is returned; or `&mut block`. The `blocks` of members other than the root are ignored.
    ///
    /// ```
    /// use tasuki::{Blocks, Rank};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), job.rank().0);
    ///     let all = if me == 1 { vec![1, 2, 3, 4, 5, 6] } else { vec![] };
    ///     assert_eq!(world.scatter(&all, 2, Rank(1))?, [2 * me + 1, 2 * me + 2]);
    ///     let mut mine = [0; 2];
    ///     world.scatter(&all, &mut mine, Rank(1))?;
    ///     assert_eq!(mine, [2 * me + 1, 2 * me + 2]);
    ///     let blocks = if me == 1 { Blocks::new(all, &[1, 0, 5])? } else { Blocks::default() };
    ///     assert_eq!(world.scatter(&blocks, (), Rank(1))?, [&[1][..], &[], &[2, 3, 4, 5, 6]][me]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Errors: the root has not a block for each member, or equal blocks
    /// of another length than its own; a member's count differs from the length of its block. Cost:
    /// one message from the root to each member. With `()` or [`Blocks`](crate::Blocks) also a message of one cache
    /// line in each direction before.
    #[inline]
    pub fn scatter<B: ScatterBlocks, O: ScatterTarget<B::Value>>(
        &self,
        blocks: B,
        own: O,
        root: impl Peer,
    ) -> Result<O::Output> {
        let root = self.root(root, "scatter")?;
        self.scatter_to(&blocks, own, root).map_err(name_type::<B::Value>)
    }

    /// Gathers all members' values on every member, one block behind the other in the order of the members, in the form
    /// of the argument ([`GatherBuffers`]).
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     assert_eq!(job.world().allgather(&[job.rank().0, 7])?, [0, 7, 1, 7, 2, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Each member passes the same number of values, or each passes
    /// [`Uneven`](crate::Uneven) values. Error: `all` has another length. Cost of equal blocks:
    /// ceil(log8 P) rounds of up to seven messages; from 4 KiB of values on, one message to each member, which goes
    /// straight to where it belongs; heap memory for all values, except with room for them. Cost of uneven blocks: two
    /// messages to each member.
    #[inline]
    pub fn allgather<B: GatherBuffers>(&self, block: B) -> Result<B::Output> {
        block.allgather(self).map_err(name_type::<B::Value>)
    }

    /// Exchanges one block between each two members. `blocks` are this member's blocks, one for each member. The result
    /// are the blocks that the members had for this one. Both are in the order of the members.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let mine = [10, 11, 12].map(|value| value + 100 * job.rank().0);
    ///     let got = job.world().alltoall(&mine)?;
    ///     assert_eq!(got, [10, 110, 210].map(|value| value + job.rank().0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). All members pass equal blocks, or all pass
    /// [`Blocks`](crate::Blocks); [`ExchangeBuffers`] has the forms. Errors, on this member only: it has not a block
    /// for each member; `result` has another length. Cost: one message to each member; with [`Blocks`](crate::Blocks) a
    /// message of one cache line to each member before. Only results that are returned take memory.
    #[inline]
    pub fn alltoall<B: ExchangeBuffers>(&self, blocks: B) -> Result<B::Output> {
        blocks.alltoall(self).map_err(name_type::<B::Value>)
    }

    /// Combines all members' values in the combining order ([`ReduceOp`]). `blocks` have one block for each member.
    /// This member's block of the result is returned, or goes to its room ([`EqualBlocks`]).
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let mine = job.world().reduce_scatter(&[1, 10, 100], Sum)?;
    ///     assert_eq!(mine, [3 * [1, 10, 100][job.rank().0]]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Errors: those of [`Communicator::alltoall`]. Cost: one message to
    /// each member, and up to three copies of `values` on the heap.
    #[inline]
    pub fn reduce_scatter<B: EqualBlocks>(
        &self,
        blocks: B,
        operation: impl ReduceOp<B::Value>,
    ) -> Result<B::Output> {
        let operation = OnBytes::<B::Value, _>::new(operation);
        let block_of = |values| values / self.size();
        let reduce = |values: &[B::Value], block: &mut [B::Value]| {
            self.inner().reduce_scatter(values, block, operation.borrowed())
        };
        blocks.run(block_of, |values, block| reduce(values, block).map_err(name_type::<B::Value>))
    }

    /// Combines the values of the members from the first to this one, in the combining order ([`ReduceOp`]).
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(4, |job| {
    ///     let count = job.rank().0 as u64 + 1;                       // the members have 1, 2, 3, 4
    ///     let through = job.world().scan(&count, Sum)?;
    ///     let before = job.world().exscan(&count, Sum)?.unwrap_or(0);
    ///     assert_eq!((before, through), (count * (count - 1) / 2, count * (count + 1) / 2));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). This thread calls the operation. Cost: up to 32 members each
    /// exchange a message in each direction with the first one, which does so with one member after the other. More
    /// members form a tree of such groups, up which values go and down again, with one more message to each member for
    /// each further level.
    #[inline]
    pub fn scan<B: ReduceBuffers>(
        &self,
        buffers: B,
        operation: impl ReduceOp<B::Value>,
    ) -> Result<B::Output> {
        self.fits(buffers.check(), "scan")?;
        let operation = OnBytes::<B::Value, _>::new(operation);
        let scan = |values: &mut [B::Value]| self.inner().scan(values, operation.borrowed());
        buffers.reduce(|values| scan(values).map_err(name_type::<B::Value>))
    }

    /// Scans like [`Communicator::scan`], over the members before this one. Returns `None` on the first member, whose
    /// own values are then in the place of the result. Cost: that of a scan.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let own = job.rank().index() + 1;                                    // the number of values of this rank
    ///     let first = job.world().exscan(&own, Sum)?.unwrap_or(0);             // the number of its first value
    ///     assert_eq!(first, [0, 1, 3][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn exscan<B: ReduceBuffers>(
        &self,
        buffers: B,
        operation: impl ReduceOp<B::Value>,
    ) -> Result<Option<B::Output>> {
        self.fits(buffers.check(), "exscan")?;
        let operation = OnBytes::<B::Value, _>::new(operation);
        let scan = |values: &mut [B::Value]| self.inner().exscan(values, operation.borrowed());
        let result = buffers.reduce(|values| scan(values).map_err(name_type::<B::Value>))?;
        Ok((self.rank() != 0).then_some(result))
    }

    /// Names the call in the error that its arguments do not fit.
    #[inline(always)]
    pub(crate) fn fits<R>(&self, checked: Result<R, Cause>, call: &'static str) -> Result<R> {
        checked.map_err(|cause| self.refused(cause, call))
    }
}
