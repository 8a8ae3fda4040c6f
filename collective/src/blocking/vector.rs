//! Calls whose blocks differ in length, and exchanges with neighbours. A member passes the lengths of the blocks that
//! it sends; the receivers learn them. A receiver that passes a length, too, must pass the sender's.
//!
//! A member whose own arguments are impossible gets an error. It has not begun the call, and the communicator fails.

use crate::communicator::Communicator;
use crate::current_call::CallWord;
use crate::failure::signature::CallSignature;
use crate::message_algorithms::block_exchange::{BlockExchange, counts_of, ranges};
use crate::neighbourhood::Neighbourhood;
use bytemuck::Pod;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::StridedView;
use tasuki_core::segment::check_available;
use tasuki_schedule::shape::CollectiveKind;

/// From this many bytes on, room for blocks is compared with the available memory: without room the allocation would
/// end the program.
const CHECKED_BYTES_MIN: u64 = 1 << 30;

impl Communicator {
    /// Gathers all members' blocks of `values` on the root, in what `room` returns. Returns it there, in the order of
    /// members, with the end of each block; None on the other members.
    pub fn gather_v<T: Pod, R: AsMut<[T]>>(
        &self,
        values: &[T],
        root: Rank,
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<Option<(R, Vec<usize>)>> {
        let blocks = || Ok(self.gather_v_blocks(values.len(), root));
        let all = self.exchange_blocks(CollectiveKind::Gather, values, root, blocks, room)?;
        Ok((self.rank() == root).then_some(all))
    }

    /// Sends each member its block of the root's `values`. `ends` are the ends of the blocks, on the root. This
    /// member's block has `count` values, if it knows that; `room` returns a place for it.
    pub fn scatter_v<T: Pod, R: AsMut<[T]>>(
        &self,
        values: &[T],
        ends: &[usize],
        count: Option<usize>,
        root: Rank,
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<R> {
        let blocks = || self.scatter_v_blocks(values.len(), ends, count, root);
        self.exchange_blocks(CollectiveKind::Scatter, values, root, blocks, room).map(|(block, _)| block)
    }

    /// Gathers all members' blocks of `values` on all members, in what `room` returns. Returns it with the end of each
    /// block.
    pub fn allgather_v<T: Pod, R: AsMut<[T]>>(
        &self,
        values: &[T],
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<(R, Vec<usize>)> {
        let blocks = || Ok(self.allgather_v_blocks(values.len()));
        self.exchange_blocks(CollectiveKind::Allgather, values, Rank(0), blocks, room)
    }

    /// Sends each member its block of `values`, whose ends are `ends`, and receives the blocks for this member into what
    /// `room` returns. Returns it, and the ends of the blocks in it.
    pub fn alltoall_v<T: Pod, R: AsMut<[T]>>(
        &self,
        values: &[T],
        ends: &[usize],
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<(R, Vec<usize>)> {
        let blocks = || self.alltoall_v_blocks(values.len(), ends);
        self.exchange_blocks(CollectiveKind::Alltoall, values, Rank(0), blocks, room)
    }

    /// Sends each neighbour its blocks of `values`, and receives theirs into what `room` returns. Returns it, and the
    /// ends of the blocks in it.
    pub fn neighbor_alltoall<T: Pod, R: AsMut<[T]>>(
        &self,
        with: &Neighbourhood,
        values: &[T],
        lengths: BlockLengths<'_>,
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<(R, Vec<usize>)> {
        let blocks = || self.neighbour_blocks(with, values.len(), lengths);
        self.exchange_blocks(CollectiveKind::Neighbours, values, Rank(0), blocks, room)
    }

    /// Sends each neighbour its blocks of memory `gives`, and receives theirs into the blocks of memory `gets`.
    pub fn neighbor_alltoall_strided<T: Pod>(
        &self,
        with: &Neighbourhood,
        gives: &[StridedView<'_>],
        gets: &[StridedView<'_>],
    ) -> Result<()> {
        let (out, into) = (counts_of::<T>(gives), counts_of::<T>(gets));
        let (word, signature) = words_of::<T>(CollectiveKind::Neighbours, out.iter().sum(), Rank(0));
        let call = || self.call_of(word);
        let blocks = self.strided_neighbour_blocks(with, &out, &into);
        let blocks = blocks.map_err(|cause| self.refuse_call(cause, word))?;
        let exchange = || self.by_messages(blocks.run_strided::<T>(&self.channel, gives, gets), &call);
        self.begin_as(word, signature, &call)?.run(exchange)
    }

    /// Exchanges the blocks that `blocks` returns. `room` returns a place for those that come.
    fn exchange_blocks<T: Pod, R: AsMut<[T]>>(
        &self,
        kind: CollectiveKind,
        values: &[T],
        root: Rank,
        blocks: impl FnOnce() -> Result<BlockExchange, Cause>,
        room: impl FnOnce(usize) -> Result<R, Cause>,
    ) -> Result<(R, Vec<usize>)> {
        let (word, signature) = words_of::<T>(kind, values.len(), root);
        let call = || self.call_of(word);
        self.check_root(root, word)?;
        let blocks = blocks().map_err(|cause| self.refuse_call(cause, word))?;
        let exchange = || self.by_messages(blocks.run(&self.channel, values, room), &call);
        self.begin_as(word, signature, &call)?.run(exchange)
    }

    /// Returns the blocks of a gather of `values` values from this member.
    pub(crate) fn gather_v_blocks(&self, values: usize, root: Rank) -> BlockExchange {
        let (is_root, root) = (self.rank() == root, root.index());
        self.with_each(|to| (to == root).then_some(0..values), |_| is_root.then_some(None))
    }

    /// Returns the blocks of a scatter of the root's `values` values, in which this member receives `count`. `ends`
    /// are used on the root only.
    pub(crate) fn scatter_v_blocks(
        &self,
        values: usize,
        ends: &[usize],
        count: Option<usize>,
        root: Rank,
    ) -> Result<BlockExchange, Cause> {
        let (is_root, root) = (self.rank() == root, root.index());
        let blocks = if is_root { self.blocks_of_members(ends, values)? } else { Vec::new() };
        let exchange = self.with_each(|to| blocks.get(to).cloned(), |from| (from == root).then_some(count));
        exchange.check_own().map(|()| exchange)
    }

    pub(crate) fn allgather_v_blocks(&self, values: usize) -> BlockExchange {
        self.with_each(|_| Some(0..values), |_| Some(None))
    }

    pub(crate) fn alltoall_v_blocks(&self, values: usize, ends: &[usize]) -> Result<BlockExchange, Cause> {
        let blocks = self.blocks_of_members(ends, values)?;
        Ok(self.with_each(|to| blocks.get(to).cloned(), |_| Some(None)))
    }

    pub(crate) fn neighbour_blocks(
        &self,
        with: &Neighbourhood,
        values: usize,
        lengths: BlockLengths<'_>,
    ) -> Result<BlockExchange, Cause> {
        let ([to, from], me) = (with.blocks(), self.rank().index());
        let exchange = match lengths {
            BlockLengths::Equal { room } => {
                let given = equal_blocks(values, to, "destinations")?;
                let known = match room {
                    Some(room) => Some(equal_blocks(room, from, "sources")?),
                    None => (to > 0).then_some(given), // without destinations it is not known
                };
                let out: Vec<_> = (0..to).map(|block| block * given..(block + 1) * given).collect();
                BlockExchange::with_neighbours(me, with, &out, vec![known; from]).with_equal_blocks()
            }
            BlockLengths::Uneven { ends } => {
                if ends.len() != to {
                    let text = format!("{} blocks for {to} neighbours", ends.len());
                    return Err(Cause::Argument(text));
                }
                let out = block_ranges(ends, values)?;
                BlockExchange::with_neighbours(me, with, &out, vec![None; from])
            }
        };
        exchange.check_own().map(|()| exchange)
    }

    /// Returns the exchange in which this member sends blocks of `gives` values, and receives blocks of `gets` values.
    fn strided_neighbour_blocks(
        &self,
        with: &Neighbourhood,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<BlockExchange, Cause> {
        for (given, wanted, what) in
            [(gives.len(), with.blocks()[0], "blocks"), (gets.len(), with.blocks()[1], "blocks to fill")]
        {
            if given != wanted {
                return Err(Cause::Argument(format!("{given} {what} for {wanted} neighbours")));
            }
        }
        let known = gets.iter().copied().map(Some).collect();
        let exchange = BlockExchange::with_neighbours(self.rank().index(), with, &ranges(gives), known);
        exchange.check_own().map(|()| exchange)
    }

    /// Returns the ranges of the blocks of `values` values that end at `ends`. Error: there is not a block for each
    /// member, or the blocks are not the values.
    fn blocks_of_members(&self, ends: &[usize], values: usize) -> Result<Vec<Range<usize>>, Cause> {
        let size = self.size();
        if ends.len() != size {
            return Err(Cause::Argument(format!("{} blocks, but the group has {size} members", ends.len())));
        }
        block_ranges(ends, values)
    }

    fn with_each(
        &self,
        give: impl Fn(usize) -> Option<Range<usize>>,
        get: impl Fn(usize) -> Option<Option<usize>>,
    ) -> BlockExchange {
        BlockExchange::with_each(self.rank().index(), self.size(), give, get)
    }
}

/// What a member knows of the lengths of the blocks that it exchanges with its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockLengths<'b> {
    /// All blocks have one length.
    Equal {
        /// The number of values for which the member has room. None: room is made when the lengths are known.
        room: Option<usize>,
    },
    /// Blocks differ in length.
    Uneven {
        /// The end of each block that it sends.
        ends: &'b [usize],
    },
}

/// Returns the number of values of each of the equal blocks that `values` values are.
fn equal_blocks(values: usize, blocks: usize, what: &str) -> Result<usize, Cause> {
    if values.checked_rem(blocks).unwrap_or(values) == 0 {
        return Ok(values.checked_div(blocks).unwrap_or(0));
    }
    Err(Cause::Argument(format!("{values} values cannot be divided into blocks for {blocks} {what}")))
}

/// Returns the ranges of the blocks of `values` values that end at `ends`. Error: the blocks are not the values.
fn block_ranges(ends: &[usize], values: usize) -> Result<Vec<Range<usize>>, Cause> {
    let begins = std::iter::once(0).chain(ends.iter().copied());
    if let Some((block, (begin, end))) =
        begins.zip(ends.iter().copied()).enumerate().find(|(_, (a, b))| a > b)
    {
        return Err(Cause::Argument(format!(
            "block {block} begins at value {begin} and ends at value {end}"
        )));
    }
    match ends.last() {
        Some(&end) if end != values => {
            Err(Cause::Argument(format!("the last block ends at value {end}, but there are {values} values")))
        }
        None if values > 0 => Err(Cause::Argument(format!("there are {values} values, but no blocks"))),
        _ => Ok(std::iter::once(0).chain(ends.iter().copied()).zip(ends).map(|(a, &b)| a..b).collect()),
    }
}

/// Allocates room for values, whose number comes from the program and may be any number. Error: there is not enough
/// memory.
pub fn allocate<T: Pod>(count: usize) -> Result<Vec<T>, Cause> {
    check_room::<T>(count).map(|()| vec![T::zeroed(); count])
}

/// Makes `memory` room for `count` values, as [`allocate`] does. It is allocated anew only if it has less room.
pub fn reuse<T: Pod>(mut memory: Vec<T>, count: usize) -> Result<Vec<T>, Cause> {
    if memory.capacity() < count {
        return allocate(count);
    }
    memory.resize(count, T::zeroed());
    Ok(memory)
}

/// Returns an error unless there is memory for so many values.
fn check_room<T>(count: usize) -> Result<(), Cause> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    if bytes >= CHECKED_BYTES_MIN {
        check_available(bytes).map_err(|error| error.cause().clone())?;
    }
    Ok(())
}

/// Returns the word that names a call in errors, and its signature.
pub(crate) fn words_of<T: 'static>(
    kind: CollectiveKind,
    values: usize,
    root: Rank,
) -> (CallWord, CallSignature) {
    (CallWord::of_uneven(kind, values, root), CallSignature::of_uneven::<T>(kind, root.index()))
}
