//! Collective calls with blocks that differ in length. Each member says what it gives and what it gets.

use crate::collective::plan::offset_of;
use crate::{CollectiveRequest, Communicator, Plan, Pod, Rank, Result};
use tasuki_collective::Combining;
use tasuki_schedule::{CollectiveKind, Counts, Shape};

impl Communicator {
    /// All members' blocks one behind the other, on the root; they may differ in length. `counts` says on the root how
    /// many values each member gives, and is not looked at elsewhere.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let mine = vec![job.rank().0; job.rank().index()];                   // none, one, two values
    ///     let all = job.world().gather_v(&mine, &[0, 1, 2], Rank(0))?;
    ///     assert_eq!(all, (job.rank() == 0).then(|| vec![1, 2, 2]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors: as for [`Communicator::bcast`]; the root's count for a member is not what that gives: both
    /// find out, before any of it is on its way. Costs a message of 32 bytes each way between them, and one with the
    /// block.
    pub fn gather_v<T: Pod>(&self, values: &[T], counts: &[usize], root: Rank) -> Result<Option<Vec<T>>> {
        if self.rank() != root {
            return self.inner().gather_v_to(values, root).map(|()| None);
        }
        let mut all = self.room(counts, "gather_v")?;
        self.inner().gather_v_here(values, counts, &mut all)?;
        Ok(Some(all))
    }

    /// Each member's block of the root's values, of `count` values on this member. `values` and `counts`, as many
    /// counts as there are members, are the root's, and not looked at elsewhere.
    ///
    /// Collective. Errors and costs as of [`Communicator::gather_v`].
    pub fn scatter_v<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<Vec<T>> {
        let mut block = self.room(&[count], "scatter_v")?;
        match self.rank() == root {
            true => self.inner().scatter_v_here(values, counts, &mut block)?,
            false => self.inner().scatter_v_from(&mut block, root)?,
        }
        Ok(block)
    }

    /// All members' blocks one behind the other, on every member; they may differ in length. `counts` says how many
    /// values each member gives, the same on all.
    ///
    /// Collective. Errors and costs as of [`Communicator::gather_v`], with each other member.
    pub fn allgather_v<T: Pod>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>> {
        let mut all = self.room(counts, "allgather_v")?;
        self.inner().allgather_v(values, counts, &mut all)?;
        Ok(all)
    }

    /// A block from each member, in their order, of as many values as `gets` says; `values` are this member's for them,
    /// as many for each as `gives` says.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let me = job.rank().index();
    ///     let (gives, gets) = ([1, 2], [me + 1, me + 1]);              // one value for rank 0, two for rank 1
    ///     let got = job.world().alltoall_v(&[10 * me, 1, 2], &gives, &gets)?;
    ///     assert_eq!(got, if me == 0 { vec![0, 10] } else { vec![1, 2, 1, 2] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors and costs as of [`Communicator::gather_v`], with each other member, also where a block is
    /// empty.
    pub fn alltoall_v<T: Pod>(&self, values: &[T], gives: &[usize], gets: &[usize]) -> Result<Vec<T>> {
        let mut all = self.room(gets, "alltoall_v")?;
        self.inner().alltoall_v(values, gives, gets, &mut all)?;
        Ok(all)
    }

    /// Begins [`gather_v`](Communicator::gather_v): gives all members' blocks one behind the other, on the root; `None`
    /// elsewhere. `counts` are the root's, and not looked at elsewhere.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let mine = vec![job.rank().0; job.rank().index()];                   // none, one, two values
    ///     let all = job.world().igather_v(mine, &[0, 1, 2], Rank(0))?;
    ///     let inner: u64 = (0..1000).sum();                                    // work that needs no other rank
    ///     assert_eq!((all.wait()?, inner), ((job.rank() == 0).then(|| vec![1, 2, 2]), 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// CollectiveRequest, and as [`Communicator::iallreduce`]. Errors at once: as many counts as members are not there, or
    /// this member's own is not what it gives. Errors later, besides: two members disagree about a length, which both
    /// of them find out, of whatever length, before any of it is on its way; others that need something of theirs wait
    /// until they leave. Costs a message of up to 48 bytes each way between the root and each member; where a block
    /// does not fit in it beside its length, one more when that has arrived.
    pub fn igather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        self.inner().start_gather_v(values, counts, root).map(CollectiveRequest)
    }

    /// Begins [`scatter_v`](Communicator::scatter_v): gives this member's block of the root's values, of `count`
    /// values. `values` and `counts` are the root's, and not looked at elsewhere.
    ///
    /// As [`Communicator::igather_v`].
    pub fn iscatter_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_scatter_v(values, counts, count, root).map(CollectiveRequest)
    }

    /// Begins [`allgather_v`](Communicator::allgather_v): gives all members' blocks one behind the other, of as many
    /// values each as `counts` says, the same on all.
    ///
    /// As [`Communicator::igather_v`]. Costs these messages between each two members.
    pub fn iallgather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allgather_v(values, counts).map(CollectiveRequest)
    }

    /// Begins [`alltoall_v`](Communicator::alltoall_v): gives a block from each member, in their order, of as many
    /// values as `gets` says; `values` are this member's for them, as many for each as `gives` says.
    ///
    /// As [`Communicator::igather_v`]. Costs these messages between each two members.
    pub fn ialltoall_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_alltoall_v(values, gives, gets).map(CollectiveRequest)
    }

    /// Prepares a gather of `count` values of this member, where others may have other counts. `counts` are the root's,
    /// one for each member, and not looked at elsewhere. The root writes its own values behind those of the members
    /// before it, where it finds those of all; other members write theirs at the beginning.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let (me, counts) = (job.rank().index(), [1, 0, 2]);
    ///     let mut rows = job.world().gather_v_init::<u32>(counts[me], &counts, Rank(0))?;
    ///     for step in 0..3 {
    ///         rows.write(0, &[10 * step + 2, 10 * step + 3][..counts[me]])?;       // the root's own lie at 0, too
    ///         rows.start()?;
    ///         rows.wait()?;
    ///         assert!(me != 0 || rows.to_vec()? == [2, 2, 3].map(|value| 10 * step + value));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// CollectiveRequest, as [`Communicator::gather_init`]. Errors, on all members, of which nobody has the plan then: the
    /// root's counts are not what members give; it has not a count for each; members name different roots; one has no
    /// room. Costs an allgather of 32 bytes beside what making a plan costs, and while it is made 8 bytes a member.
    pub fn gather_v_init<T: Pod>(&self, count: usize, counts: &[usize], root: Rank) -> Result<Plan<T>> {
        let known = (self.rank() == root).then_some(counts);
        self.prepare_blocks(CollectiveKind::Gather, count, known, Some(root))
    }

    /// Prepares a scatter, of `count` values for this member. `counts` are the root's, one for each member, and not
    /// looked at elsewhere. The root writes all blocks one behind the other; members find theirs at the beginning, the
    /// root its own where it wrote it.
    ///
    /// Errors and cost as of [`Communicator::gather_v_init`].
    pub fn scatter_v_init<T: Pod>(&self, count: usize, counts: &[usize], root: Rank) -> Result<Plan<T>> {
        let known = (self.rank() == root).then_some(counts);
        self.prepare_blocks(CollectiveKind::Scatter, count, known, Some(root))
    }

    /// Prepares a gather to all, of as many values from each member as `counts` says, the same on all. A member writes
    /// its own behind those of the members before it, where all find them.
    ///
    /// Errors and cost as of [`Communicator::gather_v_init`].
    pub fn allgather_v_init<T: Pod>(&self, counts: &[usize]) -> Result<Plan<T>> {
        let own = counts.get(self.rank().index()).copied().unwrap_or(0);
        self.prepare_blocks(CollectiveKind::Allgather, own, Some(counts), None)
    }

    /// Prepares an exchange of a block between each two members: of as many values for each member as `gives` says,
    /// which are written one behind the other, and as many from each as `gets` says, which are found one behind the
    /// other.
    ///
    /// ```
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
    /// CollectiveRequest, as [`Communicator::alltoall_init`]. Errors, on all members, of which nobody has the plan then: two
    /// disagree about the length of a block between them, which those two are told; one has not a count for each
    /// member, or no room. Costs a message of 40 bytes to each member beside what making a plan costs, and while it is
    /// made some dozens of bytes a member: no member knows of blocks between others.
    pub fn alltoall_v_init<T: Pod>(&self, gives: &[usize], gets: &[usize]) -> Result<Plan<T>> {
        let [gives, gets] = [gives, gets].map(byte_counts::<T>);
        let inner = self.inner().plan_alltoall_v(&gives, &gets, &|| self.start_helper())?;
        Ok(Plan::of_two(inner, None))
    }

    fn prepare_blocks<T: Pod>(
        &self,
        operation: CollectiveKind,
        count: usize,
        known: Option<&[usize]>,
        root: Option<Rank>,
    ) -> Result<Plan<T>> {
        let bytes = |&count: &usize| offset_of::<T>(count);
        let known: Option<Vec<u64>> = known.map(|known| known.iter().map(bytes).collect());
        let blocks = self.inner().agree_on_blocks(operation, bytes(&count), known.as_deref(), root)?;
        let shape = self.shape::<T>(operation, root.unwrap_or(Rank(0)), 0);
        self.prepare(&Shape { counts: Counts::Each(blocks), ..shape }, Combining::Nothing)
    }
}

/// Bytes of so many values each.
pub(crate) fn byte_counts<T>(counts: &[usize]) -> Vec<usize> {
    counts.iter().map(|count| count.saturating_mul(size_of::<T>())).collect()
}
