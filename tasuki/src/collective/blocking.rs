//! Blocking collective calls. All members of a communicator make them in the same order, one thread of each member at
//! a time.
//!
//! The first three calls of a kind use messages, which find members that disagree about lengths. A kind is a
//! collective with the number and type of its values and the operation that combines them. If the ranks can access each
//! other's memory and are at most 32, later calls of the kind run a schedule that was compiled once: each member copies
//! its values to a place that all can access, and takes its result from the others' places. These schedules take up to
//! about 64 MiB for each member and communicator; [`Communicator::quiesce`] frees them.

use crate::collective::{Data, FuzzyBarrier, ReduceBuffers};
use crate::engine::Cause;
use crate::member::refused;
use crate::message::Peer;
use crate::reduction::reduce_op::{OnBytes, ReduceOp};
use crate::{Communicator, Pod, Result};
use tasuki_collective::allocate;

impl Communicator {
    /// Returns when all members have called it. Everything that any member did before the barrier is visible to all
    /// members after it.
    ///
    /// Collective, as are all calls below: all members make them in the same order, one thread of each member at a
    /// time. Errors of this call and of those below: a member died or left; another member is in another call, or has
    /// made other calls before. A call that fails so makes its communicator fail on all members: calls on it that are
    /// active or come later return an error that names the first failure
    /// ([`Cause::CommunicatorFailed`](crate::engine::Cause::CommunicatorFailed)). [`Communicator::recreate`] makes a new one.
    /// An argument that is wrong by itself, as a root that does not exist, is an error on this member only, which has
    /// then not begun the call; it can make the call again with the right argument.
    ///
    /// Cost: ceil(log8 P) rounds of up to seven short messages each, or a barrier of the network if the fabric has one.
    /// The costs stated here and below hold for calls by messages: the first three of a kind, and those that cannot run
    /// a schedule. Later calls may run a schedule that was compiled once. These schedules take up to about 64 MiB of
    /// memory for each member and communicator, until [`Communicator::quiesce`] frees them.
    pub fn barrier(&self) -> Result<()> {
        self.inner().barrier()
    }

    /// Starts a fuzzy barrier and returns at once. The returned [`FuzzyBarrier`] is complete when all members have
    /// started theirs.
    ///
    /// One call of each member makes one instance. All threads of a member may call it; each call counts. Instances
    /// complete in the order in which they were started, and nothing is reset. Among two members any number of
    /// instances may be active. Among more members 128 may be active; one more is an error that starts nothing
    /// ([`Cause::Full`](crate::engine::Cause::Full)). Instances go on while members compute: a rank that signals a member
    /// also forwards that member's next signals. A fuzzy barrier does not order transfers: data that were put before
    /// it may arrive after it.
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

    /// Broadcasts the root's values to all members. Each member passes the same number of values.
    ///
    /// Collective. Returns when `values` may be reused; on a member that is not the root it then has the root's
    /// values. The root does not wait for all members. Errors, of this call and of those below, besides those of
    /// [`Communicator::barrier`]: members disagree about the number of bytes; there is no such root, which is an error
    /// on this member only. Cost: messages down a tree of ceil(log8 P) levels, in which a member sends to up to seven
    /// others at each level; up to 40 bytes are one cache line, more are announced by a line of their own; no memory.
    pub fn bcast<D: Data + ?Sized>(&self, values: &mut D, root: impl Peer) -> Result<()> {
        let root = self.root(root, "bcast")?;
        self.inner().bcast(values.values_mut(), root.place())
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
    /// Collective. Each member passes the same number of values. The operation need not commute; this thread calls it. The bits of the result do not depend on the root, nor on whether the call uses messages.
    /// Errors: those of [`Communicator::bcast`]; a panic of the operation makes the communicator fail, too. Cost: up to
    /// 32 members send one message each to the root; more members form a tree of such groups, whose result takes one
    /// more message unless the root is the first member. From P KiB of values on, P being more than 2, each member
    /// combines a share of the values: one message from each member to each other one, and one to the root. Up to two
    /// copies of the values on the heap, besides a result that is a vector.
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
            self.inner().reduce_to(buffers.input(), operation.borrowed(), root.place())?;
            return Ok(None);
        }
        self.fits(buffers.check(), "reduce")?;
        buffers.reduce(|values| self.inner().reduce_here(values, operation.borrowed())).map(Some)
    }

    /// Combines all members' values in the combining order ([`ReduceOp`]). All members get the same result, equal in
    /// every bit, also to that of [`Communicator::reduce`], in the form of their argument ([`ReduceBuffers`]): a number
    /// for `&number`, an array for `&array`, a vector for `&slice`; `&mut values` are replaced by it.
    ///
    /// Collective. The rules of [`Communicator::reduce`] apply. Cost of the first three calls of a kind: up to 40
    /// bytes among up to 8 members take one round, in which each member sends to all others. From P KiB of values on, P being more than 2, each member
    /// combines a share of the values and sends it to all others: two messages from each member to each other one.
    /// Otherwise a reduction up the tree to the first member and a broadcast.
    /// Later calls on one node send no messages: two copies of each byte, and one signal from each member to each other.
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
        buffers.reduce(|values| self.inner().allreduce(values, operation.borrowed()))
    }

    /// Gathers all members' values on the root, one block behind the other in the order of the members. Each member
    /// passes the same number of values. Returns `None` on the other members.
    ///
    /// Collective. Errors: those of [`Communicator::bcast`]. Cost: messages up a tree of ceil(log8 P) levels, in which
    /// a member receives from up to seven others at each level, and heap memory for the values that pass through a
    /// member: on the root, all values.
    pub fn gather<T: Pod>(&self, values: &[T], root: impl Peer) -> Result<Option<Vec<T>>> {
        let root = self.root(root, "gather")?;
        if self.rank() != root {
            return self.inner().gather_to(values, root.place()).map(|()| None);
        }
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        self.inner().gather_here(values, &mut all)?;
        Ok(Some(all))
    }

    /// Gathers like [`Communicator::gather`], into `all`. On the root `all` has room for the values
    /// of all members; other members' `all` is ignored.
    pub fn gather_into<T: Pod>(&self, values: &[T], all: &mut [T], root: impl Peer) -> Result<()> {
        let root = self.root(root, "gather_into")?;
        match self.rank() == root {
            true => self.inner().gather_here(values, all),
            false => self.inner().gather_to(values, root.place()),
        }
    }

    /// Scatters the root's values, one block of `count` values for each member. Returns this member's block. `values`
    /// of members other than the root are ignored.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let all = if job.rank() == 1 { vec![1, 2, 3, 4, 5, 6] } else { vec![] };
    ///     let mine = job.world().scatter(&all, 2, Rank(1))?;
    ///     assert_eq!(mine, [2 * job.rank().0 + 1, 2 * job.rank().0 + 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Returns on the root when `values` may be reused. Errors: those of [`Communicator::bcast`]; the
    /// root has not `count` values for each member, which is an error on the root only. Cost: one message from the root
    /// to each member.
    pub fn scatter<T: Pod>(&self, values: &[T], count: usize, root: impl Peer) -> Result<Vec<T>> {
        let root = self.root(root, "scatter")?;
        let mut block =
            allocate(count).map_err(|cause| self.messages().worker().fault(cause, || "scatter".into()))?;
        self.scatter_into(values, &mut block, root)?;
        Ok(block)
    }

    /// Scatters like [`Communicator::scatter`], into `block`, which has equally many values on each
    /// member.
    pub fn scatter_into<T: Pod>(&self, values: &[T], block: &mut [T], root: impl Peer) -> Result<()> {
        let root = self.root(root, "scatter_into")?;
        if self.rank() != root {
            return self.inner().scatter_from(block, root.place());
        }
        self.inner().scatter_here(values, block)
    }

    /// Gathers all members' values on every member, one block behind the other in the order of the members. Each
    /// member passes the same number of values.
    ///
    /// Collective. Errors: those of [`Communicator::bcast`]. Cost: ceil(log8 P) rounds of up to seven messages; from
    /// 4 KiB of values on, one message to each member, which goes straight to where it belongs; heap memory for all
    /// values.
    pub fn allgather<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        self.inner().allgather(values, &mut all)?;
        Ok(all)
    }

    /// Gathers like [`Communicator::allgather`], into `all`, which has room for the values of all
    /// members. Takes no memory.
    pub fn allgather_into<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        self.inner().allgather(values, all)
    }

    /// Exchanges one block between each two members. `values` are this member's blocks, one for each member. Returns
    /// the blocks that the members had for this one. Both are in the order of the members.
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
    /// Collective. All blocks have the same length. Errors: those of [`Communicator::bcast`]; `values` cannot be
    /// divided into one block for each member, which is an error on this member only. Cost: one message to each member.
    pub fn alltoall<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); values.len()];
        self.alltoall_into(values, &mut all)?;
        Ok(all)
    }

    /// Exchanges blocks like [`Communicator::alltoall`], into `all`, which is as long as `values`.
    /// Takes no memory.
    pub fn alltoall_into<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        self.inner().alltoall(values, all)
    }

    /// Combines all members' values in the combining order ([`ReduceOp`]), and returns this member's block of the
    /// result. `values` have one block for each member.
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
    /// Collective. Errors: those of [`Communicator::alltoall`]. Cost: one message to each member, and up to three
    /// copies of `values` on the heap.
    pub fn reduce_scatter<T: Pod>(&self, values: &[T], operation: impl ReduceOp<T>) -> Result<Vec<T>> {
        self.inner().reduce_scatter(values, OnBytes::<T, _>::new(operation).borrowed())
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
    /// Collective. The rules of [`Communicator::reduce`] apply. Cost: up to 32 members each exchange a message in each
    /// direction with the first one, which does so with one member after the other. More members form a tree of such
    /// groups, up which values go and down again, with one more message to each member for each further level.
    #[inline]
    pub fn scan<B: ReduceBuffers>(
        &self,
        buffers: B,
        operation: impl ReduceOp<B::Value>,
    ) -> Result<B::Output> {
        self.fits(buffers.check(), "scan")?;
        let operation = OnBytes::<B::Value, _>::new(operation);
        buffers.reduce(|values| self.inner().scan(values, operation.borrowed()))
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
        let result = buffers.reduce(|values| self.inner().exscan(values, operation.borrowed()))?;
        Ok((self.rank() != 0).then_some(result))
    }

    /// Names the call in the error that its arguments do not fit.
    #[inline(always)]
    pub(crate) fn fits<R>(&self, checked: Result<R, Cause>, call: &'static str) -> Result<R> {
        checked.map_err(|cause| refused(self.messages(), cause, call))
    }
}
