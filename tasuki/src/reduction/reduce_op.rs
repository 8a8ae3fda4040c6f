//! The operations of reductions on numbers, and the trait of all operations.
#![allow(unsafe_code)]
//! Unsafe: complex numbers are plain data.

use crate::data::single_value_data;
use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use std::ops::{Add, Mul};
use tasuki_core::fabric::AtomicKind;
use tasuki_core::os::simd::vectorized;
use tasuki_core::queue::reduction::{
    BorrowedOperation, Combine, ElementType, Operator, ReduceOperation, Reduction,
};

/// An operation that combines the values of two members. Any function of two values is an operation: `|a, b| a.max(b)`.
///
/// It need be neither commutative nor associative in its bits, as a sum of floating-point numbers is not: for one
/// operation, one group of members and one number of values, every blocking and nonblocking call, scan and plan gives
/// the same bits, at every repetition, with or without a helper. The *combining order* is this: the values of the
/// members, in the order of the members, are cut into groups of 32. The values of a group are combined from the left:
/// `((v0 . v1) . v2) . ...`. The results of the groups are combined by the same rule, until one is left. So the values
/// of up to 32 members are simply combined from the left. A scan gives member `i` this combination of the values of
/// members 0 to `i`. Plans of [`AnyOrder`](crate::collective::AnyOrder) may use a quicker order.
///
/// ```
/// use tasuki::collective::{Max, ReduceOp};
/// use tasuki::{Communicator, Sum};
/// fn of_all(world: &Communicator, operation: impl ReduceOp<i64>) -> tasuki::Result<i64> {
///     world.allreduce(&(world.rank().index() as i64 + 1), operation)
/// }
/// tasuki::local(3, |job| {
///     assert_eq!(of_all(job.world(), Sum)?, 6);
///     assert_eq!(of_all(job.world(), Max)?, 3);
///     assert_eq!(of_all(job.world(), |a, b| 10 * a + b)?, 123); // from the left
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait ReduceOp<T> {
    /// Replaces each value of `left` by its combination with its partner in `right`.
    fn combine(&self, left: &mut [T], right: &[T]);

    /// The operation's encoding, if every rank knows the operation: then any rank or helper can combine values. With
    /// `None` only this rank's own threads can.
    #[doc(hidden)]
    fn known(&self) -> Option<Reduction> {
        None
    }

    /// Returns true if the values must be combined in the combining order: the bits of the result depend on it.
    #[doc(hidden)]
    fn in_order(&self) -> bool {
        true
    }
}

/// An operation that every rank knows for values of type `T`. [`Job::accumulate`](crate::Job::accumulate) takes these.
///
/// They are [`Sum`], [`Product`], [`Min`], [`Max`], [`MinAbs`] and [`MaxAbs`] for numbers, and
/// [`And`](crate::collective::And), [`Or`](crate::collective::Or) and [`Xor`](crate::collective::Xor) for integers.
///
/// ```
/// use tasuki::collective::{MaxAbs, Or};
/// use tasuki::{Rank, Sum};
/// tasuki::local(2, |job| {
///     let (number, mask) = (job.alloc::<i64>(2)?, job.alloc::<u32>(1)?);
///     let at = number.on(Rank(0));
///     job.accumulate(at, &[1 + job.rank().index() as i64], Sum)?;
///     job.accumulate(at.at(1), &[[3, -4][job.rank().index()]], MaxAbs)?;
///     job.accumulate(mask.on(Rank(0)), &[1 << job.rank().index()], Or)?;
///     job.barrier()?;
///     if job.rank() == 0 {
///         assert_eq!((number.to_vec()?, mask.get(0)?), (vec![3, -4], 0b11));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait BuiltinOp<T>: ReduceOp<T> + sealed::SealedBuiltin<T> {
    /// The atomic operation on words that is this operation, if there is one.
    #[doc(hidden)]
    fn atomic(&self) -> Option<AtomicKind>;
}

pub(crate) mod sealed {
    pub trait SealedBuiltin<T> {}
}

/// Returns the atomic operation on words that combines values of that type so.
pub(crate) const fn atomic_kind(element: ElementType, combine: Combine) -> Option<AtomicKind> {
    use ElementType::{I32, I64, U32, U64};
    match (combine, element) {
        (Combine::Sum, I32 | U32 | I64 | U64) => Some(AtomicKind::Add),
        (Combine::And, I32 | U32 | I64 | U64) => Some(AtomicKind::And),
        (Combine::Or, I32 | U32 | I64 | U64) => Some(AtomicKind::Or),
        (Combine::Xor, I32 | U32 | I64 | U64) => Some(AtomicKind::Xor),
        _ => None,
    }
}

/// Types that commands know.
pub(crate) trait Numbered {
    /// The type's number in commands.
    const NUMBER: ElementType;
}

macro_rules! numbered {
    ($($type:ty: $number:ident;)*) => {
        $(impl Numbered for $type {
            const NUMBER: ElementType = ElementType::$number;
        })*
    };
}

numbered! {
    i8: I8; i16: I16; i32: I32; i64: I64; u8: U8; u16: U16; u32: U32; u64: U64; f32: F32; f64: F64;
    Complex<f32>: C32; Complex<f64>: C64; isize: I64; usize: U64;
}

// Tasuki runs on machines with 64-bit addresses only.
const _: () = assert!(size_of::<usize>() == 8);

/// An operation on values, applied to their bytes.
pub(crate) struct OnBytes<T, O> {
    operation: O,
    of: PhantomData<fn(T)>,
}

impl<T: Pod, O: ReduceOp<T>> OnBytes<T, O> {
    pub(crate) fn new(operation: O) -> OnBytes<T, O> {
        OnBytes { operation, of: PhantomData }
    }

    /// Returns the operation for a call that borrows it.
    pub(crate) fn borrowed(&self) -> BorrowedOperation<'_> {
        ReduceOperation::new(self.operation.known(), || self as &dyn Operator)
    }

    /// Returns the operation for a call or plan that owns it. `own` makes the pointer to an operation of the program.
    pub(crate) fn owned<P>(self, own: impl FnOnce(Self) -> P) -> ReduceOperation<P> {
        ReduceOperation::new(self.operation.known(), || own(self))
    }
}

impl<T: Pod, O: ReduceOp<T>> Operator for OnBytes<T, O> {
    fn value_bytes(&self) -> usize {
        size_of::<T>().max(1)
    }

    fn combine(&self, left: &mut [u8], right: &[u8]) {
        if let (Ok(left), Ok(right)) = (bytemuck::try_cast_slice_mut(left), bytemuck::try_cast_slice(right)) {
            return self.operation.combine(left, right);
        }
        // The bytes are not aligned for the type.
        let values = |bytes: &[u8]| -> Vec<T> {
            bytes.chunks_exact(size_of::<T>().max(1)).map(bytemuck::pod_read_unaligned).collect()
        };
        let mut result = values(left);
        self.operation.combine(&mut result, &values(right));
        left.copy_from_slice(bytemuck::cast_slice(&result));
    }
}

/// The sum. Integers wrap: of 8 bits, 127 + 1 is -128. Floating-point numbers are added in the combining order
/// ([`ReduceOp`]), so that every way to make the sum gives the same bits.
///
/// ```
/// use tasuki::Sum;
/// tasuki::local(3, |job| {
///     assert_eq!(job.world().allreduce(&[0.5, job.rank().index() as f64], Sum)?, [1.5, 3.0]);
///     assert_eq!(job.world().allreduce(&100_u8, Sum)?, 44); // 300 wraps
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The product. Integers wrap. Floating-point numbers are multiplied in the combining order ([`ReduceOp`]).
///
/// ```
/// use tasuki::collective::{Complex, MaxAbs, MinAbs, Product, Xor};
/// tasuki::local(3, |job| {
///     let me = job.rank().0 as i32;
///     let (world, turn) = (job.world(), Complex { re: 0.0, im: 1.0 });
///     assert_eq!(world.allreduce(&(me + 1), Product)?, 6);
///     assert_eq!(world.allreduce(&[turn], Product)?, [Complex { re: 0.0, im: -1.0 }]);
///     assert_eq!(world.allreduce(&(2 - 2 * me), MaxAbs)?, 2);   // of 2, 0, -2: the lowest member's
///     assert_eq!(world.allreduce(&(2 - 2 * me), MinAbs)?, 0);
///     assert_eq!(world.allreduce(&(1_i32 << me), Xor)?, 0b111);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Product;
/// The smallest value.
///
/// If any value is NaN, the result is NaN. -0.0 is less than 0.0. Infinities are numbers like others. The result has
/// the same bits in every call, plan and command, whatever the order in which values are combined: the resulting NaN
/// is always positive and quiet, without a payload (`0x7ff8000000000000`, of `f32` `0x7fc00000`). A value that is
/// combined with no other, as in a group of one member or by the first member of a scan, stays as it is.
///
/// ```
/// use tasuki::collective::Min;
/// tasuki::local(3, |job| {
///     let mine = [[0.0, -0.0, 1.0][job.rank().index()], [3.0, f64::NAN, 1.0][job.rank().index()]];
///     let least = job.world().allreduce(&mine, Min)?;
///     assert!(least[0].is_sign_negative() && least[0] == 0.0 && least[1].is_nan());
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Min;
/// The largest value. 0.0 is greater than -0.0. What [`Min`] says of NaN and infinities holds.
///
/// ```
/// use tasuki::collective::Max;
/// tasuki::local(3, |job| {
///     let longest = job.world().allreduce(&[2_u64, 7, 5][job.rank().index()], Max)?;
///     assert_eq!(longest, 7);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The value nearest to zero, with its sign; of equal distances that of the lowest member.
///
/// The distance of a [`Complex`] number is the sum of the absolute values of its parts. If any value is NaN, the result
/// is NaN with the bits that [`Min`] names; a complex number is NaN if one of its parts is, and as a result both parts
/// are. 0.0 and -0.0 are at equal distance, and so are both infinities. The distance of the least signed integer is
/// exact: it does not wrap.
///
/// ```
/// use tasuki::collective::MinAbs;
/// tasuki::local(3, |job| {
///     let distance = [-3.0_f64, -0.5, 2.0][job.rank().index()];
///     assert_eq!(job.world().allreduce(&distance, MinAbs)?, -0.5);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MinAbs;
/// The value farthest from zero, with its sign; of equal distances that of the lowest member. What [`MinAbs`] says of
/// distances and NaN holds. Distances of complex numbers that are too large for the type are infinite, and equal.
///
/// ```
/// use tasuki::collective::MaxAbs;
/// tasuki::local(3, |job| {
///     let change = [1.5_f64, -4.0, 2.0][job.rank().index()];
///     assert_eq!(job.world().allreduce(&change, MaxAbs)?, -4.0);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MaxAbs;

impl<T: Copy, F: Fn(T, T) -> T> ReduceOp<T> for F {
    #[inline(always)]
    fn combine(&self, left: &mut [T], right: &[T]) {
        vectorized(size_of_val(left), || {
            for (left, &right) in left.iter_mut().zip(right) {
                *left = self(*left, right);
            }
        });
    }
}

/// A complex number.
///
/// ```
/// use tasuki::Sum;
/// use tasuki::collective::{Complex, Product};
/// tasuki::local(2, |job| {
///     let z = Complex { re: 1.0, im: job.rank().index() as f64 }; // 1, 1 + i
///     assert_eq!(job.world().allreduce(&z, Sum)?, Complex { re: 2.0, im: 1.0 });
///     assert_eq!(job.world().allreduce(&(z * z), Product)?, Complex { re: 0.0, im: 2.0 });
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
pub struct Complex<F> {
    /// The real part.
    pub re: F,
    /// The imaginary part.
    pub im: F,
}

// SAFETY: two numbers side by side, for which every bit pattern, zero too, is a value.
unsafe impl<F: Zeroable> Zeroable for Complex<F> {}
// SAFETY: two values of the same plain type have no padding between or behind them.
unsafe impl<F: Pod> Pod for Complex<F> {}

impl<F: Add<Output = F>> Add for Complex<F> {
    type Output = Complex<F>;

    fn add(self, other: Complex<F>) -> Complex<F> {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl<F: Mul<Output = F> + Add<Output = F> + std::ops::Sub<Output = F> + Copy> Mul for Complex<F> {
    type Output = Complex<F>;

    fn mul(self, other: Complex<F>) -> Complex<F> {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// Operations on types that commands know, by the same code as commands.
macro_rules! built_in {
    ($($operation:ident $in_order:literal: $($type:ty)*;)*) => {$($(
        impl ReduceOp<$type> for $operation {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER, Combine::$operation)
            }

            fn in_order(&self) -> bool {
                $in_order
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                let reduction = ReduceOp::<$type>::known(self).expect("the operation is defined for the type");
                reduction.combine(bytemuck::cast_slice_mut(left), bytemuck::cast_slice(right));
            }
        }

        impl crate::reduction::reduce_op::sealed::SealedBuiltin<$type> for $operation {}
        impl crate::reduction::reduce_op::BuiltinOp<$type> for $operation {
            fn atomic(&self) -> Option<tasuki_core::fabric::AtomicKind> {
                const {
                    let element = <$type as Numbered>::NUMBER;
                    crate::reduction::reduce_op::atomic_kind(element, Combine::$operation)
                }
            }
        }
    )*)*};
}
pub(crate) use built_in;

built_in! {
    Sum false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    Sum true: f32 f64 Complex<f32> Complex<f64>;
    Product false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    Product true: f32 f64 Complex<f32> Complex<f64>;
    Min false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    Max false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    MinAbs true: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
    MaxAbs true: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
}

/// Operations on integers that commands do not know.
macro_rules! wide {
    ($($type:ty: $operation:ident $in_order:literal $combine:expr;)*) => {$(
        impl ReduceOp<$type> for $operation {
            fn in_order(&self) -> bool {
                $in_order
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                ReduceOp::combine(&$combine, left, right);
            }
        }
    )*};
}
pub(crate) use wide;

wide! {
    i128: Sum false i128::wrapping_add;
    i128: Product false i128::wrapping_mul;
    i128: Min false |a: i128, b: i128| a.min(b);
    i128: Max false |a: i128, b: i128| a.max(b);
    i128: MinAbs true |a: i128, b: i128| if b.unsigned_abs() < a.unsigned_abs() { b } else { a };
    i128: MaxAbs true |a: i128, b: i128| if b.unsigned_abs() > a.unsigned_abs() { b } else { a };
    u128: Sum false u128::wrapping_add;
    u128: Product false u128::wrapping_mul;
    u128: Min false |a: u128, b: u128| a.min(b);
    u128: Max false |a: u128, b: u128| a.max(b);
    u128: MinAbs true |a: u128, b: u128| if b < a { b } else { a };
    u128: MaxAbs true |a: u128, b: u128| if b > a { b } else { a };
}

single_value_data! { [F: Pod + Send + Sync] Complex<F>; }

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::cast_slice;

    #[test]
    fn an_operation_of_the_program_combines_values_at_any_address() {
        let minus = OnBytes::<u64, _>::new(|a: u64, b: u64| a.wrapping_sub(b));
        for begin in 0..8 {
            let (mut left, mut right) = ([0_u8; 24], [0_u8; 24]);
            left[begin..begin + 16].copy_from_slice(cast_slice(&[300_u64, 5]));
            right[begin..begin + 16].copy_from_slice(cast_slice(&[1_u64, 7]));
            minus.borrowed().combine(&mut left[begin..begin + 16], &right[begin..begin + 16]);
            assert_eq!(
                left[begin..begin + 16],
                *cast_slice::<u64, u8>(&[299, 5_u64.wrapping_sub(7)]),
                "{begin}"
            );
        }
    }

    #[test]
    fn only_operations_that_every_rank_knows_are_built_in() {
        let sum = Reduction::new(ElementType::F64, Combine::Sum);
        assert_eq!(OnBytes::<f64, _>::new(Sum).borrowed().builtin(), sum);
        assert_eq!(OnBytes::<f64, _>::new(Sum).owned(Box::new).builtin(), sum);
        assert_eq!(OnBytes::<i128, _>::new(Sum).borrowed().builtin(), None);
        assert_eq!(OnBytes::<f64, _>::new(|a: f64, b: f64| a + b).owned(Box::new).builtin(), None);
    }
}
