//! The lengths of blocks for which plans are prepared.

use crate::Uneven;
use crate::collective::Data;

/// The number of values of this member's block, in [`gather_init`](crate::Communicator::gather_init) and
/// [`allgather_init`](crate::Communicator::allgather_init): a number, which is equal on all members, or
/// `Uneven(number)`, which may differ. Members pass no lengths of others.
///
/// ```
/// use tasuki::{Request, Uneven};
/// tasuki::local(3, |job| {
///     let me = job.rank().index();
///     let mut rows = job.world().allgather_init::<u32>(Uneven(me))?;      // none, one, two values
///     rows.input()?.fill(7);
///     rows.start()?;
///     rows.wait()?;
///     assert_eq!(rows.result()?, [7; 3]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait BlockCount: sealed::SealedCount {
    /// The number of values, and true if it may differ between members.
    #[doc(hidden)]
    fn count(self) -> (usize, bool);
}

impl BlockCount for usize {
    fn count(self) -> (usize, bool) {
        (self, false)
    }
}

impl BlockCount for Uneven<usize> {
    fn count(self) -> (usize, bool) {
        (self.0, true)
    }
}

/// The numbers of values of the blocks for all members or neighbours, in
/// [`scatter_init`](crate::Communicator::scatter_init), [`alltoall_init`](crate::Communicator::alltoall_init) and
/// [`neighbor_alltoall_init`](crate::Cartesian::neighbor_alltoall_init): a number, if all blocks have that many values,
/// or a list with one number for each member or neighbour, `&counts`. The receivers of blocks learn their lengths.
///
/// ```
/// use tasuki::Request;
/// tasuki::local(2, |job| {
///     let me = job.rank().index();
///     let mut equal = job.world().alltoall_init::<u8>(1)?; // one value for each member
///     equal.input()?.copy_from_slice(&[10 * me as u8, 10 * me as u8 + 1]);
///     equal.start()?;
///     equal.wait()?;
///     assert_eq!(equal.result()?, [me as u8, 10 + me as u8]);
///     let mut uneven = job.world().alltoall_init::<u8>(&[0, me + 1])?; // none for rank 0
///     uneven.input()?.fill(me as u8);
///     uneven.start()?;
///     uneven.wait()?;
///     assert_eq!(uneven.result()?, [&[][..], &[0, 1, 1]][me]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the number of values of each block",
    note = "pass a number, or `&counts` with one number for each member"
)]
pub trait BlockCounts: sealed::SealedCounts {
    /// The number of values of all blocks, or that of each.
    #[doc(hidden)]
    fn counts(&self) -> Result<usize, &[usize]>;
}

impl BlockCounts for usize {
    fn counts(&self) -> Result<usize, &[usize]> {
        Ok(*self)
    }
}

impl<D: Data<Value = usize> + ?Sized> BlockCounts for &D {
    fn counts(&self) -> Result<usize, &[usize]> {
        Err(self.values())
    }
}

mod sealed {
    use crate::Uneven;
    use crate::collective::Data;

    pub trait SealedCount {}
    impl SealedCount for usize {}
    impl SealedCount for Uneven<usize> {}

    pub trait SealedCounts {}
    impl SealedCounts for usize {}
    impl<D: Data<Value = usize> + ?Sized> SealedCounts for &D {}
}
