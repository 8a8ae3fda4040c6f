//! Where the least and the greatest values are.
#![allow(unsafe_code)]
//! Unsafe: a value and a number of the same size have no padding between or behind them.

use crate::reduction::reduce_op::ReduceOp;
use bytemuck::{Pod, Zeroable};

/// A value, and a number that says where it was found: a rank, say, or an index.
///
/// ```
/// use tasuki::{Located, MaxLoc, MinLoc};
/// tasuki::local(3, |job| {
///     let mine = Located { value: [0.5, 2.5, 0.5][job.rank().index()], at: u64::from(job.rank().0) };
///     assert_eq!(job.world().allreduce(&[mine], MaxLoc)?[0].at, 1);
///     assert_eq!(job.world().allreduce(&[mine], MinLoc)?[0], Located { value: 0.5, at: 0 });
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Located<V, I = u64> {
    /// The value.
    pub value: V,
    /// Where it was found.
    pub at: I,
}

/// The least value; of equals the one with the least number. MPI's `MPI_MINLOC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MinLoc;

/// The greatest value; of equals the one with the least number. MPI's `MPI_MAXLOC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaxLoc;

macro_rules! located {
    ($($value:ident $at:ident;)*) => {$(
        // SAFETY: two numbers side by side, of which every bit pattern, zero too, is one.
        unsafe impl Zeroable for Located<$value, $at> {}
        // SAFETY: they are of the same size: nothing is between or behind them.
        unsafe impl Pod for Located<$value, $at> {}

        impl ReduceOp<Located<$value, $at>> for MinLoc {
            fn combine(&self, left: &mut [Located<$value, $at>], right: &[Located<$value, $at>]) {
                choose(left, right, |a, b| b.value < a.value || (b.value == a.value && b.at < a.at));
            }
        }

        impl ReduceOp<Located<$value, $at>> for MaxLoc {
            fn combine(&self, left: &mut [Located<$value, $at>], right: &[Located<$value, $at>]) {
                choose(left, right, |a, b| b.value > a.value || (b.value == a.value && b.at < a.at));
            }
        }
    )*};
}

located! { f64 u64; i64 u64; u64 u64; f32 u32; i32 u32; u32 u32; }

/// The right ones instead of the left ones, where they are better.
fn choose<L: Copy>(left: &mut [L], right: &[L], is_better: impl Fn(&L, &L) -> bool) {
    for (left, right) in left.iter_mut().zip(right) {
        if is_better(left, right) {
            *left = *right;
        }
    }
}
