//! Calls whose blocks differ in length. Each member gives the lengths of what it sends and receives; the two members
//! that exchange a block must give equal lengths for it.

use crate::blocking::length_check::BlockLengths;
use crate::communicator::Communicator;
use crate::current_call::{CallWord, VectorCall};
use crate::failure::signature::CallSignature;
use bytemuck::Pod;
use std::ops::Range;
use tasuki_core::base::{Cause, Rank, Result};

/// The ranges of blocks of these numbers of values, one block after the other.
struct BlockRanges<'b>(&'b [usize]);

impl BlockRanges<'_> {
    /// Returns the number of values of all blocks, or `usize::MAX` if it is larger.
    fn all(&self) -> usize {
        self.0.iter().fold(0, |all, &count| all.saturating_add(count))
    }

    fn of(&self, member: Rank) -> Range<usize> {
        let begin = self.0[..member.index()].iter().sum();
        begin..begin + self.0[member.index()]
    }
}

impl Communicator {
    /// Gathers all members' blocks into `all` on this member, the root, which knows their lengths.
    pub fn gather_v_here<T: Pod>(&self, values: &[T], counts: &[usize], all: &mut [T]) -> Result<()> {
        let (me, blocks) = (self.rank(), BlockRanges(counts));
        let word = CallWord::of_vector_call(VectorCall::GatherV, values.len(), me);
        let call = || self.call_of(word);
        self.check_counts(counts, all.len(), &call)?;
        self.check_own(counts[me.index()], values.len(), &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::GatherV, me.index()), &call)?.run(
            || {
                all[blocks.of(me)].copy_from_slice(values);
                let lengths =
                    self.with_others(|from| BlockLengths::of::<T>(from, &[], &[counts[from.index()]]));
                let take =
                    |from: Rank| self.channel.recv(bytemuck::cast_slice_mut(&mut all[blocks.of(from)]), from);
                let taken = self.agree_on_lengths(&lengths).and_then(|()| self.others().try_for_each(take));
                taken.map_err(|error| self.step_failed(error, &call))
            },
        )
    }

    /// Sends a block to another member, the root.
    pub fn gather_v_to<T: Pod>(&self, values: &[T], root: Rank) -> Result<()> {
        let word = CallWord::of_vector_call(VectorCall::GatherV, values.len(), root);
        let call = || self.call_of(word);
        self.check_root(root, &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::GatherV, root.index()), &call)?
            .run(|| {
                let lengths = BlockLengths::of::<T>(root, &[values.len()], &[]);
                let given = self.agree_on_lengths(&[lengths]);
                let given = given.and_then(|()| self.channel.send(bytemuck::cast_slice(values), root));
                given.map_err(|error| self.step_failed(error, &call))
            })
    }

    /// Sends each member its block of `values`, from this member, the root, whose own block is copied to `block`.
    pub fn scatter_v_here<T: Pod>(&self, values: &[T], counts: &[usize], block: &mut [T]) -> Result<()> {
        let (me, blocks) = (self.rank(), BlockRanges(counts));
        let word = CallWord::of_vector_call(VectorCall::ScatterV, values.len(), me);
        let call = || self.call_of(word);
        self.check_counts(counts, values.len(), &call)?;
        self.check_own(counts[me.index()], block.len(), &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::ScatterV, me.index()), &call)?.run(
            || {
                block.copy_from_slice(&values[blocks.of(me)]);
                let lengths = self.with_others(|to| BlockLengths::of::<T>(to, &[counts[to.index()]], &[]));
                let give = |to: Rank| self.channel.send(bytemuck::cast_slice(&values[blocks.of(to)]), to);
                let given = self.agree_on_lengths(&lengths).and_then(|()| self.others().try_for_each(give));
                given.map_err(|error| self.step_failed(error, &call))
            },
        )
    }

    /// Receives a block from another member, the root.
    pub fn scatter_v_from<T: Pod>(&self, block: &mut [T], root: Rank) -> Result<()> {
        let count = block.len();
        let word = CallWord::of_vector_call(VectorCall::ScatterV, count, root);
        let call = || self.call_of(word);
        self.check_root(root, &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::ScatterV, root.index()), &call)?
            .run(|| {
                let received = self.agree_on_lengths(&[BlockLengths::of::<T>(root, &[], &[count])]);
                let received =
                    received.and_then(|()| self.channel.recv(bytemuck::cast_slice_mut(block), root));
                received.map_err(|error| self.step_failed(error, &call))
            })
    }

    /// Gathers all members' blocks into `all` on all members.
    pub fn allgather_v<T: Pod>(&self, values: &[T], counts: &[usize], all: &mut [T]) -> Result<()> {
        let (me, blocks) = (self.rank(), BlockRanges(counts));
        let word = CallWord::of_vector_call(VectorCall::AllgatherV, values.len(), me);
        let call = || self.call_of(word);
        self.check_counts(counts, all.len(), &call)?;
        self.check_own(counts[me.index()], values.len(), &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::AllgatherV, 0), &call)?.run(|| {
            all[blocks.of(me)].copy_from_slice(values);
            let lengths = self
                .with_others(|other| BlockLengths::of::<T>(other, &[values.len()], &[counts[other.index()]]));
            let swapped = self.agree_on_lengths(&lengths);
            let swapped = swapped.and_then(|()| self.swap(|_| values, |from| blocks.of(from), all));
            swapped.map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Sends `gives[k]` values to each member k, from `values`, and receives `gets[k]` values from it into `all`.
    pub fn alltoall_v<T: Pod>(
        &self,
        values: &[T],
        gives: &[usize],
        gets: &[usize],
        all: &mut [T],
    ) -> Result<()> {
        let (me, out, into) = (self.rank(), BlockRanges(gives), BlockRanges(gets));
        let word = CallWord::of_vector_call(VectorCall::AlltoallV, values.len(), me);
        let call = || self.call_of(word);
        self.check_counts(gives, values.len(), &call)?;
        self.check_counts(gets, all.len(), &call)?;
        self.check_own(gives[me.index()], gets[me.index()], &call)?;
        self.begin_as(word, CallSignature::of_vector_call::<T>(VectorCall::AlltoallV, 0), &call)?.run(|| {
            all[into.of(me)].copy_from_slice(&values[out.of(me)]);
            let count = |counts: &[usize], other: Rank| [counts[other.index()]];
            let lengths = self
                .with_others(|other| BlockLengths::of::<T>(other, &count(gives, other), &count(gets, other)));
            let swapped = self.agree_on_lengths(&lengths);
            let swapped =
                swapped.and_then(|()| self.swap(|to| &values[out.of(to)], |from| into.of(from), all));
            swapped.map_err(|error| self.step_failed(error, &call))
        })
    }

    fn with_others(&self, lengths: impl Fn(Rank) -> BlockLengths) -> Vec<BlockLengths> {
        self.others().map(lengths).collect()
    }

    /// Sends to each other member what `give` returns for it, and receives from each into its range of `all`.
    fn swap<'v, T: Pod>(
        &self,
        give: impl Fn(Rank) -> &'v [T],
        place: impl Fn(Rank) -> Range<usize>,
        all: &mut [T],
    ) -> Result<()> {
        let (me, size) = (self.rank(), self.size());
        (1..size).try_for_each(|steps| {
            let (to, from) = (self.after(me, steps), self.after(me, size - steps));
            let into = bytemuck::cast_slice_mut(&mut all[place(from)]);
            self.channel.exchange(bytemuck::cast_slice(give(to)), to, into, from)
        })
    }

    /// Returns an error unless there is a count for each member and their sum is `values`.
    pub(crate) fn check_counts(
        &self,
        counts: &[usize],
        values: usize,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        self.check_size(counts, call)?;
        let all = BlockRanges(counts).all();
        if all == values {
            return Ok(());
        }
        let text = format!("counts come to {all} values, not {values}");
        Err(self.worker().fault(Cause::Argument(text), call))
    }

    /// Returns an error unless there is a count for each member and their sum fits in memory.
    pub(crate) fn check_size(&self, counts: &[usize], call: &dyn Fn() -> String) -> Result<()> {
        let size = self.size();
        let text = if counts.len() != size {
            format!("{} counts, of a group of {size} members", counts.len())
        } else if BlockRanges(counts).all() > isize::MAX as usize {
            "the blocks have more bytes than memory can have".into()
        } else {
            return Ok(());
        };
        Err(self.worker().fault(Cause::Argument(text), call))
    }

    /// Returns an error unless this member's own block has as many values as its count says.
    fn check_own(&self, count: usize, values: usize, call: &dyn Fn() -> String) -> Result<()> {
        if count == values {
            return Ok(());
        }
        let text = format!("this member's own block is of {values} values, where its count says {count}");
        Err(self.worker().fault(Cause::Argument(text), call))
    }
}
