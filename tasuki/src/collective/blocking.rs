//! Collective calls: all members of a communicator make them, in the same order, one thread of each at a time.
//!
//! The first calls of a kind go by messages, which find members that disagree about lengths. A kind is an operation,
//! and how many bytes of what. Where ranks reach each other's memory and are not more than 32, later calls of the kind
//! run steps that were arranged once: each lays what it gives where all can reach it, and takes what it gets. That
//! takes memory, up to about 64 MiB a member and communicator; [`Communicator::quiesce`] gives it back.

use crate::reduction::reduce_op::{Combined, ReduceOp};
use crate::{Communicator, FuzzyBarrier, Pod, Rank, Result};
use tasuki_core::segment::check_available;

/// Bytes from which on it is looked up whether there is room for what a call is to give: where there is none the
/// program would end.
const LOOKED_UP_FROM: u64 = 1 << 30;

impl Communicator {
    /// Returns when all members have called it; what any did before is visible to all after.
    ///
    /// CollectiveRequest, as are all calls below: all members make them in the same order, one thread of each at a time.
    /// Errors: a member died, or left. Costs ceil(log8 P) rounds of up to seven short messages
    /// each, or a barrier of the network's own where the fabric has one.
    ///
    /// What calls are said to cost here holds for the first three of a kind, which go by messages. Later ones may run
    /// steps that the members arranged once. These keep memory, up to about 64 MiB a member and communicator, until
    /// [`Communicator::quiesce`].
    pub fn barrier(&self) -> Result<()> {
        self.inner().barrier()
    }

    /// Starts a fuzzy barrier and returns at once: [`FuzzyBarrier`] tells when all members have started theirs.
    ///
    /// One call of each member makes an instance; all threads of a member may call it, each call is one. Instances are
    /// over in the order in which they were started, nothing is ever reset, and many may be under way: 128 where there
    /// are more than two members, one more is an error that has started nothing ([`Cause::Full`](crate::Cause::Full)),
    /// among two as many as one likes. They go on while members compute: whoever tells a member something tells the
    /// next one for it. It says nothing about transfers: what was put before it may arrive after it.
    ///
    /// On [`Job::world`](crate::Job::world) no call waits. On another communicator the first call is collective, like
    /// those around this one: its members tell each other their signals.
    ///
    /// Errors, later also of the barrier: a rank died; a member left without having started it. A rank that leaves
    /// waits for what it has started, unless a member has left that has not. Costs a raised signal among two members,
    /// else ceil(log2 P) of them, of which those for whom it is too early go as commands through a queue; memory once,
    /// among more than two: up to 110 KiB times ceil(log2 P) - 1 for the queue, and 256 bytes a stage.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let parts = job.alloc::<u64>(1)?;
    ///     for step in 1..4 {
    ///         parts.set(0, step)?;
    ///         let all_there = job.world().fuzzy_barrier()?;
    ///         let inner: u64 = (0..1000).sum();            // work that needs no other rank
    ///         all_there.wait()?;                           // everybody's part is of this step
    ///         assert_eq!((job.load(parts.on(job.rank_after(1)))?, inner), (step, 499_500));
    ///         job.world().fuzzy_barrier()?.wait()?;        // everybody has looked
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Source: NICAM, `nicam_barrier`.
    #[inline]
    pub fn fuzzy_barrier(&self) -> Result<FuzzyBarrier> {
        self.inner().fuzzy_barrier(&|| self.start_helper())
    }

    /// The root's values become everybody's; as many on each member.
    ///
    /// Collective. Returns when `values` may be used again, on other members than the root with the root's values; the
    /// root does not wait for all of them. Errors, of this and the calls below: members disagree about the number of
    /// bytes (some then find out by others leaving); there is no such root; a member died, or left. Costs at most
    /// ceil(log8 P) rounds of messages, short ones up to 48 bytes; no memory.
    pub fn bcast<T: Pod>(&self, values: &mut [T], root: Rank) -> Result<()> {
        self.inner().bcast(values, root)
    }

    /// All members' values, combined in the order of members; on the root, `None` elsewhere.
    ///
    /// Collective; as many values on each member, of which `values` is left as it was. The operation need not commute,
    /// and is called on this thread. Errors as for [`Communicator::bcast`]. Costs up to 8 members one message each to
    /// the root, with more a tree of such; up to three copies of `values` on the heap.
    pub fn reduce<T: Pod>(
        &self,
        values: &[T],
        operation: impl ReduceOp<T>,
        root: Rank,
    ) -> Result<Option<Vec<T>>> {
        if self.rank() != root {
            return self.inner().reduce_to(values, &Combined(&operation), root).map(|()| None);
        }
        let mut result = values.to_vec();
        self.reduce_in_place(&mut result, operation, root)?;
        Ok(Some(result))
    }

    /// The same, in place: on the root `values` become the result, elsewhere they stay.
    pub fn reduce_in_place<T: Pod>(
        &self,
        values: &mut [T],
        operation: impl ReduceOp<T>,
        root: Rank,
    ) -> Result<()> {
        match self.rank() == root {
            true => self.inner().reduce_here(values, &Combined(&operation)),
            false => self.inner().reduce_to(values, &Combined(&operation), root),
        }
    }

    /// All members' values, combined in the order of members; the same to the bit on every member.
    ///
    /// CollectiveRequest, and otherwise as [`Communicator::reduce`]. Up to 48 bytes cost one round among up to 8 members,
    /// ceil(log2 P) among more; more bytes a reduction and a broadcast.
    ///
    /// ```
    /// use tasuki::{MaxAbs, Sum};
    /// tasuki::local(4, |job| {
    ///     let mine = i64::from(job.rank().0) - 3;                          // -3, -2, -1, 0
    ///     assert_eq!(job.world().allreduce(&[mine, 1], Sum)?, [-6, 4]);
    ///     assert_eq!(job.world().allreduce(&[mine], MaxAbs)?, [-3]);
    ///     assert_eq!(job.world().allreduce(&[mine], |a: i64, b| a.min(b))?, [-3]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn allreduce<T: Pod>(&self, values: &[T], operation: impl ReduceOp<T>) -> Result<Vec<T>> {
        let mut result = values.to_vec();
        self.allreduce_in_place(&mut result, operation)?;
        Ok(result)
    }

    /// The same, in place.
    pub fn allreduce_in_place<T: Pod>(&self, values: &mut [T], operation: impl ReduceOp<T>) -> Result<()> {
        self.inner().allreduce(values, &Combined(&operation))
    }

    /// All members' values one behind the other, on the root; as many from each.
    ///
    /// Collective. Errors as for [`Communicator::bcast`]. Costs messages up a tree, and memory on the heap for what
    /// passes through a member: on the root, all.
    pub fn gather<T: Pod>(&self, values: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        if self.rank() != root {
            return self.inner().gather_to(values, root).map(|()| None);
        }
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        self.inner().gather_here(values, &mut all)?;
        Ok(Some(all))
    }

    /// The same into `all`, which has room for as many values of each member on the root, and is not looked at
    /// elsewhere.
    pub fn gather_into<T: Pod>(&self, values: &[T], all: &mut [T], root: Rank) -> Result<()> {
        match self.rank() == root {
            true => self.inner().gather_here(values, all),
            false => self.inner().gather_to(values, root),
        }
    }

    /// Each member's block of the root's values, which are as many blocks of `count` values as there are members;
    /// `values` are not looked at elsewhere.
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
    /// Collective. Returns on the root when `values` may be used again. Errors as for [`Communicator::bcast`], and on
    /// the root if `values` are not so many. Costs a message to each member.
    pub fn scatter<T: Pod>(&self, values: &[T], count: usize, root: Rank) -> Result<Vec<T>> {
        let mut block = self.room(&[count], "scatter")?;
        self.scatter_into(values, &mut block, root)?;
        Ok(block)
    }

    /// The same into `block`, which has room for as many values on each member.
    pub fn scatter_into<T: Pod>(&self, values: &[T], block: &mut [T], root: Rank) -> Result<()> {
        if self.rank() != root {
            return self.inner().scatter_from(block, root);
        }
        self.inner().scatter_here(values, block)
    }

    /// All members' values one behind the other, on every member; as many from each.
    ///
    /// Collective. Errors as for [`Communicator::bcast`]. Costs ceil(log8 P) rounds of up to seven messages, from 4 KiB
    /// of values on a message to each member, and memory for all values on the heap.
    pub fn allgather<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); self.size() * values.len()];
        self.inner().allgather(values, &mut all)?;
        Ok(all)
    }

    /// The same into `all`, which has room for as many values of each member. ArgumentSize no memory.
    pub fn allgather_into<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        self.inner().allgather(values, all)
    }

    /// A block from each member, in their order: `values` are as many blocks of this member's for all of them.
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
    /// Collective; blocks are as long for all. Errors as for [`Communicator::bcast`], and if `values` cannot be divided
    /// so. Costs a message to each member.
    pub fn alltoall<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); values.len()];
        self.alltoall_into(values, &mut all)?;
        Ok(all)
    }

    /// The same into `all`, which is as long as `values`. ArgumentSize no memory.
    pub fn alltoall_into<T: Pod>(&self, values: &[T], all: &mut [T]) -> Result<()> {
        self.inner().alltoall(values, all)
    }

    /// This member's block of what all members' values come to, combined in the order of members: `values` are as many
    /// blocks as there are members.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let mine = job.world().reduce_scatter(&[1, 10, 100], Sum)?;
    ///     assert_eq!(mine, [3 * 10_i32.pow(job.rank().0)]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors as for [`Communicator::alltoall`]. Costs a message to each member, and two copies of `values`
    /// on the heap.
    pub fn reduce_scatter<T: Pod>(&self, values: &[T], operation: impl ReduceOp<T>) -> Result<Vec<T>> {
        self.inner().reduce_scatter(values, &Combined(&operation))
    }

    /// What the values of the members up to this one come to, combined in their order.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(4, |job| {
    ///     let count = u64::from(job.rank().0) + 1;                       // what each member has: 1, 2, 3, 4
    ///     let through = job.world().scan(&[count], Sum)?[0];
    ///     let before = job.world().exscan(&[count], Sum)?.map_or(0, |sum| sum[0]);
    ///     assert_eq!((before, through), (count * (count - 1) / 2, count * (count + 1) / 2));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective; as many values on each member. Errors as for [`Communicator::bcast`]. Costs ceil(log2 P) rounds of a
    /// message each way.
    pub fn scan<T: Pod>(&self, values: &[T], operation: impl ReduceOp<T>) -> Result<Vec<T>> {
        let mut result = values.to_vec();
        self.inner().scan(&mut result, &Combined(&operation))?;
        Ok(result)
    }

    /// The same of the members before this one; `None` on the first one. Costs a round more.
    pub fn exscan<T: Pod>(&self, values: &[T], operation: impl ReduceOp<T>) -> Result<Option<Vec<T>>> {
        let mut result = values.to_vec();
        self.inner().exscan(&mut result, &Combined(&operation))?;
        Ok((self.rank() != Rank(0)).then_some(result))
    }

    /// Room for blocks of so many values, which may be anything that a program comes up with. Error: there is none.
    pub(crate) fn room<T: Pod>(&self, counts: &[usize], call: &str) -> Result<Vec<T>> {
        let count = counts.iter().try_fold(0, |all: usize, &count| all.checked_add(count));
        let bytes = count.and_then(|count| (count as u64).checked_mul(size_of::<T>() as u64));
        if bytes.is_none_or(|bytes| bytes >= LOOKED_UP_FROM) {
            let worker = self.messages().worker();
            let fault = |error: crate::Error| worker.fault(error.cause().clone(), || call.into());
            check_available(bytes.unwrap_or(u64::MAX)).map_err(fault)?;
        }
        Ok(vec![T::zeroed(); count.unwrap_or(0)])
    }
}
