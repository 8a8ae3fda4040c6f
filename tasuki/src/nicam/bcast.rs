//! Broadcast with notification: called by one rank, wherever the data are; each rank gets them and its flag is set.
//!
//! Every copy comes straight from the source, and long ones are shared by all ranks that wait. So a rank that drops
//! broadcasts is passed by, and keeps nothing from others. Each rank has a table of who drops them, which those write:
//! it is looked at once, when the broadcast is issued.

use super::{RemoteFlag, Transfers};
use crate::{GlobalPtr, Pod, Rank, Result};

impl Transfers<'_> {
    /// Copies `count` values at `from` to the place that `to` names on each rank, and sets the flag that `flag` names
    /// there to `value`; on the rank of the source, too, where the copy is left out if it is there already.
    ///
    /// Called by one rank. Returns when all copies are issued; the source must stay until [`Transfers::sync`] says that
    /// they have arrived. Costs as many copies as there are ranks, run by whoever may. Source: NICAM, `nicam_bcast`.
    ///
    /// ```
    /// # use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u32>(8)?, job.flags(1)?, job.transfers()?);
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
        // All of it first: what is wrong on one rank leaves the others alone.
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

    /// While this is on, broadcasts that are issued leave this rank's memory and flags alone; others get theirs.
    ///
    /// Holds for every broadcast that is issued after this call has returned, as far as its issuer can know that; one
    /// that is under way still arrives. Costs a store at each rank. Source: NICAM, `nicam_bcast_discard`, of which the
    /// paper gives the name only.
    pub fn bcast_discard(&self, on: bool) -> Result<()> {
        let me = self.job.rank().index();
        self.job.ranks().try_for_each(|rank| self.job.store(self.discards.on(rank).at(me), u64::from(on)))
    }
}
