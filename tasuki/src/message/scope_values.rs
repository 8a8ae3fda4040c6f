//! What a scope can send.

use crate::Pod;
use crate::collective::Data;

/// Values that a [`Scope`](crate::Scope) sends: borrowed for the scope, or kept by it.
///
/// Borrowed for `'env`: any [`Data`] behind a reference. Kept by the scope until the message
/// has been sent: a number, an array, a vector. Most short messages are sent at once, and nothing is kept.
pub trait ScopeValues<'env>: sealed::SealedValues {
    /// The type of one value.
    type Value: Pod;

    #[doc(hidden)]
    fn values(&self) -> &[Self::Value];

    #[doc(hidden)]
    fn keep(self) -> Kept<'env, Self::Value>;
}

/// Values that stay in place until a message has been sent.
#[doc(hidden)]
#[derive(Debug)]
pub enum Kept<'env, T> {
    /// By the program.
    Borrowed(&'env [T]),
    /// By the scope.
    Own(Vec<T>),
}

mod sealed {
    pub trait SealedValues {}
}

macro_rules! scope_values {
    ([$($generics:tt)*] $type:ty, $value:ty, |$it:ident| $values:expr, $keep:expr) => {
        impl<$($generics)*> sealed::SealedValues for $type {}
        impl<'env, $($generics)*> ScopeValues<'env> for $type {
            type Value = $value;

            #[inline(always)]
            fn values(&self) -> &[$value] {
                let $it = self;
                $values
            }

            fn keep(self) -> Kept<'env, $value> {
                let $it = self;
                Kept::Own($keep)
            }
        }
    };
}

impl<D: Data + ?Sized> sealed::SealedValues for &D {}
impl<'env, D: Data + ?Sized> ScopeValues<'env> for &'env D {
    type Value = D::Value;

    #[inline(always)]
    fn values(&self) -> &[D::Value] {
        (**self).values()
    }

    fn keep(self) -> Kept<'env, D::Value> {
        Kept::Borrowed(self.values())
    }
}

scope_values!([T: Pod] Vec<T>, T, |it| it, it);
scope_values!([T: Pod, const N: usize] [T; N], T, |it| it, it.to_vec());

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            scope_values!([] $number, $number, |it| std::slice::from_ref(it), vec![it]);
        )*
    };
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
