//! Reductions that find the minimum or maximum and its location (MPI: MINLOC, MAXLOC).
#![allow(unsafe_code)]
//! Unsafe: a value and a number of the same size have no padding between or behind them.

use crate::reduction::reduce_op::ReduceOp;
use bytemuck::{Pod, Zeroable};

/// A value and its location: a rank or an index, for instance.
///
/// ```
/// use tasuki::{ValueLoc, MaxLoc, MinLoc};
/// tasuki::local(3, |job| {
///     let mine = ValueLoc { value: [0.5, 2.5, 0.5][job.rank().index()], at: u64::from(job.rank().0) };
///     assert_eq!(job.world().allreduce(&[mine], MaxLoc)?[0].at, 1);
///     assert_eq!(job.world().allreduce(&[mine], MinLoc)?[0], ValueLoc { value: 0.5, at: 0 });
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MinLoc;

/// The largest value; of equal values the one with the smallest location. MPI's `MPI_MAXLOC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaxLoc;

macro_rules! value_loc {
    ($($value:ident $at:ident;)*) => {$(
        // SAFETY: two numbers side by side, for which every bit pattern, zero too, is a value.
        unsafe impl Zeroable for ValueLoc<$value, $at> {}
        // SAFETY: both have the same size, so there is no padding between or behind them.
        unsafe impl Pod for ValueLoc<$value, $at> {}

        impl ReduceOp<ValueLoc<$value, $at>> for MinLoc {
            fn combine(&self, left: &mut [ValueLoc<$value, $at>], right: &[ValueLoc<$value, $at>]) {
                choose(left, right, |a, b| b.value < a.value || (b.value == a.value && b.at < a.at));
            }
        }

        impl ReduceOp<ValueLoc<$value, $at>> for MaxLoc {
            fn combine(&self, left: &mut [ValueLoc<$value, $at>], right: &[ValueLoc<$value, $at>]) {
                choose(left, right, |a, b| b.value > a.value || (b.value == a.value && b.at < a.at));
            }
        }
    )*};
}

value_loc! { f64 u64; i64 u64; u64 u64; f32 u32; i32 u32; u32 u32; }

/// Replaces each left value by its right partner if that is better.
fn choose<L: Copy>(left: &mut [L], right: &[L], is_better: impl Fn(&L, &L) -> bool) {
    for (left, right) in left.iter_mut().zip(right) {
        if is_better(left, right) {
            *left = *right;
        }
    }
}
