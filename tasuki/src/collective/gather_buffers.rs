//! What gathers and exchanges of blocks read, and where their result goes.

use crate::collective::{Blocks, Data, Uneven};
use crate::engine::Cause;
use crate::{Communicator, Member, Pod, Result, Zeroable};
use tasuki_collective::{allocate, reuse};

/// What [`gather`](Communicator::gather) and [`allgather`](Communicator::allgather) read, and where the result goes.
///
/// | argument | the result |
/// |---|---|
/// | `&block` | is returned as a vector, the blocks in the order of the members |
/// | `(&block, &mut all)` | is in `all`, which has room for the blocks of all members |
/// | `&mut all` | completes `all`, in which this member's block is in its place (MPI_IN_PLACE) |
/// | `Uneven(&block)` | is returned as [`Blocks`], because members pass different numbers of values |
/// | `(Uneven(&block), &mut blocks)` | replaces the blocks of `blocks`, whose memory is used again; after an error it is empty |
///
/// Values are [`Data`]. Members may use different forms among the first three, which need equal numbers of values, or
/// both of the last two.
///
/// ```
/// use tasuki::Uneven;
/// tasuki::local(2, |job| {
///     let (world, me) = (job.world(), job.rank().0);
///     assert_eq!(world.allgather(&me)?, [0, 1]);
///     let mut all = [7; 2];
///     world.allgather((&me, &mut all))?;
///     assert_eq!(all, [0, 1]);
///     let mut all = if me == 0 { [5, 0] } else { [0, 6] };
///     world.allgather(&mut all)?;
///     assert_eq!(all, [5, 6]);
///     let mut blocks = world.allgather(Uneven(&vec![me; me + 1]))?;
///     assert_eq!((blocks.block(0), blocks.block(1)), (&[0][..], &[1, 1][..]));
///     world.allgather((Uneven(&vec![me; me]), &mut blocks))?;                  // no allocation: there is room
///     assert_eq!((blocks.block(0), blocks.block(1)), (&[][..], &[1][..]));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a gather reads and fills",
    note = "pass `&block`, `(&block, &mut all)`, `&mut all` (in place), `Uneven(&block)` or `(Uneven(&block), &mut blocks)`"
)]
pub trait GatherBuffers: sealed::SealedGather {
    /// The type of one value.
    type Value: Pod;
    /// What the call returns.
    type Output;

    /// Gathers on the root.
    #[doc(hidden)]
    fn gather(self, on: &Communicator, root: Member) -> Result<Option<Self::Output>>;

    /// Gathers on all members.
    #[doc(hidden)]
    fn allgather(self, on: &Communicator) -> Result<Self::Output>;
}

/// Gathers equal blocks, on the root into what `room` returns.
#[inline(always)]
fn gather_equal<T: Pod, R: AsMut<[T]>>(
    on: &Communicator,
    root: Member,
    block: &[T],
    room: impl FnOnce() -> R,
) -> Result<Option<R>> {
    if on.rank() != root {
        return on.inner().gather_to(block, root.place()).map(|()| None);
    }
    let mut all = room();
    on.inner().gather_here(Some(block), all.as_mut())?;
    Ok(Some(all))
}

impl<D: Data + ?Sized> GatherBuffers for &D {
    type Value = D::Value;
    type Output = Vec<D::Value>;

    fn gather(self, on: &Communicator, root: Member) -> Result<Option<Vec<D::Value>>> {
        let block = self.values();
        gather_equal(on, root, block, || vec![D::Value::zeroed(); on.size() * block.len()])
    }

    fn allgather(self, on: &Communicator) -> Result<Vec<D::Value>> {
        let mut all = vec![D::Value::zeroed(); on.size() * self.values().len()];
        on.inner().allgather(Some(self.values()), &mut all)?;
        Ok(all)
    }
}

impl<A: Data + ?Sized, B: Data<Value = A::Value> + ?Sized> GatherBuffers for (&A, &mut B) {
    type Value = A::Value;
    type Output = ();

    fn gather(self, on: &Communicator, root: Member) -> Result<Option<()>> {
        Ok(gather_equal(on, root, self.0.values(), || self.1.values_mut())?.map(|_| ()))
    }

    fn allgather(self, on: &Communicator) -> Result<()> {
        on.inner().allgather(Some(self.0.values()), self.1.values_mut())
    }
}

impl<D: Data + ?Sized> GatherBuffers for &mut D {
    type Value = D::Value;
    type Output = ();

    fn gather(self, on: &Communicator, root: Member) -> Result<Option<()>> {
        if on.rank() == root {
            return on.inner().gather_here(None, self.values_mut()).map(Some);
        }
        let block = on.fits(own_block(on, self.values()), "gather")?;
        on.inner().gather_to(block, root.place()).map(|()| None)
    }

    fn allgather(self, on: &Communicator) -> Result<()> {
        on.inner().allgather(None, self.values_mut())
    }
}

impl<D: Data + ?Sized> GatherBuffers for Uneven<&D> {
    type Value = D::Value;
    type Output = Blocks<D::Value>;

    fn gather(self, on: &Communicator, root: Member) -> Result<Option<Blocks<D::Value>>> {
        Ok(on.inner().gather_v(self.0.values(), root.place(), allocate)?.map(Blocks::of_ends))
    }

    fn allgather(self, on: &Communicator) -> Result<Blocks<D::Value>> {
        on.inner().allgather_v(self.0.values(), allocate).map(Blocks::of_ends)
    }
}

impl<D: Data + ?Sized> GatherBuffers for (Uneven<&D>, &mut Blocks<D::Value>) {
    type Value = D::Value;
    type Output = ();

    fn gather(self, on: &Communicator, root: Member) -> Result<Option<()>> {
        let (Uneven(block), all) = self;
        if on.rank() != root {
            return Uneven(block).gather(on, root).map(|_| None);
        }
        let gather = |memory| {
            let gathered = on.inner().gather_v(block.values(), root.place(), |count| reuse(memory, count));
            Ok(gathered?.unwrap_or_default())
        };
        all.refill(gather).map(Some)
    }

    fn allgather(self, on: &Communicator) -> Result<()> {
        let (Uneven(block), all) = self;
        all.refill(|memory| on.inner().allgather_v(block.values(), |count| reuse(memory, count)))
    }
}

/// Returns this member's block among those of all members.
fn own_block<'v, T>(on: &Communicator, all: &'v [T]) -> Result<&'v [T], Cause> {
    let count = equal_count(on, all.len())?;
    Ok(&all[on.rank().index() * count..][..count])
}

/// Returns the number of values in each of the equal blocks, one for each member, that `values` values are.
pub(crate) fn equal_count(on: &Communicator, values: usize) -> Result<usize, Cause> {
    let size = on.size();
    if values.is_multiple_of(size) {
        return Ok(values / size);
    }
    Err(Cause::Argument(format!("{values} values are not one block for each of {size} members")))
}

mod sealed {
    use crate::collective::{Blocks, Data, Uneven};

    pub trait SealedGather {}
    impl<D: Data + ?Sized> SealedGather for &D {}
    impl<D: Data + ?Sized> SealedGather for &mut D {}
    impl<A: Data + ?Sized, B: Data + ?Sized> SealedGather for (&A, &mut B) {}
    impl<D: Data + ?Sized> SealedGather for Uneven<&D> {}
    impl<D: Data + ?Sized> SealedGather for (Uneven<&D>, &mut Blocks<D::Value>) {}
}
