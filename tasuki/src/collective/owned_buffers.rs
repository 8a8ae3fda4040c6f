//! What nonblocking calls own until they are complete: their values, and room for the result.

use crate::collective::exchange_buffers::equal_ends;
use crate::collective::reduce_buffers::check_room;
use crate::collective::{Blocks, Data, OwnedValues, Uneven};
use crate::engine::Cause;
use crate::message::RequestValues;
use crate::{Communicator, Member, Pod, Result};
use tasuki_collective::{BlockLengths, Neighbourhood as NeighbourBlocks, StartedCollective, allocate, reuse};
use tasuki_core::queue::reduction::BoxedOperation;

/// What [`igather`](Communicator::igather) and [`iallgather`](Communicator::iallgather) own: a block, which is a
/// number, an array or a vector, with the result in a vector; `(block, all)`, where `all` is room for the blocks of all
/// members and comes back with them; `Uneven(block)`, with the result in [`Blocks`]; or `(Uneven(block), blocks)`, where
/// the result takes the place of the blocks in `blocks`. Room on a member that gets no result is dropped; it may be
/// empty there.
///
/// ```
/// use tasuki::{Blocks, Request, Uneven};
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     assert_eq!(world.iallgather(me)?.wait()?, [0, 1]);
///     assert_eq!(world.iallgather((me, vec![0; 2]))?.wait()?, [0, 1]); // in the vector that was passed
///     assert_eq!(world.iallgather(Uneven(vec![me; me]))?.wait()?.values(), [1]);
///     let blocks = world.iallgather((Uneven(vec![me; 2]), Blocks::default()))?.wait()?;
///     assert_eq!(blocks.block(1), [1, 1]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a nonblocking gather owns",
    note = "pass `block`, `(block, all)`, `Uneven(block)` or `(Uneven(block), blocks)`; a block is a number, an array or a vector"
)]
pub trait OwnedGather: sealed::SealedOwnedGather {
    /// The type of one value.
    type Value: Pod;
    /// The result of the call.
    type Output;

    /// Begins a gather on the root.
    #[doc(hidden)]
    fn igather(self, on: &Communicator, root: Member) -> Result<StartedCollective<Option<Self::Output>>>;

    /// Begins a gather on all members.
    #[doc(hidden)]
    fn iallgather(self, on: &Communicator) -> Result<StartedCollective<Self::Output>>;
}

impl<D: OwnedValues> OwnedGather for D {
    type Value = D::Value;
    type Output = Vec<D::Value>;

    fn igather(self, on: &Communicator, root: Member) -> Result<StartedCollective<Option<Vec<D::Value>>>> {
        on.inner().start_gather(self.into_vec(), None, root.place(), |all| all)
    }

    fn iallgather(self, on: &Communicator) -> Result<StartedCollective<Vec<D::Value>>> {
        on.inner().start_allgather(self.into_vec(), None, |all| all)
    }
}

impl<A: OwnedValues, B: OwnedValues + Data<Value = A::Value>> OwnedGather for (A, B) {
    type Value = A::Value;
    type Output = B;

    fn igather(self, on: &Communicator, root: Member) -> Result<StartedCollective<Option<B>>> {
        let (block, room) = (self.0.into_vec(), self.1.into_vec());
        on.inner().start_gather(block, Some(room), root.place(), B::from_vec)
    }

    fn iallgather(self, on: &Communicator) -> Result<StartedCollective<B>> {
        let (block, room) = (self.0.into_vec(), self.1.into_vec());
        on.inner().start_allgather(block, Some(room), B::from_vec)
    }
}

impl<D: OwnedValues> OwnedGather for Uneven<D> {
    type Value = D::Value;
    type Output = Blocks<D::Value>;

    fn igather(self, on: &Communicator, root: Member) -> Result<StartedCollective<Option<Blocks<D::Value>>>> {
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_gather_v(self.0.into_vec(), root.place(), allocate, blocks)
    }

    fn iallgather(self, on: &Communicator) -> Result<StartedCollective<Blocks<D::Value>>> {
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_allgather_v(self.0.into_vec(), allocate, blocks)
    }
}

impl<D: OwnedValues> OwnedGather for (Uneven<D>, Blocks<D::Value>) {
    type Value = D::Value;
    type Output = Blocks<D::Value>;

    fn igather(self, on: &Communicator, root: Member) -> Result<StartedCollective<Option<Blocks<D::Value>>>> {
        let (block, memory) = (self.0.0.into_vec(), self.1.into_parts().0);
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_gather_v(block, root.place(), |count| reuse(memory, count), blocks)
    }

    fn iallgather(self, on: &Communicator) -> Result<StartedCollective<Blocks<D::Value>>> {
        let (block, memory) = (self.0.0.into_vec(), self.1.into_parts().0);
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_allgather_v(block, |count| reuse(memory, count), blocks)
    }
}

/// What [`ialltoall`](Communicator::ialltoall) and nonblocking exchanges with neighbours own: equal blocks, one for
/// each member or neighbour, with the result in a vector; `(values, result)`, where `result` is room that comes back
/// filled; [`Blocks`], with the result in [`Blocks`]; or two of [`Blocks`], `(blocks, result)`, where the result takes
/// the place of the blocks in `result`.
///
/// ```
/// use tasuki::{Blocks, Request};
/// tasuki::local(2, |job| {
///     let me = job.rank().0;
///     let blocks: Blocks<usize> = (0..2).map(|to| vec![me; to]).collect();
///     let mut first = job.world().ialltoall(blocks.clone())?;
///     let result = first.wait()?;
///     let mut second = job.world().ialltoall((blocks, result.clone()))?;      // with the memory of another result
///     assert_eq!(second.wait()?, result);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a block for each member that a nonblocking call can own",
    note = "pass `values`, `(values, result)`, `blocks` or `(blocks, result)`, of the type `Blocks`"
)]
pub trait OwnedBlocks: sealed::SealedOwnedBlocks {
    /// The type of one value.
    type Value: Pod;
    /// The result of the call.
    type Output;

    /// Begins an exchange.
    #[doc(hidden)]
    fn ialltoall(self, on: &Communicator) -> Result<StartedCollective<Self::Output>>;

    /// Begins an exchange with neighbours.
    #[doc(hidden)]
    fn ineighbor_alltoall(
        self,
        on: &Communicator,
        with: &NeighbourBlocks,
    ) -> Result<StartedCollective<Self::Output>>;
}

/// What [`ireduce_scatter`](Communicator::ireduce_scatter) owns: equal blocks, one for each member, with the result in
/// a vector; or `(values, block)`, where `block` is room that comes back filled.
///
/// ```
/// use tasuki::{Request, Sum};
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     let mine = world.ireduce_scatter([1, 10], Sum)?.wait()?; // one value for each member
///     assert_eq!(mine, [[2], [20]][me]);
///     let mine = world.ireduce_scatter(([1, 10], [0]), Sum)?.wait()?; // into room of this member
///     assert_eq!(mine, [[2], [20]][me]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait OwnedEqualBlocks: OwnedBlocks {
    /// Begins a reduction.
    #[doc(hidden)]
    fn ireduce_scatter(
        self,
        on: &Communicator,
        operation: BoxedOperation,
    ) -> Result<StartedCollective<Self::Output>>;
}

impl<D: OwnedValues> OwnedBlocks for D {
    type Value = D::Value;
    type Output = Vec<D::Value>;

    fn ialltoall(self, on: &Communicator) -> Result<StartedCollective<Vec<D::Value>>> {
        on.inner().start_alltoall(self.into_vec(), None, |result| result)
    }

    fn ineighbor_alltoall(
        self,
        on: &Communicator,
        with: &NeighbourBlocks,
    ) -> Result<StartedCollective<Vec<D::Value>>> {
        let blocks = (self.into_vec(), BlockLengths::Equal { room: None });
        on.inner().start_neighbor_alltoall(with, blocks, allocate, |all, _| all)
    }
}

impl<D: OwnedValues> OwnedEqualBlocks for D {
    fn ireduce_scatter(
        self,
        on: &Communicator,
        operation: BoxedOperation,
    ) -> Result<StartedCollective<Vec<D::Value>>> {
        on.inner().start_reduce_scatter(self.into_vec(), None, operation, |block| block)
    }
}

impl<A: OwnedValues, B: OwnedValues + Data<Value = A::Value>> OwnedBlocks for (A, B) {
    type Value = A::Value;
    type Output = B;

    fn ialltoall(self, on: &Communicator) -> Result<StartedCollective<B>> {
        let (values, room) = (self.0.into_vec(), self.1.into_vec());
        on.inner().start_alltoall(values, Some(room), B::from_vec)
    }

    fn ineighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<StartedCollective<B>> {
        let (values, room) = (self.0.into_vec(), self.1.into_vec());
        let blocks = (values, BlockLengths::Equal { room: Some(room.len()) });
        on.inner().start_neighbor_alltoall(with, blocks, |_| Ok(room), |all, _| B::from_vec(all))
    }
}

impl<A: OwnedValues, B: OwnedValues + Data<Value = A::Value>> OwnedEqualBlocks for (A, B) {
    fn ireduce_scatter(self, on: &Communicator, operation: BoxedOperation) -> Result<StartedCollective<B>> {
        let (values, room) = (self.0.into_vec(), self.1.into_vec());
        on.inner().start_reduce_scatter(values, Some(room), operation, B::from_vec)
    }
}

impl<T: Pod + Send + Sync> OwnedBlocks for Blocks<T> {
    type Value = T;
    type Output = Blocks<T>;

    fn ialltoall(self, on: &Communicator) -> Result<StartedCollective<Blocks<T>>> {
        let (values, ends) = self.into_parts();
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_alltoall_v(values, &ends, allocate, blocks)
    }

    fn ineighbor_alltoall(
        self,
        on: &Communicator,
        with: &NeighbourBlocks,
    ) -> Result<StartedCollective<Blocks<T>>> {
        let (values, ends) = self.into_parts();
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        let given = (values, BlockLengths::Uneven { ends: &ends });
        on.inner().start_neighbor_alltoall(with, given, allocate, blocks)
    }
}

impl<T: Pod + Send + Sync> OwnedBlocks for (Blocks<T>, Blocks<T>) {
    type Value = T;
    type Output = Blocks<T>;

    fn ialltoall(self, on: &Communicator) -> Result<StartedCollective<Blocks<T>>> {
        let ((values, ends), (memory, _)) = (self.0.into_parts(), self.1.into_parts());
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        on.inner().start_alltoall_v(values, &ends, |count| reuse(memory, count), blocks)
    }

    fn ineighbor_alltoall(
        self,
        on: &Communicator,
        with: &NeighbourBlocks,
    ) -> Result<StartedCollective<Blocks<T>>> {
        let ((values, ends), (memory, _)) = (self.0.into_parts(), self.1.into_parts());
        let blocks = |values, ends| Blocks::of_ends((values, ends));
        let given = (values, BlockLengths::Uneven { ends: &ends });
        on.inner().start_neighbor_alltoall(with, given, |count| reuse(memory, count), blocks)
    }
}

/// What the root of an [`iscatter`](Communicator::iscatter) sends: equal blocks, one for each member, in a number, an
/// array or a vector; or [`Blocks`] of different lengths. Other members pass the same type.
///
/// ```
/// use tasuki::{Blocks, Rank, Request};
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     assert_eq!(world.iscatter([5, 6], 1, Rank(0))?.wait()?, [5 + me]);
///     let blocks = if me == 0 { Blocks::from(vec![vec![1], vec![2, 3]]) } else { Blocks::default() };
///     assert_eq!(world.iscatter(blocks, (), Rank(0))?.wait()?, [&[1][..], &[2, 3]][me]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait OwnedScatter: sealed::SealedOwnedScatter {
    /// The type of one value.
    type Value: Pod + Send + Sync;

    /// The values, and where the blocks end if they have different lengths.
    #[doc(hidden)]
    fn into_parts(self) -> (Vec<Self::Value>, Option<Vec<usize>>);
}

impl<D: OwnedValues> OwnedScatter for D {
    type Value = D::Value;

    fn into_parts(self) -> (Vec<D::Value>, Option<Vec<usize>>) {
        (self.into_vec(), None)
    }
}

impl<T: Pod + Send + Sync> OwnedScatter for Blocks<T> {
    type Value = T;

    fn into_parts(self) -> (Vec<T>, Option<Vec<usize>>) {
        let (values, ends) = Blocks::into_parts(self);
        (values, Some(ends))
    }
}

/// Where a member's block of an [`iscatter`](Communicator::iscatter) goes: a count, or `()` for "I do not know how many
/// values come", with the block in a vector; or room, a vector or an array, which comes back filled.
///
/// ```
/// use tasuki::{Rank, Request};
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     assert_eq!(world.iscatter([5, 6], 1, Rank(0))?.wait()?, [5 + me]); // a count
///     assert_eq!(world.iscatter([5, 6], [0], Rank(0))?.wait()?, [5 + me]); // room
///     assert_eq!(world.iscatter([5, 6], vec![0], Rank(0))?.wait()?, [5 + me]);
///     assert_eq!(world.iscatter([5, 6], (), Rank(0))?.wait()?, [5 + me]); // the count is learned
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no place for a member's block of a nonblocking scatter",
    note = "pass the number of values, a vector or an array, or `()` if this member does not know the number"
)]
pub trait OwnedScatterTarget<T: Pod>: sealed::SealedOwnedTarget + 'static {
    /// The result of the call.
    type Output: Send + 'static;

    /// The number of values, if this member knows it, and the room, if it passes some.
    #[doc(hidden)]
    fn into_room(self) -> (Option<usize>, Option<Vec<T>>);

    /// Returns the block as the result.
    #[doc(hidden)]
    fn output(block: Vec<T>) -> Self::Output;
}

impl<T: Pod + Send> OwnedScatterTarget<T> for usize {
    type Output = Vec<T>;

    fn into_room(self) -> (Option<usize>, Option<Vec<T>>) {
        (Some(self), None)
    }

    fn output(block: Vec<T>) -> Vec<T> {
        block
    }
}

impl<T: Pod + Send> OwnedScatterTarget<T> for () {
    type Output = Vec<T>;

    fn into_room(self) -> (Option<usize>, Option<Vec<T>>) {
        (None, None)
    }

    fn output(block: Vec<T>) -> Vec<T> {
        block
    }
}

impl<T: Pod + Send> OwnedScatterTarget<T> for Vec<T> {
    type Output = Vec<T>;

    fn into_room(self) -> (Option<usize>, Option<Vec<T>>) {
        (Some(self.len()), Some(self))
    }

    fn output(block: Vec<T>) -> Vec<T> {
        block
    }
}

impl<T: Pod + Send + Sync, const N: usize> OwnedScatterTarget<T> for [T; N] {
    type Output = [T; N];

    fn into_room(self) -> (Option<usize>, Option<Vec<T>>) {
        (Some(N), None)
    }

    fn output(block: Vec<T>) -> [T; N] {
        RequestValues::from_vec(block)
    }
}

impl Communicator {
    /// Begins a scatter of the root's blocks into a target.
    pub(crate) fn iscatter_to<B: OwnedScatter, O: OwnedScatterTarget<B::Value>>(
        &self,
        blocks: B,
        own: O,
        root: Member,
    ) -> Result<StartedCollective<O::Output>> {
        let ((values, ends), (known, room), is_root) =
            (blocks.into_parts(), own.into_room(), self.rank() == root);
        if let (Some(count), None) = (known, &ends) {
            let room = self.fits(room.map_or_else(|| allocate(count), Ok), "iscatter")?;
            return self.inner().start_scatter(values, room, root.place(), O::output);
        }
        let ends = match ends {
            Some(ends) => ends,
            None if is_root => self.fits(equal_ends(self, values.len()), "iscatter")?,
            None => Vec::new(),
        };
        let room = move |count| -> Result<Vec<B::Value>, Cause> {
            match room {
                Some(room) => check_room(room.len(), count).map(|()| room),
                None => allocate(count),
            }
        };
        self.inner().start_scatter_v(values, (&ends, known), root.place(), room, O::output)
    }
}

mod sealed {
    use crate::collective::{Blocks, OwnedValues, Uneven};

    pub trait SealedOwnedGather {}
    impl<D: OwnedValues> SealedOwnedGather for D {}
    impl<A: OwnedValues, B: OwnedValues> SealedOwnedGather for (A, B) {}
    impl<D: OwnedValues> SealedOwnedGather for Uneven<D> {}
    impl<D: OwnedValues> SealedOwnedGather for (Uneven<D>, Blocks<D::Value>) {}

    pub trait SealedOwnedBlocks {}
    impl<D: OwnedValues> SealedOwnedBlocks for D {}
    impl<A: OwnedValues, B: OwnedValues> SealedOwnedBlocks for (A, B) {}
    impl<T> SealedOwnedBlocks for Blocks<T> {}
    impl<T> SealedOwnedBlocks for (Blocks<T>, Blocks<T>) {}

    pub trait SealedOwnedScatter {}
    impl<D: OwnedValues> SealedOwnedScatter for D {}
    impl<T> SealedOwnedScatter for Blocks<T> {}

    pub trait SealedOwnedTarget {}
    impl SealedOwnedTarget for usize {}
    impl SealedOwnedTarget for () {}
    impl<T> SealedOwnedTarget for Vec<T> {}
    impl<T, const N: usize> SealedOwnedTarget for [T; N] {}
}
