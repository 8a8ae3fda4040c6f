//! Nonblocking calls whose blocks differ in length, and exchanges with neighbours.

use super::{Communicator, StartedCollective};
use crate::blocking::vector::words_of;
use crate::current_call::VectorCall;
use crate::message_algorithms::block_exchange::BlockExchange;
use crate::neighbourhood::Neighbourhood;
use bytemuck::Pod;
use tasuki_core::base::{Cause, Rank, Result};

impl Communicator {
    /// Begins a gather of blocks to the root, which passes their lengths as `counts`. The result of other members is
    /// None.
    pub fn start_gather_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<StartedCollective<Option<Vec<T>>>> {
        let call = format!("igather_v({} values to rank {root})", values.len());
        let blocks = || self.gather_v_blocks(values.len(), counts, root);
        let blocks = self.blocks_of_call::<T>(VectorCall::GatherV, root, &call, blocks)?;
        let is_root = self.rank() == root;
        let result = move |all| is_root.then_some(all);
        self.start_exchange_of((VectorCall::GatherV, root), call, values, blocks, result)
    }

    /// Begins a scatter of the root's blocks, of lengths `counts`. This member's block has `count` values.
    pub fn start_scatter_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iscatter_v({count} values from rank {root})");
        let blocks = || self.scatter_v_blocks(values.len(), counts, count, root);
        let blocks = self.blocks_of_call::<T>(VectorCall::ScatterV, root, &call, blocks)?;
        self.start_exchange_of((VectorCall::ScatterV, root), call, values, blocks, |all| all)
    }

    /// Begins a gather of blocks to all members.
    pub fn start_allgather_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        counts: &[usize],
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iallgather_v({} values)", values.len());
        let blocks = || self.allgather_v_blocks(values.len(), counts);
        let blocks = self.blocks_of_call::<T>(VectorCall::AllgatherV, Rank(0), &call, blocks)?;
        self.start_exchange_of((VectorCall::AllgatherV, Rank(0)), call, values, blocks, |all| all)
    }

    /// Begins an exchange of blocks with all members.
    pub fn start_alltoall_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("ialltoall_v({} values)", values.len());
        let blocks = || self.alltoall_v_blocks(values.len(), gives, gets);
        let blocks = self.blocks_of_call::<T>(VectorCall::AlltoallV, Rank(0), &call, blocks)?;
        self.start_exchange_of((VectorCall::AlltoallV, Rank(0)), call, values, blocks, |all| all)
    }

    /// Begins an exchange with neighbours. `counts` hold the number of values of each sent and received block.
    pub fn start_exchange<T: Pod + Send + Sync>(
        &self,
        with: &Neighbourhood,
        values: Vec<T>,
        counts: (&[usize], &[usize]),
    ) -> Result<StartedCollective<Vec<T>>> {
        let call = format!("iexchange({} values)", values.len());
        let blocks = || self.neighbour_blocks(with, values.len(), counts);
        let blocks = self.blocks_of_call::<T>(VectorCall::Exchange, Rank(0), &call, blocks)?;
        self.start_exchange_of((VectorCall::Exchange, Rank(0)), call, values, blocks, |all| all)
    }

    /// Returns the blocks of a call, and room for those that this member receives. All members wait for a root, so its
    /// error makes the communicator fail.
    fn blocks_of_call<T: Pod>(
        &self,
        what: VectorCall,
        root: Rank,
        call: &str,
        blocks: impl FnOnce() -> Result<BlockExchange, Cause>,
    ) -> Result<(BlockExchange, Vec<T>)> {
        self.check_root(root, &|| call.into())?;
        blocks().and_then(BlockExchange::with_room).map_err(|cause| {
            if what.is_rooted() {
                self.monitor().report(self.worker(), words_of::<T>(what, 0, root).0, &cause);
            }
            self.worker().fault(cause, || self.call_on(call))
        })
    }

    fn start_exchange_of<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        (what, root): (VectorCall, Rank),
        call: String,
        values: Vec<T>,
        (blocks, mut all): (BlockExchange, Vec<T>),
        result: impl FnOnce(Vec<T>) -> R + Send + 'static,
    ) -> Result<StartedCollective<R>> {
        let (word, signature) = words_of::<T>(what, values.len(), root);
        self.start((word, signature.nonblocking()), call, |peers| async move {
            blocks.run(&*peers, &values, &mut all).await?;
            Ok(result(all))
        })
    }
}
