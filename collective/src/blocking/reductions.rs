//! Calls that combine the values of the members.

use crate::call_kind::CallKind;
use crate::communicator::Communicator;
use crate::current_call::CallWord;
use crate::message_algorithms::{reduce, scan};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::CallBuffers;
use tasuki_core::queue::reduction::BorrowedOperation;
use tasuki_schedule::shape::CollectiveKind;

impl Communicator {
    /// Combines all members' values on this member, the root. `values` become the result.
    pub fn reduce_here<T: Pod>(&self, values: &mut [T], operation: BorrowedOperation<'_>) -> Result<()> {
        let root = self.rank();
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len())
            .combined(operation.builtin())
            .with_elements(operation.elements_of_value::<T>());
        let call = || self.call(&kind);
        self.begin(&kind, &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, operation, &call)? {
                return Ok(());
            }
            self.by_messages(reduce::reduce_here(&self.channel, values, operation), &call)
        })
    }

    /// Combines all members' values on another member, the root.
    pub fn reduce_to<T: Pod>(
        &self,
        values: &[T],
        operation: BorrowedOperation<'_>,
        root: Rank,
    ) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len())
            .combined(operation.builtin())
            .with_elements(operation.elements_of_value::<T>());
        let call = || self.call(&kind);
        self.check_root(root, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            if self.try_cached(&kind, CallBuffers::read(cast_slice(values)), &call)? {
                return Ok(());
            }
            self.by_messages(reduce::reduce_to(&self.channel, values, operation, root.index()), &call)
        })
    }

    /// Combines all members' values. `values` become the result on every member.
    pub fn allreduce<T: Pod>(&self, values: &mut [T], operation: BorrowedOperation<'_>) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Allreduce, Rank(0), values.len())
            .combined(operation.builtin())
            .with_elements(operation.elements_of_value::<T>());
        let call = || self.call(&kind);
        self.begin(&kind, &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, operation, &call)? {
                return Ok(());
            }
            self.by_messages(reduce::allreduce(&self.channel, values, operation), &call)
        })
    }

    /// Combines all members' `values` in the order of members. This member's block of the result goes to `block`.
    pub fn reduce_scatter<T: Pod>(
        &self,
        values: &[T],
        block: &mut [T],
        operation: BorrowedOperation<'_>,
    ) -> Result<()> {
        let count = values.len() / self.size();
        let kind = CallKind::of::<T>(CollectiveKind::ReduceScatter, Rank(0), count)
            .combined(operation.builtin())
            .with_elements(operation.elements_of_value::<T>());
        let call = || self.call(&kind);
        self.check_room(values.len(), count, CallWord::of(&kind))?;
        self.check_block(block.len(), count, CallWord::of(&kind))?;
        self.begin(&kind, &call)?.run(|| {
            let own = self.rank().index() * count;
            let mut blocks = values.to_vec();
            if self.try_cached_reduction(&kind, &mut blocks, operation, &call)? {
                block.copy_from_slice(&blocks[own..own + count]);
                return Ok(());
            }
            let result = self.by_messages(reduce::reduce_scatter(&self.channel, values, operation), &call)?;
            block.copy_from_slice(&result);
            Ok(())
        })
    }

    /// Combines the values of the members up to and including this one, in their order. `values` become the result.
    pub fn scan<T: Pod>(&self, values: &mut [T], operation: BorrowedOperation<'_>) -> Result<()> {
        self.prefix(CollectiveKind::Scan, values, operation)
    }

    /// Combines the values of the members before this one. `values` become the result; those of the first member
    /// are unchanged.
    pub fn exscan<T: Pod>(&self, values: &mut [T], operation: BorrowedOperation<'_>) -> Result<()> {
        self.prefix(CollectiveKind::Exscan, values, operation)
    }

    fn prefix<T: Pod>(
        &self,
        collective: CollectiveKind,
        values: &mut [T],
        operation: BorrowedOperation<'_>,
    ) -> Result<()> {
        let kind = CallKind::of::<T>(collective, Rank(0), values.len())
            .combined(operation.builtin())
            .with_elements(operation.elements_of_value::<T>());
        let call = || self.call(&kind);
        self.begin(&kind, &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, operation, &call)? {
                return Ok(());
            }
            let is_inclusive = collective == CollectiveKind::Scan;
            self.by_messages(scan::scan(&self.channel, values, is_inclusive, operation), &call)
        })
    }

    /// Runs a reduction by its cached steps; `values` become the result. Returns false if there are no such steps.
    #[inline]
    fn try_cached_reduction<T: Pod>(
        &self,
        kind: &CallKind,
        values: &mut [T],
        operation: BorrowedOperation<'_>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        self.try_cached(kind, CallBuffers::combined(cast_slice_mut(values), operation), call)
    }
}
