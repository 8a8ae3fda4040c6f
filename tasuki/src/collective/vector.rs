//! Collective calls whose blocks differ in length (MPI: Gatherv and its kind). Each member passes the lengths of what
//! it sends and receives.

use crate::collective::CollectiveRequest;
use crate::collective::plan::offset_of;
use crate::message::Peer;
use crate::{Communicator, Plan, Pod, Rank, Result};
use tasuki_core::queue::reduction::ReduceOperation;
use tasuki_schedule::{CollectiveKind, Counts, Shape};

impl Communicator {
    /// Gathers blocks of different lengths on the root, one behind the other in the order of the members. On the root
    /// `counts` has each member's number of values; other members' `counts` are ignored. Returns `None` on the other
    /// members.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let own = vec![job.rank().0; job.rank().index()];                   // none, one, two values
    ///     let all = job.world().gather_v(&own, &[0, 1, 2], Rank(0))?;
    ///     assert_eq!(all, (job.rank() == 0).then(|| vec![1, 2, 2]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors: those of [`Communicator::bcast`]; the root's count for a member differs from that member's
    /// number of values, which both find before any value is sent; the root's counts are impossible (not one for each
    /// member, or more values than memory has room for). All these make the communicator fail on all members, except
    /// that a root that does not exist is an error on this member only. Cost: a message of 32 bytes in each direction
    /// between the root and each member, then one message with the block. These calls always use messages.
    pub fn gather_v<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        root: impl Peer,
    ) -> Result<Option<Vec<T>>> {
        let root = self.root(root, "gather_v")?;
        self.inner().gather_v(values, counts, root.place())
    }

    /// Scatters the root's blocks of different lengths. Returns this member's block of `count` values. The root
    /// passes `values` and one count for each member; these arguments of other members are ignored.
    ///
    /// Collective. Errors and cost: those of [`Communicator::gather_v`]. The root's counts are impossible, too, if they
    /// do not add up to the number of `values`.
    pub fn scatter_v<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        count: usize,
        root: impl Peer,
    ) -> Result<Vec<T>> {
        let root = self.root(root, "scatter_v")?;
        self.inner().scatter_v(values, counts, count, root.place())
    }

    /// Gathers blocks of different lengths on every member, one behind the other in the order of the members.
    /// `counts` has each member's number of values, equal on all members.
    ///
    /// Collective. Errors and cost: those of [`Communicator::gather_v`], with each other member. But impossible counts
    /// of this member, also one for itself that differs from its number of values, are an error on this member only,
    /// which has then not begun the call.
    pub fn allgather_v<T: Pod>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>> {
        self.inner().allgather_v(values, counts)
    }

    /// Exchanges one block between each two members, with different lengths. `values` are this member's blocks in the
    /// order of the members, of `send_counts` values each. Returns the blocks from the members in their order, of
    /// `recv_counts` values each.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let me = job.rank().index();
    ///     let (send_counts, recv_counts) = ([1, 2], [me + 1, me + 1]);              // one value for rank 0, two for rank 1
    ///     let got = job.world().alltoall_v(&[10 * me, 1, 2], &send_counts, &recv_counts)?;
    ///     assert_eq!(got, if me == 0 { vec![0, 10] } else { vec![1, 2, 1, 2] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors and cost: those of [`Communicator::allgather_v`], also for empty blocks. This member's counts
    /// are impossible, too, if `send_counts` do not add up to the number of `values`.
    pub fn alltoall_v<T: Pod>(
        &self,
        values: &[T],
        send_counts: &[usize],
        recv_counts: &[usize],
    ) -> Result<Vec<T>> {
        self.inner().alltoall_v(values, send_counts, recv_counts)
    }

    /// Begins a [`gather_v`](Communicator::gather_v). The root gets all members' blocks, one behind the other; other
    /// members get `None`. Only the root's `counts` are used.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let own = vec![job.rank().0; job.rank().index()];                   // none, one, two values
    ///     let mut all = job.world().igather_v(own, &[0, 1, 2], Rank(0))?;
    ///     let sum: u64 = (0..1000).sum();                                    // work that needs no other rank
    ///     assert_eq!((all.wait()?, sum), ((job.rank() == 0).then(|| vec![1, 2, 2]), 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. The rules of [`Communicator::iallreduce`] apply, except that the call always uses messages. Errors
    /// of this call: on the root, its counts are impossible (not one for each member, more values than memory has room
    /// for, or its own count differs from its number of values); the communicator then fails on all members. Later
    /// errors besides: two members disagree about a length, which both find before any value is sent; the communicator
    /// then fails, too. Cost: a message of 32 bytes in each direction between the root and each member, then one
    /// message with the block.
    pub fn igather_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        root: impl Peer,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        let root = self.root(root, "igather_v")?;
        self.inner().start_gather_v(values, counts, root.place()).map(CollectiveRequest)
    }

    /// Begins a [`scatter_v`](Communicator::scatter_v). This member gets its block of `count` values. Only the root's
    /// `values` and `counts` are used.
    ///
    /// The rules and the cost of [`Communicator::igather_v`] apply. The root's counts are impossible, too, if they do
    /// not add up to the number of `values`.
    pub fn iscatter_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        count: usize,
        root: impl Peer,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        let root = self.root(root, "iscatter_v")?;
        self.inner().start_scatter_v(values, counts, count, root.place()).map(CollectiveRequest)
    }

    /// Begins an [`allgather_v`](Communicator::allgather_v). All members get all blocks, one behind the other, with
    /// the lengths in `counts`, equal on all members.
    ///
    /// The rules of [`Communicator::igather_v`] apply, except that impossible counts of this member are an error on
    /// this member only, which has then not begun the call. Cost: its messages between each two members.
    pub fn iallgather_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allgather_v(values, counts).map(CollectiveRequest)
    }

    /// Begins an [`alltoall_v`](Communicator::alltoall_v). `values` are this member's blocks in the order of the
    /// members, of `send_counts` values each. The result are the blocks from the members, of `recv_counts` values
    /// each.
    ///
    /// The rules and the cost of [`Communicator::iallgather_v`] apply. This member's counts are impossible, too, if
    /// `send_counts` do not add up to the number of `values`.
    pub fn ialltoall_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        send_counts: &[usize],
        recv_counts: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_alltoall_v(values, send_counts, recv_counts).map(CollectiveRequest)
    }

    /// Prepares a gather of `count` values from this member; other members may have other counts. The root passes one
    /// count for each member; other members' `counts` are ignored. The root writes its own values after those of the
    /// members before it, and reads the values of all members; other members write theirs at the beginning.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let (me, counts) = (job.rank().index(), [1, 0, 2]);
    ///     let mut rows = job.world().gather_v_init::<u32>(counts[me], &counts, Rank(0))?;
    ///     for step in 0..3 {
    ///         rows.write(0, &[10 * step + 2, 10 * step + 3][..counts[me]])?;       // the root's own values begin at 0, too
    ///         rows.start()?;
    ///         rows.wait()?;
    ///         assert!(me != 0 || rows.to_vec()? == [2, 2, 3].map(|value| 10 * step + value));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective, like [`Communicator::gather_init`]. Errors, on all members, none of which gets a
    /// plan: the root's counts differ from those of the members; the root has not one count for
    /// each member; members name different roots; a member has no room. Cost, besides that of any
    /// plan: an allgather of 32 bytes, and during the call 8 bytes of memory for each member.
    pub fn gather_v_init<T: Pod>(&self, count: usize, counts: &[usize], root: impl Peer) -> Result<Plan<T>> {
        let root = self.root(root, "gather_v_init")?;
        let known = (self.rank() == root).then_some(counts);
        self.prepare_blocks(CollectiveKind::Gather, count, known, Some(root.place()))
    }

    /// Prepares a scatter of `count` values to this member. The root passes one count for each member; other members'
    /// `counts` are ignored. The root writes all blocks one behind the other; members read theirs at the beginning,
    /// the root reads its own where it wrote it.
    ///
    /// Errors and cost: those of [`Communicator::gather_v_init`].
    pub fn scatter_v_init<T: Pod>(&self, count: usize, counts: &[usize], root: impl Peer) -> Result<Plan<T>> {
        let root = self.root(root, "scatter_v_init")?;
        let known = (self.rank() == root).then_some(counts);
        self.prepare_blocks(CollectiveKind::Scatter, count, known, Some(root.place()))
    }

    /// Prepares an allgather of blocks with the lengths in `counts`, equal on all members. A member writes its own
    /// block after those of the members before it; all members read all blocks.
    ///
    /// Errors and cost: those of [`Communicator::gather_v_init`].
    pub fn allgather_v_init<T: Pod>(&self, counts: &[usize]) -> Result<Plan<T>> {
        let own = counts.get(self.rank().index()).copied().unwrap_or(0);
        self.prepare_blocks(CollectiveKind::Allgather, own, Some(counts), None)
    }

    /// Prepares an exchange of one block between each two members. A member writes its blocks one behind the other in
    /// the order of the members, of `send_counts` values each, and reads the blocks from the members in the same way,
    /// of `recv_counts` values each.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(2, |job| {
    ///     let me = job.rank().index();
    ///     let mut exchange = job.world().alltoall_v_init(&[1, 2], &[me + 1, me + 1])?;
    ///     for step in 0..3 {
    ///         exchange.write(0, &[10 * me + step, 1, 2])?;       // one value for rank 0, two for rank 1
    ///         exchange.start()?;
    ///         exchange.wait()?;
    ///         let wanted = if me == 0 { vec![step, 10 + step] } else { vec![1, 2, 1, 2] };
    ///         assert_eq!(exchange.to_vec()?, wanted);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective, like [`Communicator::alltoall_init`]. Errors, on all members, none of which gets
    /// a plan: two members disagree about the length of a block between them (these two report it);
    /// a member has not one count for each member, or no room. Cost, besides that of any plan: a
    /// message of 40 bytes to each member, and during the call some dozens of bytes of memory for
    /// each member. No member learns the lengths of blocks between other members.
    pub fn alltoall_v_init<T: Pod>(&self, send_counts: &[usize], recv_counts: &[usize]) -> Result<Plan<T>> {
        let [send_counts, recv_counts] = [send_counts, recv_counts].map(byte_counts::<T>);
        let inner = self.inner().plan_alltoall_v(&send_counts, &recv_counts, &|| self.start_helper())?;
        Ok(Plan::of_two(inner, None))
    }

    fn prepare_blocks<T: Pod>(
        &self,
        collective: CollectiveKind,
        count: usize,
        known: Option<&[usize]>,
        root: Option<Rank>,
    ) -> Result<Plan<T>> {
        let bytes = |&count: &usize| offset_of::<T>(count);
        let known: Option<Vec<u64>> = known.map(|known| known.iter().map(bytes).collect());
        let blocks = self.inner().agree_on_blocks(collective, bytes(&count), known.as_deref(), root)?;
        let shape = self.shape::<T>(collective, root.unwrap_or(Rank(0)), 0);
        self.prepare(&Shape { counts: Counts::Each(blocks), ..shape }, ReduceOperation::Nothing)
    }
}

/// The sizes in bytes of these numbers of values.
pub(crate) fn byte_counts<T>(counts: &[usize]) -> Vec<usize> {
    counts.iter().map(|count| count.saturating_mul(size_of::<T>())).collect()
}
