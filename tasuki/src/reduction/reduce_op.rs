//! The operations of reductions on numbers, and the trait of all operations.
#![allow(unsafe_code)]
//! Unsafe: complex numbers are plain data.

use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use std::ops::{Add, Mul};
use tasuki_collective::ValueCombiner;
use tasuki_core::os::simd::vectorized;
use tasuki_core::queue::reduction::{Combine, ElementType, Operator, Reduction};

/// An operation that combines the values of two members. Any function of two values is an operation: `|a, b| a.max(b)`.
///
/// It need be neither commutative nor associative in its bits, as a sum of floating-point numbers is not: for one
/// operation, one group of members and one number of values, every blocking and nonblocking call, scan and plan gives
/// the same bits, at every repetition, with or without a helper. The *combining order* is this: the values of the
/// members, in the order of the members, are cut into groups of 32. The values of a group are combined from the left:
/// `((v0 . v1) . v2) . ...`. The results of the groups are combined by the same rule, until one is left. So the values
/// of up to 32 members are simply combined from the left. A scan gives member `i` this combination of the values of
/// members 0 to `i`. Plans of [`AnyOrder`](crate::collective::AnyOrder) may use a quicker order.
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

/// An operation in the form that collective calls take.
pub(crate) struct ReduceOpRef<'o, O>(pub(crate) &'o O);

impl<T, O: ReduceOp<T>> ValueCombiner<T> for ReduceOpRef<'_, O> {
    fn combine(&self, left: &mut [T], right: &[T]) {
        self.0.combine(left, right);
    }

    fn known(&self) -> Option<Reduction> {
        self.0.known()
    }
}

/// An operation on values, applied to their bytes.
pub(crate) struct ReduceOpOnBytes<T, O>(O, PhantomData<fn(T)>);

impl<T, O> ReduceOpOnBytes<T, O> {
    pub(crate) fn new(operation: O) -> ReduceOpOnBytes<T, O> {
        ReduceOpOnBytes(operation, PhantomData)
    }
}

impl<T: Pod, O: ReduceOp<T> + Send + Sync> Operator for ReduceOpOnBytes<T, O> {
    fn combine(&self, left: &mut [u8], right: &[u8]) {
        if let (Ok(left), Ok(right)) = (bytemuck::try_cast_slice_mut(left), bytemuck::try_cast_slice(right)) {
            return self.0.combine(left, right);
        }
        // The bytes are not aligned for the type.
        let values = |bytes: &[u8]| -> Vec<T> {
            bytes.chunks_exact(size_of::<T>().max(1)).map(bytemuck::pod_read_unaligned).collect()
        };
        let mut result = values(left);
        self.0.combine(&mut result, &values(right));
        left.copy_from_slice(bytemuck::cast_slice(&result));
    }
}

/// The sum. Integers wrap: of 8 bits, 127 + 1 is -128. Floating-point numbers are added in the combining order
/// ([`ReduceOp`]), so that every way to make the sum gives the same bits.
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The product. Integers wrap. Floating-point numbers are multiplied in the combining order ([`ReduceOp`]).
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
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The value nearest to zero, with its sign; of equal distances that of the lowest member.
///
/// The distance of a [`Complex`] number is the sum of the absolute values of its parts. If any value is NaN, the result
/// is NaN with the bits that [`Min`] names; a complex number is NaN if one of its parts is, and as a result both parts
/// are. 0.0 and -0.0 are at equal distance, and so are both infinities. The distance of the least signed integer is
/// exact: it does not wrap.
#[derive(Clone, Copy, Debug)]
pub struct MinAbs;
/// The value farthest from zero, with its sign; of equal distances that of the lowest member. What [`MinAbs`] says of
/// distances and NaN holds. Distances of complex numbers that are too large for the type are infinite, and equal.
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
