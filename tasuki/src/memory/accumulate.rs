//! Atomic reductions on the memory of any rank.

use crate::collective::Data;
use crate::job::Job;
use crate::memory::word::Word;
use crate::reduction::reduce_op::BuiltinOp;
use crate::{GlobalPtr, Result};
use tasuki_core::fabric::Atomic;

mod sealed {
    pub trait SealedAccumulable {}
}

/// A number that [`Job::accumulate`] combines: an integer or a floating-point number of 4 or 8 bytes.
///
/// ```
/// use tasuki::{Rank, Sum};
/// tasuki::local(2, |job| {
///     let (counts, rates) = (job.alloc::<u32>(2)?, job.alloc::<f64>(2)?);
///     job.accumulate(counts.on(Rank(0)), &[1, 10], Sum)?;
///     job.accumulate(rates.on(Rank(0)), &[0.5, 1.5], Sum)?;
///     job.barrier()?;
///     if job.rank() == 0 {
///         assert_eq!((counts.to_vec()?, rates.to_vec()?), (vec![2, 20], vec![1.0, 3.0]));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Accumulable: crate::Pod + sealed::SealedAccumulable {
    /// The word that holds the number.
    #[doc(hidden)]
    type Bits: Word;
}

macro_rules! accumulable {
    ($($type:ty: $bits:ty;)*) => {$(
        impl sealed::SealedAccumulable for $type {}
        impl Accumulable for $type {
            type Bits = $bits;
        }
    )*};
}

accumulable! { i32: u32; u32: u32; f32: u32; i64: u64; u64: u64; f64: u64; }

impl Job {
    /// Combines values with those in the memory of some rank, each atomically, by a built-in operation.
    /// (MPI_Accumulate)
    ///
    /// A value is combined as one word: atomically with respect to all accumulations and atomics of all ranks on that
    /// word, but not to puts. Two accumulations of several values may be interleaved. Floating-point numbers are
    /// combined in the order in which the ranks come, so a sum of them may differ in its last bits between runs. All
    /// values are combined when the call returns.
    ///
    /// Errors: those of [`Job::atomic`]; the values before the failing one are combined then. Cost: an atomic for each
    /// value; at least two for products, minima, maxima, and floating-point numbers, more if other ranks change the
    /// word meanwhile.
    ///
    /// ```
    /// use tasuki::{Rank, Sum, collective::Max};
    /// tasuki::local(4, |job| {
    ///     let (sums, most) = (job.alloc::<f64>(2)?, job.alloc::<i32>(1)?);
    ///     job.accumulate(sums.on(Rank(0)), &[0.5, 1.0], Sum)?;
    ///     job.accumulate(most.on(Rank(0)), &(job.rank().0 as i32), Max)?;
    ///     job.barrier()?;
    ///     if job.rank() == 0 {
    ///         assert_eq!((sums.to_vec()?, most.get(0)?), (vec![2.0, 4.0], 3));
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn accumulate<T: Accumulable, D: Data<Value = T> + ?Sized>(
        &self,
        to: GlobalPtr<T>,
        values: &D,
        operation: impl BuiltinOp<T>,
    ) -> Result<()> {
        let mut places = (0..).map(|index| to.at(index));
        let mut combine = |value| self.combine_at(places.next().expect("they never end"), value, &operation);
        let combined = values.values().iter().copied().try_for_each(|value| combine(value).map(drop));
        combined.map_err(|error| error.in_outer_call(format!("accumulate({to})")))
    }

    /// Combines one value with that in the memory of some rank, atomically, and returns the previous one there.
    /// Otherwise like [`Job::accumulate`]. (MPI_Fetch_and_op)
    ///
    /// ```
    /// use tasuki::{Rank, collective::Min};
    /// tasuki::local(3, |job| {
    ///     let best = job.alloc::<f32>(1)?;
    ///     let mine = -(job.rank().0 as f32);
    ///     let before = job.fetch_and_op(best.on(Rank(0)), mine, Min)?;
    ///     assert!(before == 0.0 || before != mine);
    ///     job.barrier()?;
    ///     assert_eq!(job.get_value(best.on(Rank(0)))?, -2.0);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn fetch_and_op<T: Accumulable>(
        &self,
        at: GlobalPtr<T>,
        value: T,
        operation: impl BuiltinOp<T>,
    ) -> Result<T> {
        let before = self.combine_at(at, value, &operation);
        before.map_err(|error| error.in_outer_call(format!("fetch_and_op({at})")))
    }

    fn combine_at<T: Accumulable>(
        &self,
        at: GlobalPtr<T>,
        value: T,
        operation: &impl BuiltinOp<T>,
    ) -> Result<T> {
        let (word, operand) = (at.cast::<T::Bits>(), bits_of(value).to_bits());
        if let Some(kind) = operation.atomic() {
            let atomic = Atomic { kind, operand, width: T::Bits::WIDTH };
            return self
                .worker
                .atomic(word.address(), atomic)
                .map(|before| value_of(T::Bits::from_bits(before)));
        }
        let mut before = self.load(word)?;
        loop {
            let mut combined = [value_of::<T>(before)];
            operation.combine(&mut combined, &[value]);
            let new = bits_of(combined[0]);
            // A value that stays as it is need not be written: at this moment it was the result.
            if new == before {
                return Ok(value_of(before));
            }
            let found = self.compare_swap(word, before, new)?;
            if found == before {
                return Ok(value_of(before));
            }
            before = found;
        }
    }
}

fn bits_of<T: Accumulable>(value: T) -> T::Bits {
    bytemuck::cast(value)
}

fn value_of<T: Accumulable>(bits: T::Bits) -> T {
    bytemuck::cast(bits)
}
