//! Calls that combine the values of the members.

use crate::call_kind::CallKind;
use crate::communicator::Communicator;
use crate::message_algorithms::{reduce, scan};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::executor::{CallBuffers, CombineWith};
use tasuki_core::queue::reduction::Reduction;
use tasuki_schedule::shape::CollectiveKind;

/// An operation that combines values.
pub trait ValueCombiner<T> {
    /// Combines `left` with `right`, element by element, into `left`.
    fn combine(&self, left: &mut [T], right: &[T]);
    /// Returns the built-in reduction that this operation is, if it is one.
    fn known(&self) -> Option<Reduction>;
}

/// Reference to an operation that combines values.
pub type CombinerRef<'c, T> = &'c dyn ValueCombiner<T>;

/// An operation of the program, applied to values that are given as bytes.
pub(crate) struct ByteCombiner<F> {
    by: F,
    known: Option<Reduction>,
}

impl<F: Fn(&mut [u8], &[u8])> ByteCombiner<F> {
    pub(crate) fn how(&self) -> CombineWith<'_> {
        self.known.map_or(CombineWith::By(&self.by), CombineWith::Known)
    }
}

impl Communicator {
    /// Combines all members' values on this member, the root. `values` become the result.
    pub fn reduce_here<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let root = self.rank();
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            let mut by = |left: &mut [T], right: &[T]| combine.combine(left, right);
            self.by_messages(reduce::reduce_here(&self.channel, values, &mut by), &call)
        })
    }

    /// Combines all members' values on another member, the root.
    pub fn reduce_to<T: Pod>(&self, values: &[T], combine: CombinerRef<'_, T>, root: Rank) -> Result<()> {
        let kind = CallKind::of::<T>(CollectiveKind::Reduce, root, values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.check_root(root, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached(&kind, CallBuffers::read(cast_slice(values)), &call)? {
                return Ok(());
            }
            let mut by = |left: &mut [T], right: &[T]| combine.combine(left, right);
            self.by_messages(reduce::reduce_to(&self.channel, values, &mut by, root.index()), &call)
        })
    }

    /// Combines all members' values. `values` become the result on every member.
    pub fn allreduce<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        let kind =
            CallKind::of::<T>(CollectiveKind::Allreduce, Rank(0), values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            let mut by = |left: &mut [T], right: &[T]| combine.combine(left, right);
            self.by_messages(reduce::allreduce(&self.channel, values, &mut by), &call)
        })
    }

    /// Combines all members' `values` in the order of members, and returns this member's block of the result.
    pub fn reduce_scatter<T: Pod>(&self, values: &[T], combine: CombinerRef<'_, T>) -> Result<Vec<T>> {
        let count = values.len() / self.size();
        let kind = CallKind::of::<T>(CollectiveKind::ReduceScatter, Rank(0), count).combined(combine.known());
        let call = || self.call(&kind);
        self.check_room(values.len(), count, &call)?;
        self.begin(Some(&kind), &call)?.run(|| {
            let own = self.rank().index() * count;
            let mut blocks = values.to_vec();
            if self.try_cached_reduction(&kind, &mut blocks, combine, &call)? {
                return Ok(blocks[own..own + count].to_vec());
            }
            let mut by = |left: &mut [T], right: &[T]| combine.combine(left, right);
            self.by_messages(reduce::reduce_scatter(&self.channel, values, &mut by), &call)
        })
    }

    /// Combines the values of the members up to and including this one, in their order. `values` become the result.
    pub fn scan<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        self.prefix(CollectiveKind::Scan, values, combine)
    }

    /// Combines the values of the members before this one. `values` become the result; those of the first member
    /// are unchanged.
    pub fn exscan<T: Pod>(&self, values: &mut [T], combine: CombinerRef<'_, T>) -> Result<()> {
        self.prefix(CollectiveKind::Exscan, values, combine)
    }

    fn prefix<T: Pod>(
        &self,
        collective: CollectiveKind,
        values: &mut [T],
        combine: CombinerRef<'_, T>,
    ) -> Result<()> {
        let kind = CallKind::of::<T>(collective, Rank(0), values.len()).combined(combine.known());
        let call = || self.call(&kind);
        self.begin(Some(&kind), &call)?.run(|| {
            if self.try_cached_reduction(&kind, values, combine, &call)? {
                return Ok(());
            }
            let mut by = |left: &mut [T], right: &[T]| combine.combine(left, right);
            let is_inclusive = collective == CollectiveKind::Scan;
            self.by_messages(scan::scan(&self.channel, values, is_inclusive, &mut by), &call)
        })
    }

    /// Runs a reduction by its cached steps; `values` become the result. Returns false if there are no such steps.
    #[inline]
    fn try_cached_reduction<T: Pod>(
        &self,
        kind: &CallKind,
        values: &mut [T],
        combine: CombinerRef<'_, T>,
        call: &dyn Fn() -> String,
    ) -> Result<bool> {
        let byte_combiner = byte_combiner(combine);
        let values = cast_slice_mut(values);
        self.try_cached(kind, CallBuffers::combined(values, size_of::<T>(), byte_combiner.how()), call)
    }
}

/// Returns the operation as one on bytes. The bytes must be aligned for values of type `T`.
fn byte_combiner<T: Pod>(combine: CombinerRef<'_, T>) -> ByteCombiner<impl Fn(&mut [u8], &[u8])> {
    let by = |left: &mut [u8], right: &[u8]| {
        combine.combine(cast_slice_mut(left), cast_slice(right));
    };
    ByteCombiner { by, known: combine.known() }
}
