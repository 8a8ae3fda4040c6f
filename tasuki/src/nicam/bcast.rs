//! Broadcast with notification. One rank calls it, wherever the data are; each rank gets the data and its flag is
//! set.
//!
//! Every copy comes directly from the source, and all ranks that wait share the long copies. So a rank that discards
//! broadcasts is left out without consequences for the others. Each rank has a table of the ranks that discard
//! broadcasts, which those ranks write. A broadcast reads the table once, when it is issued.

use super::{RemoteFlag, Transfers};
use crate::{GlobalPtr, Pod, Rank, Result};

impl Transfers<'_> {
    /// Copies `count` values at `from` to the address `to(rank)` on each rank, and then sets the flag `flag(rank)` to
    /// `value`. The source's rank is included; its copy is left out if `to` is `from`.
    ///
    /// One rank calls it. Returns when all copies are issued. The source must stay allocated until
    /// [`Transfers::sync`] reports that the copies have arrived. Cost: one copy for each rank, run by any rank that
    /// may run it. Source: NICAM, `nicam_bcast`.
    ///
    /// ```
    /// # use tasuki::Rank;
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(3, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u32>(8)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     if job.rank() == Rank(1) {
    ///         data.fill(9)?;
    ///         let (to, flag) = (|rank| data.on(rank), |rank| flags.at(0).on(rank));
    ///         transfers.bcast(data.pointer(), to, 8, flag, 1)?;
    ///     }
    ///     flags.at(0).wait(1)?;
    ///     assert_eq!(data.to_vec()?, [9; 8]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn bcast<T: Pod>(
        &self,
        from: GlobalPtr<T>,
        to: impl Fn(Rank) -> GlobalPtr<T>,
        count: usize,
        flag: impl Fn(Rank) -> RemoteFlag,
        value: u64,
    ) -> Result<()> {
        // All checks come first: an error for one rank leaves all ranks unchanged.
        self.check("bcast", &[(from, count)])?;
        for rank in self.job.ranks() {
            self.check("bcast", &[(to(rank), count)])?;
            self.check_flag("bcast", flag(rank))?;
        }
        for rank in self.job.ranks() {
            if self.job.load(self.discards.pointer().at(rank.index()))? != 0 {
                continue;
            }
            let (to, flag) = (to(rank), flag(rank));
            let count = if to == from { 0 } else { count };
            self.copy_notify(from, to, count, flag, value)?;
        }
        Ok(())
    }

    /// While this is on, new broadcasts do not change this rank's memory and flags. Other ranks get the broadcasts.
    ///
    /// It holds for every broadcast that is issued after this call has returned, if the issuer can know that; a
    /// broadcast in flight still arrives. Cost: a store at each rank. Source: NICAM, `nicam_bcast_discard`, of which
    /// the paper gives only the name.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(3, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u32>(8)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     transfers.bcast_discard(job.rank() == 2)?;
    ///     job.barrier()?;
    ///     if job.rank() == 1 {
    ///         data.fill(9)?;
    ///         let (to, flag) = (|rank| data.on(rank), |rank| flags.at(0).on(rank));
    ///         transfers.bcast(data.pointer(), to, 8, flag, 1)?;
    ///     }
    ///     if job.rank() != 2 {
    ///         flags.at(0).wait(1)?;
    ///     }
    ///     job.barrier()?;
    ///     assert_eq!(data.to_vec()?, if job.rank() == 2 { [0; 8] } else { [9; 8] });
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn bcast_discard(&self, on: bool) -> Result<()> {
        let me = self.job.rank().index();
        self.job.ranks().try_for_each(|rank| self.job.store(self.discards.on(rank).at(me), u64::from(on)))
    }
}
