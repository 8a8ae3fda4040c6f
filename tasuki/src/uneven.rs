//! Collective calls with blocks that differ in length. Each member says what it gives and what it gets.

use crate::{Collective, Communicator, Pod, Rank, Result};

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
    /// Collective. Errors: as for [`Communicator::bcast`]; the root's count for a member is not what that gives, which
    /// both find out where more than 48 bytes travel. Costs a message from each member.
    pub fn gather_v<T: Pod>(&self, values: &[T], counts: &[usize], root: Rank) -> Result<Option<Vec<T>>> {
        if self.rank() != root {
            return self.inner().gather_v_to(values, root).map(|()| None);
        }
        let mut all = vec![T::zeroed(); counts.iter().sum()];
        self.inner().gather_v_here(values, counts, &mut all)?;
        Ok(Some(all))
    }

    /// Each member's block of the root's values, of `count` values on this member. `values` and `counts`, as many
    /// counts as there are members, are the root's, and not looked at elsewhere.
    ///
    /// Collective. Errors as for [`Communicator::gather_v`]. Costs a message to each member.
    pub fn scatter_v<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<Vec<T>> {
        let mut block = vec![T::zeroed(); count];
        match self.rank() == root {
            true => self.inner().scatter_v_here(values, counts, &mut block)?,
            false => self.inner().scatter_v_from(&mut block, root)?,
        }
        Ok(block)
    }

    /// All members' blocks one behind the other, on every member; they may differ in length. `counts` says how many
    /// values each member gives, the same on all.
    ///
    /// Collective. Errors as for [`Communicator::gather_v`]. Costs a message to each member.
    pub fn allgather_v<T: Pod>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); counts.iter().sum()];
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
    /// Collective. Errors as for [`Communicator::gather_v`]. Costs a message to each member, also where a block is
    /// empty.
    pub fn alltoall_v<T: Pod>(&self, values: &[T], gives: &[usize], gets: &[usize]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); gets.iter().sum()];
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
    /// Collective, and as [`Communicator::iallreduce`]. Errors at once: as many counts as members are not there, or this
    /// member's own is not what it gives. Errors later, besides: two members disagree about a length, which both of them
    /// find out, of whatever length, before any of it is on its way; others that need something of theirs wait until
    /// they leave. Costs a message of up to 48 bytes each way between the root and each member; where a block does not
    /// fit in it beside its length, one more when that has arrived.
    pub fn igather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<Collective<Option<Vec<T>>>> {
        self.inner().start_gather_v(values, counts, root).map(Collective)
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
    ) -> Result<Collective<Vec<T>>> {
        self.inner().start_scatter_v(values, counts, count, root).map(Collective)
    }

    /// Begins [`allgather_v`](Communicator::allgather_v): gives all members' blocks one behind the other, of as many
    /// values each as `counts` says, the same on all.
    ///
    /// As [`Communicator::igather_v`]. Costs these messages between each two members.
    pub fn iallgather_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        counts: &[usize],
    ) -> Result<Collective<Vec<T>>> {
        self.inner().start_allgather_v(values, counts).map(Collective)
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
    ) -> Result<Collective<Vec<T>>> {
        self.inner().start_alltoall_v(values, gives, gets).map(Collective)
    }
}
