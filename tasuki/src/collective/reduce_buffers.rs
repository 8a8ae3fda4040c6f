//! What a reduction or a scan reads, and where its result goes.

use crate::collective::Data;
use crate::engine::Cause;
use crate::{Pod, Result};

/// What [`reduce`](crate::Communicator::reduce), [`allreduce`](crate::Communicator::allreduce),
/// [`scan`](crate::Communicator::scan) and [`exscan`](crate::Communicator::exscan) read, and where the result goes.
///
/// | argument | the result |
/// |---|---|
/// | `&values` | is returned: a number for a number, an array for an array, a vector for a slice or vector |
/// | `&mut values` | replaces the values (MPI_IN_PLACE) |
/// | `(&values, &mut result)` | is in `result`, which has the length of the values |
///
/// Values are [`Data`]. A literal needs a type, `&1.0_f64`, because the form of the argument decides the form of the
/// result: `println!("{}", world.allreduce(&1.0, Sum)?)` does not compile. Members may use different forms in one call. Only `&values` of a slice or vector allocates. A
/// variable of type `&mut [f64]` is moved into the call; `&mut *row` keeps it.
///
/// ```
/// use tasuki::Sum;
/// tasuki::local(3, |job| {
///     let (world, mut sums) = (job.world(), [0; 2]);
///     match job.rank().0 {
///         0 => sums = world.allreduce(&[1, 10], Sum)?,
///         1 => {
///             sums = [2, 20];
///             world.allreduce(&mut sums, Sum)?;
///         }
///         _ => world.allreduce((&[3, 30], &mut sums), Sum)?,
///     }
///     assert_eq!(sums, [6, 60]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a reduction reads and fills",
    note = "pass `&values`, `&mut values` (in place) or `(&values, &mut result)`; values are a number, an array, a slice or \
            a vector, one value of your own type is passed as `[value]`, and a `bool` as a `tasuki::collective::Bool`"
)]
pub trait ReduceBuffers: sealed::SealedBuffers {
    /// The type of one value.
    type Value: Pod;
    /// What the call returns.
    type Output;

    /// The values that this member contributes.
    #[doc(hidden)]
    fn input(&self) -> &[Self::Value];

    /// Returns an error unless the result has the length of the values.
    #[doc(hidden)]
    #[inline(always)]
    fn check(&self) -> Result<(), Cause> {
        Ok(())
    }

    /// Calls `run` with the values, which it replaces by the result.
    #[doc(hidden)]
    fn reduce(self, run: impl FnOnce(&mut [Self::Value]) -> Result<()>) -> Result<Self::Output>;
}

impl<D: Data + ?Sized> ReduceBuffers for &D {
    type Value = D::Value;
    type Output = D::Owned;

    #[inline(always)]
    fn input(&self) -> &[D::Value] {
        self.values()
    }

    #[inline(always)]
    fn reduce(self, run: impl FnOnce(&mut [D::Value]) -> Result<()>) -> Result<D::Owned> {
        let mut result = self.to_owned_data();
        run(D::owned_values(&mut result))?;
        Ok(result)
    }
}

impl<D: Data + ?Sized> ReduceBuffers for &mut D {
    type Value = D::Value;
    type Output = ();

    #[inline(always)]
    fn input(&self) -> &[D::Value] {
        self.values()
    }

    #[inline(always)]
    fn reduce(self, run: impl FnOnce(&mut [D::Value]) -> Result<()>) -> Result<()> {
        run(self.values_mut())
    }
}

impl<A: Data + ?Sized, B: Data<Value = A::Value> + ?Sized> ReduceBuffers for (&A, &mut B) {
    type Value = A::Value;
    type Output = ();

    #[inline(always)]
    fn input(&self) -> &[A::Value] {
        self.0.values()
    }

    #[inline(always)]
    fn check(&self) -> Result<(), Cause> {
        check_room(self.1.values().len(), self.0.values().len())
    }

    #[inline(always)]
    fn reduce(self, run: impl FnOnce(&mut [A::Value]) -> Result<()>) -> Result<()> {
        let (values, result) = (self.0.values(), self.1.values_mut());
        result.copy_from_slice(values);
        run(result)
    }
}

/// Returns an error unless a result of `count` values fills its room.
#[inline(always)]
pub(crate) fn check_room(room: usize, count: usize) -> Result<(), Cause> {
    if room == count { Ok(()) } else { Err(no_room(room, count)) }
}

#[cold]
fn no_room(room: usize, count: usize) -> Cause {
    Cause::Argument(format!("there is room for {room} values, but the result has {count}"))
}

mod sealed {
    use crate::collective::Data;

    pub trait SealedBuffers {}
    impl<D: Data + ?Sized> SealedBuffers for &D {}
    impl<D: Data + ?Sized> SealedBuffers for &mut D {}
    impl<A: Data + ?Sized, B: Data + ?Sized> SealedBuffers for (&A, &mut B) {}
}
