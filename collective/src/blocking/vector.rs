//! Calls whose blocks differ in length, and exchanges with neighbours. Each member gives the lengths of what it sends
//! and receives; the two members that exchange a block must give equal lengths for it.
//!
//! A root that passes impossible lengths makes the call fail on all members, which wait for it. In a call without a root
//! all members pass lengths; a member whose own are impossible gets an error, and the call has not begun there.

use crate::communicator::Communicator;
use crate::current_call::{CallWord, VectorCall};
use crate::failure::signature::CallSignature;
use crate::message_algorithms::block_exchange::{BlockExchange, ranges};
use crate::neighbourhood::Neighbourhood;
use bytemuck::Pod;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::segment::check_available;

/// From this many bytes on, room for blocks is compared with the available memory: without room the allocation would
/// end the program.
const CHECKED_BYTES_MIN: u64 = 1 << 30;

impl Communicator {
    /// Gathers all members' blocks of `values` on the root, which passes their lengths as `counts`. Returns them there,
    /// in the order of members, and None on the other members.
    pub fn gather_v<T: Pod>(&self, values: &[T], counts: &[usize], root: Rank) -> Result<Option<Vec<T>>> {
        let blocks = || self.gather_v_blocks(values.len(), counts, root);
        let all = self.exchange_blocks(VectorCall::GatherV, values, root, blocks)?;
        Ok((self.rank() == root).then_some(all))
    }

    /// Sends each member its block of the root's `values`, which has `counts` values for each. Returns this member's
    /// block, of `count` values.
    pub fn scatter_v<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<Vec<T>> {
        let blocks = || self.scatter_v_blocks(values.len(), counts, count, root);
        self.exchange_blocks(VectorCall::ScatterV, values, root, blocks)
    }

    /// Gathers all members' blocks of `values` on all members. `counts` are their lengths.
    pub fn allgather_v<T: Pod>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>> {
        let blocks = || self.allgather_v_blocks(values.len(), counts);
        self.exchange_blocks(VectorCall::AllgatherV, values, Rank(0), blocks)
    }

    /// Sends `gives[k]` values to each member k, from `values`. Returns the `gets[k]` values from each.
    pub fn alltoall_v<T: Pod>(&self, values: &[T], gives: &[usize], gets: &[usize]) -> Result<Vec<T>> {
        let blocks = || self.alltoall_v_blocks(values.len(), gives, gets);
        self.exchange_blocks(VectorCall::AlltoallV, values, Rank(0), blocks)
    }

    /// Sends each neighbour its blocks of `values`, with the given number of values for each block. Returns theirs.
    pub fn exchange<T: Pod>(
        &self,
        with: &Neighbourhood,
        values: &[T],
        counts: (&[usize], &[usize]),
    ) -> Result<Vec<T>> {
        let blocks = || self.neighbour_blocks(with, values.len(), counts);
        self.exchange_blocks(VectorCall::Exchange, values, Rank(0), blocks)
    }

    /// Exchanges the blocks that `blocks` returns.
    fn exchange_blocks<T: Pod>(
        &self,
        what: VectorCall,
        values: &[T],
        root: Rank,
        blocks: impl FnOnce() -> Result<BlockExchange, Cause>,
    ) -> Result<Vec<T>> {
        let (word, signature) = words_of::<T>(what, values.len(), root);
        let call = || self.call_of(word);
        self.check_root(root, &call)?;
        let blocks = blocks().and_then(BlockExchange::with_room);
        let blocks = blocks.map_err(|cause| self.worker().fault(cause, call));
        if blocks.is_err() && !what.is_rooted() {
            return blocks.map(|(_, all)| all);
        }
        self.begin_as(word, signature, &call)?.run(|| {
            let (blocks, mut all) = blocks?;
            self.by_messages(blocks.run(&self.channel, values, &mut all), &call)?;
            Ok(all)
        })
    }

    /// Returns the blocks of a gather of `values` values from this member. `counts` are used on the root only.
    pub(crate) fn gather_v_blocks(
        &self,
        values: usize,
        counts: &[usize],
        root: Rank,
    ) -> Result<BlockExchange, Cause> {
        let root = root.index();
        let blocks = if self.rank().index() == root { self.block_ranges(counts)? } else { Vec::new() };
        Ok(self.with_each(|to| (to == root).then_some(0..values), |from| blocks.get(from).cloned()))
    }

    /// Returns the blocks of a scatter of the root's `values` values, in which this member receives `count`. `counts`
    /// are used on the root only.
    pub(crate) fn scatter_v_blocks(
        &self,
        values: usize,
        counts: &[usize],
        count: usize,
        root: Rank,
    ) -> Result<BlockExchange, Cause> {
        let (is_root, root) = (self.rank() == root, root.index());
        let blocks = if is_root { self.block_ranges_of(counts, values)? } else { Vec::new() };
        Ok(self.with_each(|to| blocks.get(to).cloned(), |from| (from == root).then_some(0..count)))
    }

    pub(crate) fn allgather_v_blocks(&self, values: usize, counts: &[usize]) -> Result<BlockExchange, Cause> {
        let blocks = self.block_ranges(counts)?;
        Ok(self.with_each(|_| Some(0..values), |from| blocks.get(from).cloned()))
    }

    pub(crate) fn alltoall_v_blocks(
        &self,
        values: usize,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<BlockExchange, Cause> {
        let (out, into) = (self.block_ranges_of(gives, values)?, self.block_ranges(gets)?);
        Ok(self.with_each(|to| out.get(to).cloned(), |from| into.get(from).cloned()))
    }

    pub(crate) fn neighbour_blocks(
        &self,
        with: &Neighbourhood,
        values: usize,
        (gives, gets): (&[usize], &[usize]),
    ) -> Result<BlockExchange, Cause> {
        with.fits(gives, gets)?;
        check_total(gives, values)?;
        total(gets)?;
        Ok(BlockExchange::with_neighbours(self.rank().index(), with, (gives, gets)))
    }

    /// Returns the ranges of blocks with these numbers of values. Error: there is not a count for each member, or
    /// their sum is too large.
    fn block_ranges(&self, counts: &[usize]) -> Result<Vec<Range<usize>>, Cause> {
        let size = self.size();
        if counts.len() != size {
            let text = format!("{} counts, but the group has {size} members", counts.len());
            return Err(Cause::Argument(text));
        }
        total(counts).map(|_| ranges(counts))
    }

    /// Like [`block_ranges`](Self::block_ranges), for blocks that are sent. Error besides: they do not add up to the
    /// number of values.
    fn block_ranges_of(&self, counts: &[usize], values: usize) -> Result<Vec<Range<usize>>, Cause> {
        let ranges = self.block_ranges(counts)?;
        check_total(counts, values).map(|()| ranges)
    }

    fn with_each(
        &self,
        give: impl Fn(usize) -> Option<Range<usize>>,
        get: impl Fn(usize) -> Option<Range<usize>>,
    ) -> BlockExchange {
        BlockExchange::with_each(self.rank().index(), self.size(), give, get)
    }
}

impl BlockExchange {
    /// Returns the exchange, with room for the values that the member receives. Error: it cannot be made.
    pub(crate) fn with_room<T: Pod>(self) -> Result<(BlockExchange, Vec<T>), Cause> {
        let all = allocate(self.received())?;
        self.check_own().map(|()| (self, all))
    }
}

/// Allocates room for values, whose number comes from the program and may be any number. Error: there is not enough
/// memory.
pub fn allocate<T: Pod>(count: usize) -> Result<Vec<T>, Cause> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    if bytes >= CHECKED_BYTES_MIN {
        check_available(bytes).map_err(|error| error.cause().clone())?;
    }
    Ok(vec![T::zeroed(); count])
}

/// Returns the sum of the counts. Error: no memory has room for so many values.
fn total(counts: &[usize]) -> Result<usize, Cause> {
    match counts.iter().try_fold(0, |all: usize, &count| all.checked_add(count)) {
        Some(all) => Ok(all),
        None => Err(check_available(u64::MAX).map_or_else(
            |error| error.cause().clone(),
            |()| Cause::Argument("the sum of the counts is above 2^64".into()),
        )),
    }
}

/// Returns an error unless the sum of the counts is `values`.
fn check_total(counts: &[usize], values: usize) -> Result<(), Cause> {
    match total(counts)? {
        all if all == values => Ok(()),
        all => Err(Cause::Argument(format!("the counts add up to {all} values, but {values} were passed"))),
    }
}

/// Returns the word that names a call in errors, and its signature.
pub(crate) fn words_of<T: 'static>(what: VectorCall, values: usize, root: Rank) -> (CallWord, CallSignature) {
    (CallWord::of_vector_call(what, values, root), CallSignature::of_vector_call::<T>(what, root.index()))
}
