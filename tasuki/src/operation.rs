//! What reductions combine values with.
#![allow(unsafe_code)]
//! Unsafe: complex numbers are plain data.

use bytemuck::{Pod, Zeroable};
use std::ops::{Add, Mul};

/// How two members' values become one. Need not commute: the left is always the lower member's, or what lower members
/// have come to. Any function of two values is one: `|a, b| a.max(b)`.
pub trait Operation<T> {
    /// Each value of `left` becomes itself with its partner.
    fn combine(&self, left: &mut [T], right: &[T]);
}

/// The sum; of integers, wrapping.
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The product; of integers, wrapping.
#[derive(Clone, Copy, Debug)]
pub struct Product;
/// The least value.
#[derive(Clone, Copy, Debug)]
pub struct Min;
/// The largest value.
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The value nearest to zero, with its sign; of equals, the lowest member's.
#[derive(Clone, Copy, Debug)]
pub struct MinAbs;
/// The value farthest from zero, with its sign; of equals, the lowest member's.
#[derive(Clone, Copy, Debug)]
pub struct MaxAbs;

impl<T: Copy, F: Fn(T, T) -> T> Operation<T> for F {
    fn combine(&self, left: &mut [T], right: &[T]) {
        for (left, &right) in left.iter_mut().zip(right) {
            *left = self(*left, right);
        }
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

// SAFETY: two numbers side by side, of which every bit pattern, zero too, is one.
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
        impl Operation<$type> for Sum {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                Operation::combine(&$sum, left, right);
            }
        }
        impl Operation<$type> for Product {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                Operation::combine(&$product, left, right);
            }
        }
        impl Operation<$type> for MinAbs {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                let size = $size;
                Operation::combine(&|a, b| if size(b) < size(a) { b } else { a }, left, right);
            }
        }
        impl Operation<$type> for MaxAbs {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                let size = $size;
                Operation::combine(&|a, b| if size(b) > size(a) { b } else { a }, left, right);
            }
        }
    )*};
}

macro_rules! orders {
    ($($type:ty)*) => {$(
        impl Operation<$type> for Min {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                Operation::combine(&|a: $type, b: $type| if b < a { b } else { a }, left, right);
            }
        }
        impl Operation<$type> for Max {
            fn combine(&self, left: &mut [$type], right: &[$type]) {
                Operation::combine(&|a: $type, b: $type| if b > a { b } else { a }, left, right);
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
