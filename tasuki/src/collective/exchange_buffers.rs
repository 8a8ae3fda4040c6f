//! What calls read that have a block for each member, and where the blocks for this member go.

use crate::collective::gather_buffers::equal_count;
use crate::collective::reduce_buffers::check_room;
use crate::collective::{Blocks, Data};
use crate::engine::Cause;
use crate::message::{Strided, StridedMut};
use crate::{Communicator, Pod, Result, Zeroable};
use tasuki_collective::{BlockLengths, Neighbourhood as NeighbourBlocks, allocate, reuse};

/// What [`alltoall`](Communicator::alltoall) and exchanges with neighbours ([`Cartesian`](crate::Cartesian),
/// [`Neighbourhood`](crate::collective::Neighbourhood)) read, and where the result goes.
///
/// | argument | the result |
/// |---|---|
/// | `&values`: equal blocks, one for each member or neighbour | is returned as a vector |
/// | `(&values, &mut result)` | is in `result`, which in an alltoall is as long as `values` |
/// | `&blocks`: [`Blocks`] of different lengths (MPI_Alltoallv) | is returned as [`Blocks`] |
/// | `(&blocks, &mut result)` | replaces the blocks of `result`, whose memory is used again; after an error it is empty |
///
/// Equal blocks are [`Data`]. Members may use both forms of them in one call. In an alltoall, blocks of different
/// lengths are another call: all members pass [`Blocks`], in either form. Neighbours may use any form.
///
/// ```
/// use tasuki::Blocks;
/// tasuki::local(3, |job| {
///     let (world, me) = (job.world(), job.rank().0);
///     let mut result = Blocks::default();
///     for step in 0..3 {
///         let blocks: Blocks<usize> = (0..3).map(|to| vec![step; to]).collect();   // none for rank 0
///         world.alltoall((&blocks, &mut result))?;                                // after the first step: no allocation
///         assert!(result.iter().all(|block| block == vec![step; me]));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a block for each member",
    note = "pass `&values`, `(&values, &mut result)`, `&blocks` or `(&blocks, &mut result)`, of the type `Blocks`"
)]
pub trait ExchangeBuffers: sealed::SealedExchange {
    /// The type of one value.
    type Value: Pod;
    /// What the call returns.
    type Output;

    /// Exchanges a block with each member.
    #[doc(hidden)]
    fn alltoall(self, on: &Communicator) -> Result<Self::Output>;

    /// Exchanges a block with each neighbour.
    #[doc(hidden)]
    fn neighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<Self::Output>;
}

/// What [`neighbor_alltoall`](crate::Cartesian::neighbor_alltoall) reads, and where the result goes: all
/// [`ExchangeBuffers`]; or `(&blocks, &mut result)`, an array or a slice of [`Strided`] values for each neighbour to which
/// this member sends, and one of [`StridedMut`] values for each from which it receives.
///
/// So rows and columns of a matrix, and their halos, go without being collected. Blocks may differ in length. The
/// neighbours may use any form.
///
/// ```
/// use tasuki::{Cartesian, message::StridedMut};
/// tasuki::local(3, |job| {
///     let (line, me) = (Cartesian::new(job.world(), [3], [false])?, job.rank().0);
///     let mut tile = vec![me; 4 * 5];                                      // four rows of five values
///     let (edges, mut halos) = StridedMut::submatrices(
///         &mut tile,
///         5,
///         [[0..4, 1..2], [0..4, 3..4]],                                    // the columns beside the halos
///         [[0..4, 0..1], [0..4, 4..5]],
///     );
///     line.neighbor_alltoall((&edges, &mut halos))?;
///     let (left, right) = (me.saturating_sub(1), (me + 1).min(2));         // at the ends the halo stays
///     assert!(tile.chunks(5).all(|row| row == [left, me, me, me, right]));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a block for each neighbour",
    note = "pass `&values`, `(&values, &mut result)`, `&blocks` or `(&blocks, &mut result)`, of the type `Blocks`, or \
            `(&edges, &mut halos)`, of `Strided` and `StridedMut` values"
)]
pub trait NeighborBuffers: sealed::SealedNeighbor {
    /// The type of one value.
    type Value: Pod;
    /// What the call returns.
    type Output;

    /// Exchanges a block with each neighbour.
    #[doc(hidden)]
    fn exchange(self, on: &Communicator, with: &NeighbourBlocks) -> Result<Self::Output>;
}

impl<B: ExchangeBuffers> NeighborBuffers for B {
    type Value = B::Value;
    type Output = B::Output;

    fn exchange(self, on: &Communicator, with: &NeighbourBlocks) -> Result<B::Output> {
        self.neighbor_alltoall(on, with)
    }
}

impl<T: Pod> NeighborBuffers for (&[Strided<'_, T>], &mut [StridedMut<'_, T>]) {
    type Value = T;
    type Output = ();

    fn exchange(self, on: &Communicator, with: &NeighbourBlocks) -> Result<()> {
        let gives: Vec<_> = self.0.iter().map(Strided::blocks).collect();
        let gets: Vec<_> = self.1.iter_mut().map(StridedMut::blocks).collect();
        on.inner().neighbor_alltoall_strided::<T>(with, &gives, &gets)
    }
}

impl<T: Pod, const GIVEN: usize, const FILLED: usize> NeighborBuffers
    for (&[Strided<'_, T>; GIVEN], &mut [StridedMut<'_, T>; FILLED])
{
    type Value = T;
    type Output = ();

    fn exchange(self, on: &Communicator, with: &NeighbourBlocks) -> Result<()> {
        (&self.0[..], &mut self.1[..]).exchange(on, with)
    }
}

/// What [`reduce_scatter`](Communicator::reduce_scatter) reads, and where the result goes: `&values`, equal blocks, one
/// for each member; or `(&values, &mut block)`, where the result goes to `block`.
///
/// ```
/// use tasuki::Sum;
/// tasuki::local(2, |job| {
///     let mine = job.world().reduce_scatter(&[1, 2, 30, 40], Sum)?; // two values for each member
///     assert_eq!(mine, [[2, 4], [60, 80]][job.rank().index()]);
///     let mut mine = [0; 2];
///     job.world().reduce_scatter((&[1, 2, 30, 40], &mut mine), Sum)?;
///     assert_eq!(mine, [[2, 4], [60, 80]][job.rank().index()]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait EqualBlocks: ExchangeBuffers {
    /// Calls `run` with the values and with room for the result, which has as many values as `count` returns for
    /// theirs.
    #[doc(hidden)]
    fn run(
        self,
        count: impl FnOnce(usize) -> usize,
        run: impl FnOnce(&[Self::Value], &mut [Self::Value]) -> Result<()>,
    ) -> Result<Self::Output>;
}

impl<D: Data + ?Sized> ExchangeBuffers for &D {
    type Value = D::Value;
    type Output = Vec<D::Value>;

    fn alltoall(self, on: &Communicator) -> Result<Vec<D::Value>> {
        self.run(|count| count, |values, result| on.inner().alltoall(values, result))
    }

    fn neighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<Vec<D::Value>> {
        let lengths = BlockLengths::Equal { room: None };
        on.inner().neighbor_alltoall(with, self.values(), lengths, allocate).map(|(all, _)| all)
    }
}

impl<D: Data + ?Sized> EqualBlocks for &D {
    fn run(
        self,
        count: impl FnOnce(usize) -> usize,
        run: impl FnOnce(&[D::Value], &mut [D::Value]) -> Result<()>,
    ) -> Result<Vec<D::Value>> {
        let mut result = vec![D::Value::zeroed(); count(self.values().len())];
        run(self.values(), &mut result)?;
        Ok(result)
    }
}

impl<A: Data + ?Sized, B: Data<Value = A::Value> + ?Sized> ExchangeBuffers for (&A, &mut B) {
    type Value = A::Value;
    type Output = ();

    fn alltoall(self, on: &Communicator) -> Result<()> {
        self.run(|count| count, |values, result| on.inner().alltoall(values, result))
    }

    fn neighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<()> {
        let (values, result) = (self.0.values(), self.1.values_mut());
        let lengths = BlockLengths::Equal { room: Some(result.len()) };
        on.inner().neighbor_alltoall(with, values, lengths, |_| Ok(result)).map(drop)
    }
}

impl<A: Data + ?Sized, B: Data<Value = A::Value> + ?Sized> EqualBlocks for (&A, &mut B) {
    fn run(
        self,
        _: impl FnOnce(usize) -> usize,
        run: impl FnOnce(&[A::Value], &mut [A::Value]) -> Result<()>,
    ) -> Result<()> {
        run(self.0.values(), self.1.values_mut())
    }
}

impl<T: Pod> ExchangeBuffers for &Blocks<T> {
    type Value = T;
    type Output = Blocks<T>;

    fn alltoall(self, on: &Communicator) -> Result<Blocks<T>> {
        on.inner().alltoall_v(self.values(), self.ends(), allocate).map(Blocks::of_ends)
    }

    fn neighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<Blocks<T>> {
        let lengths = BlockLengths::Uneven { ends: self.ends() };
        on.inner().neighbor_alltoall(with, self.values(), lengths, allocate).map(Blocks::of_ends)
    }
}

impl<T: Pod> ExchangeBuffers for (&Blocks<T>, &mut Blocks<T>) {
    type Value = T;
    type Output = ();

    fn alltoall(self, on: &Communicator) -> Result<()> {
        let (blocks, result) = self;
        let (values, ends) = (blocks.values(), blocks.ends());
        result.refill(|memory| on.inner().alltoall_v(values, ends, |count| reuse(memory, count)))
    }

    fn neighbor_alltoall(self, on: &Communicator, with: &NeighbourBlocks) -> Result<()> {
        let (blocks, result) = self;
        let lengths = BlockLengths::Uneven { ends: blocks.ends() };
        result.refill(|memory| {
            on.inner().neighbor_alltoall(with, blocks.values(), lengths, |count| reuse(memory, count))
        })
    }
}

/// What the root of a [`scatter`](Communicator::scatter) sends: `&values`, equal blocks, one for each member; or
/// `&blocks`, [`Blocks`] of different lengths (MPI_Scatterv). Other members pass the same type; what is in it does not
/// matter.
///
/// ```
/// use tasuki::{Blocks, Rank};
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().index());
///     assert_eq!(world.scatter(&[1, 2, 3, 4], 2, Rank(0))?, [[1, 2], [3, 4]][me]);
///     let blocks = if me == 0 { Blocks::from(vec![vec![1], vec![2, 3]]) } else { Blocks::default() };
///     assert_eq!(world.scatter(&blocks, (), Rank(0))?, [&[1][..], &[2, 3]][me]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a block for each member",
    note = "pass `&values`, or `&blocks` of the type `Blocks`"
)]
pub trait ScatterBlocks: sealed::SealedScatter {
    /// The type of one value.
    type Value: Pod;

    /// All values.
    #[doc(hidden)]
    fn values(&self) -> &[Self::Value];

    /// Where the blocks end, if they have different lengths.
    #[doc(hidden)]
    fn ends(&self) -> Option<&[usize]>;
}

impl<D: Data + ?Sized> ScatterBlocks for &D {
    type Value = D::Value;

    #[inline(always)]
    fn values(&self) -> &[D::Value] {
        Data::values(*self)
    }

    #[inline(always)]
    fn ends(&self) -> Option<&[usize]> {
        None
    }
}

impl<T: Pod> ScatterBlocks for &Blocks<T> {
    type Value = T;

    fn values(&self) -> &[T] {
        Blocks::values(self)
    }

    fn ends(&self) -> Option<&[usize]> {
        Some(Blocks::ends(self))
    }
}

/// Where a member's block of a [`scatter`](Communicator::scatter) goes.
///
/// | argument | the block |
/// |---|---|
/// | `count` | is returned as a vector; it has that number of values |
/// | `&mut block` | fills `block` |
/// | `()`: "I do not know how many values come" | is returned as a vector |
///
/// With `()`, or with [`Blocks`], the members exchange the lengths before the values. Members may use different forms
/// of what is left: a count or `&mut block` for equal blocks, all three for [`Blocks`].
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(3, |job| {
///     let (values, mut mine) = ([1, 2, 3, 4, 5, 6], [0; 2]);
///     match job.rank().index() {
///         0 => mine.copy_from_slice(&job.world().scatter(&values, 2, Rank(0))?),
///         _ => job.world().scatter(&values, &mut mine, Rank(0))?,
///     }
///     assert_eq!(mine, [[1, 2], [3, 4], [5, 6]][job.rank().index()]);
///     let learned = job.world().scatter(&values, (), Rank(0))?;
///     assert_eq!(learned, mine);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no place for a member's block of a scatter",
    note = "pass the number of values, `&mut block`, or `()` if this member does not know the number"
)]
pub trait ScatterTarget<T: Pod>: sealed::SealedTarget {
    /// What the call returns.
    type Output;
    /// The room for the block.
    #[doc(hidden)]
    type Room: AsMut<[T]>;

    /// The number of values, if this member knows it.
    #[doc(hidden)]
    fn known(&self) -> Option<usize>;

    /// Returns room for `count` values. Error: there is none.
    #[doc(hidden)]
    fn room(self, count: usize) -> Result<Self::Room, Cause>;

    /// Returns the filled room as the result.
    #[doc(hidden)]
    fn output(room: Self::Room) -> Self::Output;
}

impl<T: Pod> ScatterTarget<T> for usize {
    type Output = Vec<T>;
    type Room = Vec<T>;

    fn known(&self) -> Option<usize> {
        Some(*self)
    }

    fn room(self, count: usize) -> Result<Vec<T>, Cause> {
        allocate(count)
    }

    fn output(room: Vec<T>) -> Vec<T> {
        room
    }
}

impl<T: Pod> ScatterTarget<T> for () {
    type Output = Vec<T>;
    type Room = Vec<T>;

    fn known(&self) -> Option<usize> {
        None
    }

    fn room(self, count: usize) -> Result<Vec<T>, Cause> {
        allocate(count)
    }

    fn output(room: Vec<T>) -> Vec<T> {
        room
    }
}

impl<'a, T: Pod, B: Data<Value = T> + ?Sized> ScatterTarget<T> for &'a mut B {
    type Output = ();
    type Room = &'a mut [T];

    fn known(&self) -> Option<usize> {
        Some(self.values().len())
    }

    fn room(self, count: usize) -> Result<&'a mut [T], Cause> {
        check_room(self.values().len(), count).map(|()| self.values_mut())
    }

    fn output(_: &mut [T]) {}
}

impl Communicator {
    /// Scatters the root's blocks into a target.
    pub(crate) fn scatter_to<B: ScatterBlocks, O: ScatterTarget<B::Value>>(
        &self,
        blocks: &B,
        own: O,
        root: crate::Member,
    ) -> Result<O::Output> {
        let (values, is_root, root) = (blocks.values(), self.rank() == root, root.place());
        let (known, ends) = (own.known(), blocks.ends());
        if let (Some(count), None) = (known, ends) {
            let mut block = self.fits(own.room(count), "scatter")?;
            match is_root {
                true => self.inner().scatter_here(values, block.as_mut())?,
                false => self.inner().scatter_from(block.as_mut(), root)?,
            }
            return Ok(O::output(block));
        }
        let equal = match ends {
            None if is_root => self.fits(equal_ends(self, values.len()), "scatter")?,
            _ => Vec::new(),
        };
        let ends = ends.unwrap_or(&equal);
        self.inner().scatter_v(values, ends, known, root, |count| own.room(count)).map(O::output)
    }
}

/// Returns the ends of the equal blocks, one for each member, that `values` values are.
pub(crate) fn equal_ends(on: &Communicator, values: usize) -> Result<Vec<usize>, Cause> {
    let count = equal_count(on, values)?;
    Ok((1..=on.size()).map(|blocks| blocks * count).collect())
}

mod sealed {
    use crate::Pod;
    use crate::collective::{Blocks, Data};
    use crate::message::{Strided, StridedMut};

    pub trait SealedExchange {}
    impl<D: Data + ?Sized> SealedExchange for &D {}
    impl<A: Data + ?Sized, B: Data + ?Sized> SealedExchange for (&A, &mut B) {}
    impl<T: Pod> SealedExchange for &Blocks<T> {}
    impl<T: Pod> SealedExchange for (&Blocks<T>, &mut Blocks<T>) {}

    pub trait SealedNeighbor {}
    impl<B: SealedExchange> SealedNeighbor for B {}
    impl<T: Pod> SealedNeighbor for (&[Strided<'_, T>], &mut [StridedMut<'_, T>]) {}
    impl<T: Pod, const GIVEN: usize, const FILLED: usize> SealedNeighbor
        for (&[Strided<'_, T>; GIVEN], &mut [StridedMut<'_, T>; FILLED])
    {
    }

    pub trait SealedScatter {}
    impl<D: Data + ?Sized> SealedScatter for &D {}
    impl<T: Pod> SealedScatter for &Blocks<T> {}

    pub trait SealedTarget {}
    impl SealedTarget for usize {}
    impl SealedTarget for () {}
    impl<B: Data + ?Sized> SealedTarget for &mut B {}
}
