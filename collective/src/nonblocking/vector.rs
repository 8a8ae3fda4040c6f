//! Nonblocking calls whose blocks differ in length, and exchanges with neighbours.

use super::{Communicator, StartedCollective};
use crate::blocking::vector::{BlockLengths, words_of};
use crate::message_algorithms::block_exchange::BlockExchange;
use crate::neighbourhood::Neighbourhood;
use bytemuck::Pod;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_schedule::shape::CollectiveKind;

/// Returns a place for so many values.
pub trait BlockRoom<T>: FnOnce(usize) -> Result<Vec<T>, Cause> + Send + 'static {}

impl<T, F: FnOnce(usize) -> Result<Vec<T>, Cause> + Send + 'static> BlockRoom<T> for F {}

/// Makes the result of a call from the values that came and the ends of their blocks.
pub trait BlocksToResult<T, R>: FnOnce(Vec<T>, Vec<usize>) -> R + Send + 'static {}

impl<T, R, F: FnOnce(Vec<T>, Vec<usize>) -> R + Send + 'static> BlocksToResult<T, R> for F {}

impl Communicator {
    /// Begins a gather of blocks to the root, into what `room` returns. The result of other members is None.
    pub fn start_gather_v<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        root: Rank,
        room: impl BlockRoom<T>,
        result: impl BlocksToResult<T, R>,
    ) -> Result<StartedCollective<Option<R>>> {
        let (is_root, len) = (self.rank() == root, values.len());
        let blocks = || Ok(self.gather_v_blocks(len, root));
        let result = move |all, ends| is_root.then(|| result(all, ends));
        self.start_exchange_of((CollectiveKind::Gather, root), values, blocks, room, result)
    }

    /// Begins a scatter of the root's blocks, which end at `ends`. This member's block has `count` values, if it knows
    /// that; `room` returns a place for it.
    pub fn start_scatter_v<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        (ends, count): (&[usize], Option<usize>),
        root: Rank,
        room: impl BlockRoom<T>,
        result: impl FnOnce(Vec<T>) -> R + Send + 'static,
    ) -> Result<StartedCollective<R>> {
        let len = values.len();
        let blocks = || self.scatter_v_blocks(len, ends, count, root);
        self.start_exchange_of((CollectiveKind::Scatter, root), values, blocks, room, |block, _| {
            result(block)
        })
    }

    /// Begins a gather of blocks to all members, into what `room` returns.
    pub fn start_allgather_v<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        room: impl BlockRoom<T>,
        result: impl BlocksToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let len = values.len();
        let blocks = || Ok(self.allgather_v_blocks(len));
        self.start_exchange_of((CollectiveKind::Allgather, Rank(0)), values, blocks, room, result)
    }

    /// Begins an exchange of blocks with all members. Those of this member end at `ends`; `room` returns a place for those
    /// that come.
    pub fn start_alltoall_v<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        values: Vec<T>,
        ends: &[usize],
        room: impl BlockRoom<T>,
        result: impl BlocksToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let len = values.len();
        let blocks = || self.alltoall_v_blocks(len, ends);
        self.start_exchange_of((CollectiveKind::Alltoall, Rank(0)), values, blocks, room, result)
    }

    /// Begins an exchange of blocks with neighbours. `room` returns a place for those that come.
    pub fn start_neighbor_alltoall<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        with: &Neighbourhood,
        (values, lengths): (Vec<T>, BlockLengths<'_>),
        room: impl BlockRoom<T>,
        result: impl BlocksToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let len = values.len();
        let blocks = || self.neighbour_blocks(with, len, lengths);
        self.start_exchange_of((CollectiveKind::Neighbours, Rank(0)), values, blocks, room, result)
    }

    /// Begins an exchange of the blocks that `blocks` returns. `room` returns a place for those that come.
    fn start_exchange_of<T: Pod + Send + Sync, R: Send + 'static>(
        &self,
        (kind, root): (CollectiveKind, Rank),
        values: Vec<T>,
        blocks: impl FnOnce() -> Result<BlockExchange, Cause>,
        room: impl BlockRoom<T>,
        result: impl BlocksToResult<T, R>,
    ) -> Result<StartedCollective<R>> {
        let (word, signature) = words_of::<T>(kind, values.len(), root);
        let (word, signature) = (word.nonblocking(), signature.nonblocking());
        self.check_root(root, word)?;
        let blocks = blocks().map_err(|cause| self.refuse_call(cause, word))?;
        self.start((word, signature), |peers| async move {
            let (all, ends) = blocks.run(&*peers, &values, room).await?;
            Ok(result(all, ends))
        })
    }
}
