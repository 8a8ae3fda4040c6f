//! The operations of reductions on numbers, and the trait of all operations.
#![allow(unsafe_code)]
//! Unsafe: complex numbers are plain data.

use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use std::ops::{Add, Mul};
use tasuki_collective::ValueCombiner;
use tasuki_core::os::simd::vectorized;
use tasuki_core::queue::reduction::{Combine, ElementType, Operator, Reduction};

/// An operation that combines the values of two members. It need not commute: the left value is always that of the
/// lower member, or the result of lower members. Any function of two values is an operation: `|a, b| a.max(b)`.
pub trait ReduceOp<T> {
    /// Replaces each value of `left` by its combination with its partner in `right`.
    fn combine(&self, left: &mut [T], right: &[T]);

    /// The operation's encoding, if every rank knows the operation: then any rank or helper can combine values. With
    /// `None` only this rank's own threads can.
    #[doc(hidden)]
    fn known(&self) -> Option<Reduction> {
        None
    }

    /// Returns true if the values must be combined in order.
    #[doc(hidden)]
    fn in_order(&self) -> bool {
        true
    }
}

/// Types that commands may know.
pub(crate) trait Numbered {
    /// The type's number in commands, if commands know the type.
    const NUMBER: Option<ElementType>;
}

macro_rules! numbered {
    ($($type:ty: $number:expr;)*) => {
        $(impl Numbered for $type {
            const NUMBER: Option<ElementType> = $number;
        })*
    };
}

numbered! {
    i8: Some(ElementType::I8); i16: Some(ElementType::I16); i32: Some(ElementType::I32); i64: Some(ElementType::I64);
    u8: Some(ElementType::U8); u16: Some(ElementType::U16); u32: Some(ElementType::U32); u64: Some(ElementType::U64);
    f32: Some(ElementType::F32); f64: Some(ElementType::F64);
    Complex<f32>: Some(ElementType::C32); Complex<f64>: Some(ElementType::C64);
    isize: if size_of::<isize>() == 8 { Some(ElementType::I64) } else { None };
    usize: if size_of::<usize>() == 8 { Some(ElementType::U64) } else { None };
    i128: None; u128: None;
}

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

/// The sum. Integers wrap.
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The product. Integers wrap.
#[derive(Clone, Copy, Debug)]
pub struct Product;
/// The smallest value.
#[derive(Clone, Copy, Debug)]
pub struct Min;
/// The largest value.
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The value nearest to zero, with its sign; of equal distances that of the lowest member.
#[derive(Clone, Copy, Debug)]
pub struct MinAbs;
/// The value farthest from zero, with its sign; of equal distances that of the lowest member.
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

macro_rules! operations {
    ($($type:ty: $sum:expr, $product:expr, $size:expr;)*) => {$(
        impl ReduceOp<$type> for Sum {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::Sum)
            }

            fn in_order(&self) -> bool {
                false
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                ReduceOp::combine(&$sum, left, right);
            }
        }
        impl ReduceOp<$type> for Product {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::Product)
            }

            fn in_order(&self) -> bool {
                false
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                ReduceOp::combine(&$product, left, right);
            }
        }
        impl ReduceOp<$type> for MinAbs {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::MinAbs)
            }

            fn in_order(&self) -> bool {
                true
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                let size = $size;
                ReduceOp::combine(&|a, b| if size(b) < size(a) { b } else { a }, left, right);
            }
        }
        impl ReduceOp<$type> for MaxAbs {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::MaxAbs)
            }

            fn in_order(&self) -> bool {
                true
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                let size = $size;
                ReduceOp::combine(&|a, b| if size(b) > size(a) { b } else { a }, left, right);
            }
        }
    )*};
}

macro_rules! orders {
    ($($type:ty)*) => {$(
        impl ReduceOp<$type> for Min {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::Min)
            }

            fn in_order(&self) -> bool {
                false
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                ReduceOp::combine(&|a: $type, b: $type| if b < a { b } else { a }, left, right);
            }
        }
        impl ReduceOp<$type> for Max {
            fn known(&self) -> Option<Reduction> {
                Reduction::new(<$type as Numbered>::NUMBER?, Combine::Max)
            }

            fn in_order(&self) -> bool {
                false
            }

            fn combine(&self, left: &mut [$type], right: &[$type]) {
                ReduceOp::combine(&|a: $type, b: $type| if b > a { b } else { a }, left, right);
            }
        }
    )*};
}

macro_rules! numbers {
    (signed $($signed:ident)*; unsigned $($unsigned:ident)*; float $($float:ident)*) => {
        operations! {
            $($signed: $signed::wrapping_add, $signed::wrapping_mul, |v: $signed| v.unsigned_abs();)*
            $($unsigned: $unsigned::wrapping_add, $unsigned::wrapping_mul, |v: $unsigned| v;)*
            $($float: |a: $float, b: $float| a + b, |a: $float, b: $float| a * b, |v: $float| v.abs();)*
            $(Complex<$float>: |a: Complex<$float>, b: Complex<$float>| a + b,
                |a: Complex<$float>, b: Complex<$float>| a * b,
                |v: Complex<$float>| v.re.abs() + v.im.abs();)*
        }
        orders! { $($signed)* $($unsigned)* $($float)* }
    };
}

numbers! { signed i8 i16 i32 i64 i128 isize; unsigned u8 u16 u32 u64 u128 usize; float f32 f64 }
