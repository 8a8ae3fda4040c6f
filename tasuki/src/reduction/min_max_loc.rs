//! Reductions that find the minimum or maximum and its location (MPI: MINLOC, MAXLOC).
#![allow(unsafe_code)]
//! Unsafe: a value and a number of the same size have no padding between or behind them.

use crate::data::single_value_data;
use crate::reduction::reduce_op::ReduceOp;
use bytemuck::{Pod, Zeroable};
use tasuki_core::queue::reduction::extremes::Ordered;

/// A value and its location: a rank or an index, for instance.
///
/// ```
/// use tasuki::collective::{ValueLoc, MaxLoc, MinLoc};
/// tasuki::local(3, |job| {
///     let mine = ValueLoc { value: [0.5, 2.5, 0.5][job.rank().index()], at: job.rank().0 as u64 };
///     assert_eq!(job.world().allreduce(&mine, MaxLoc)?.at, 1);
///     assert_eq!(job.world().allreduce(&mine, MinLoc)?, ValueLoc { value: 0.5, at: 0 });
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct ValueLoc<V, I = u64> {
    /// The value.
    pub value: V,
    /// Its location.
    pub at: I,
}

/// The smallest value; of equal values the one with the smallest location. MPI's `MPI_MINLOC`.
///
/// The value is that of [`Min`](crate::collective::Min), to the bit: -0.0 is less than 0.0, not equal to it. If any
/// value is NaN, the result is NaN, with the smallest location of a NaN.
///
/// ```
/// use tasuki::collective::{MinLoc, ValueLoc};
/// tasuki::local(3, |job| {
///     let load = [0.5, 0.25, 0.25][job.rank().index()];
///     let mine = ValueLoc { value: load, at: job.rank().index() as u64 };
///     let least = job.world().allreduce(&mine, MinLoc)?;
///     assert_eq!((least.value, least.at), (0.25, 1)); // of the two, the one with the smaller location
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MinLoc;

/// The largest value; of equal values the one with the smallest location. MPI's `MPI_MAXLOC`.
///
/// The value is that of [`Max`](crate::collective::Max), to the bit: 0.0 is greater than -0.0. If any value is NaN, the
/// result is NaN, with the smallest location of a NaN.
///
/// ```
/// use tasuki::collective::{MaxLoc, ValueLoc};
/// tasuki::local(3, |job| {
///     let load = [0.5, 0.25, 0.5][job.rank().index()];
///     let mine = ValueLoc { value: load, at: job.rank().index() as u64 };
///     let most = job.world().allreduce(&mine, MaxLoc)?;
///     assert_eq!((most.value, most.at), (0.5, 0)); // of the two, the one with the smaller location
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaxLoc;

macro_rules! value_loc {
    ($($value:ident $at:ident;)*) => {$(
        // SAFETY: two numbers side by side, for which every bit pattern, zero too, is a value.
        unsafe impl Zeroable for ValueLoc<$value, $at> {}
        // SAFETY: both fields have the same size, so there is no padding between or behind them.
        unsafe impl Pod for ValueLoc<$value, $at> {}

        impl ReduceOp<ValueLoc<$value, $at>> for MinLoc {
            fn combine(&self, left: &mut [ValueLoc<$value, $at>], right: &[ValueLoc<$value, $at>]) {
                locate(left, right, Ordered::least);
            }
        }

        impl ReduceOp<ValueLoc<$value, $at>> for MaxLoc {
            fn combine(&self, left: &mut [ValueLoc<$value, $at>], right: &[ValueLoc<$value, $at>]) {
                locate(left, right, Ordered::greatest);
            }
        }
    )*};
}

value_loc! { f64 u64; i64 u64; u64 u64; f32 u32; i32 u32; u32 u32; }

/// Replaces each left value by the better of the pair. `better` also turns a NaN into the one that results, so that
/// values with the same bits are equal.
fn locate<V: Pod, I: Ord + Copy>(
    left: &mut [ValueLoc<V, I>],
    right: &[ValueLoc<V, I>],
    better: impl Fn(V, V) -> V,
) {
    for (left, right) in left.iter_mut().zip(right) {
        let value = better(left.value, right.value);
        let is_it = |one: V| bytemuck::bytes_of(&better(one, one)) == bytemuck::bytes_of(&value);
        let at = match (is_it(left.value), is_it(right.value)) {
            (true, true) => left.at.min(right.at),
            (true, false) => left.at,
            (false, _) => right.at,
        };
        *left = ValueLoc { value, at };
    }
}

single_value_data! { [V, I] ValueLoc<V, I> where ValueLoc<V, I>; }
