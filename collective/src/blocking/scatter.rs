//! Scatter, in which the root sends each member its block; and reduce_scatter, in which each member gets its block of
//! the combined values.

use crate::blocking::reduce::CombinerRef;
use crate::cached::schedule_cache::CallKind;
use crate::communicator::Communicator;
use bytemuck::Pod;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Sends each member its block of `values`, from this member, the root, whose own block is copied to `block`.
    pub fn scatter_here<T: Pod>(&self, values: &[T], block: &mut [T]) -> Result<()> {
        let (count, root) = (block.len(), self.rank());
        let kind = CallKind::of::<T>(CollectiveKind::Scatter, root, count);
        let call = || self.call(&kind);
        self.check_room(values.len(), count, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            block.copy_from_slice(&values[root.index() * count..][..count]);
            if self.try_cached(&kind, CallBuffers::read(bytemuck::cast_slice(values)), &call)? {
                return Ok(());
            }
            let give = |to: Rank| {
                let block = &values[to.index() * count..][..count];
                self.channel.send(bytemuck::cast_slice(block), to)
            };
            self.others().try_for_each(give).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Receives this member's block from another member, the root.
    pub fn scatter_from<T: Pod>(&self, block: &mut [T], root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Scatter, root, block.len());
        let call = || self.call(&kind);
        self.check_root(root, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            let block = bytemuck::cast_slice_mut(block);
            if self.try_cached(&kind, CallBuffers::moved(block, false), &call)? {
                return Ok(());
            }
            self.channel.recv(block, root).map_err(|error| self.step_failed(error, &call))
        })
    }

    /// Combines all members' `values` in the order of members, and returns this member's block of the result.
    pub fn reduce_scatter<T: Pod>(&self, values: &[T], combine: CombinerRef<'_, T>) -> Result<Vec<T>> {
        let (size, count) = (self.size(), values.len() / self.size());
        let kind = CallKind::of::<T>(CollectiveKind::ReduceScatter, Rank(0), count).combined(combine.known());
        let call = || self.call(&kind);
        self.check_room(values.len(), count, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            let own = self.rank().index() * count;
            let mut blocks = values.to_vec();
            if self.try_cached_reduction(&kind, &mut blocks, combine, &call)? {
                return Ok(blocks[own..own + count].to_vec());
            }
            let swapped =
                self.swap_blocks(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut blocks));
            swapped.map_err(|error| self.step_failed(error, &call))?;
            let (sum, others) = blocks.split_at_mut(count);
            (1..size).for_each(|at| combine.combine(sum, &others[(at - 1) * count..][..count]));
            blocks.truncate(count);
            Ok(blocks)
        })
    }
}
