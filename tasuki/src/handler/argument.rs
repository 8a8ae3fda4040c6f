//! What handlers take and return.

use crate::{Pod, Result};
use std::any::type_name;
use tasuki_core::base::Cause;
use tasuki_core::engine::ValueShape;

/// What a [`Handler`](crate::Handler) takes: a plain value, or a slice of them. Of any length. With the cargo feature
/// `serde` also a value of any serde type, as an `Object`.
///
/// ```
/// use tasuki::{Handler, HandlerCx};
///
/// const ADD: Handler<[u64; 2], u64> = Handler::new("add", |_, [one, other]| one + other);
/// const SUM: Handler<[u64], u64> = Handler::new("sum", |_: &HandlerCx<'_>, values: &[u64]| values.iter().sum());
/// # let _ = (ADD, SUM);
/// ```
#[diagnostic::on_unimplemented(
    message = "a handler cannot take `{Self}`",
    note = "it takes a value of a type that is `Pod`, or a slice `[T]` of such values",
    note = "with the cargo feature `serde`, it takes an `Object<T>` of any serde type `T`"
)]
pub trait Argument: sealed::Sealed + 'static {
    /// The type of the value, or of the values of the slice.
    type Item: Pod;
    #[doc(hidden)]
    const IS_SLICE: bool;
    /// The shape of the argument, as all ranks compare it.
    #[doc(hidden)]
    fn shape() -> ValueShape {
        shape::<Self::Item>(Self::IS_SLICE)
    }
    /// Runs `run` with the bytes of the argument.
    #[doc(hidden)]
    fn with_bytes<V>(&self, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause>;
    /// Runs `run` with the argument that these bytes are.
    #[doc(hidden)]
    fn with<V>(bytes: &[u8], run: impl FnOnce(&Self) -> V) -> Result<V, Cause>;
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Argument for T {
    type Item = T;
    const IS_SLICE: bool = false;

    #[inline(always)]
    fn with_bytes<V>(&self, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        Ok(run(bytemuck::bytes_of(self)))
    }

    #[inline(always)]
    fn with<V>(bytes: &[u8], run: impl FnOnce(&T) -> V) -> Result<V, Cause> {
        let copy;
        let value = match bytemuck::try_from_bytes(bytes) {
            Ok(value) => value,
            Err(_) => {
                // Its alignment is larger than that of a word.
                copy = bytemuck::try_pod_read_unaligned(bytes).map_err(|_| no_value(bytes))?;
                &copy
            }
        };
        Ok(run(value))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Argument for [T] {
    type Item = T;
    const IS_SLICE: bool = true;

    #[inline(always)]
    fn with_bytes<V>(&self, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        Ok(run(bytemuck::cast_slice(self)))
    }

    fn with<V>(bytes: &[u8], run: impl FnOnce(&[T]) -> V) -> Result<V, Cause> {
        let copy: Vec<T>;
        let values = match bytemuck::try_cast_slice(bytes) {
            Ok(values) => values,
            Err(_) => {
                // Their alignment is larger than that of a word.
                copy = bytes.chunks_exact(size_of::<T>().max(1)).map(bytemuck::pod_read_unaligned).collect();
                &copy
            }
        };
        Ok(run(values))
    }
}

/// What a [`Handler`](crate::Handler) returns: a plain value, `()` for none, or a vector of plain values, which is
/// written `[T]`. Of any length. With the cargo feature `serde` also a value of any serde type `T`, which is written
/// `Object<T>`.
///
/// ```
/// use tasuki::Handler;
///
/// const COUNT_UP: Handler<u64, [u64]> = Handler::new("count up", |_, &end| (0..end).collect::<Vec<u64>>());
/// # let _ = COUNT_UP;
/// ```
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    note = "it returns a value of a type that is `Pod`, `()`, or a vector of such values, which is written `[T]`",
    note = "with the cargo feature `serde`, it returns any serde type `T`, which is written `Object<T>`",
    note = "a handler that may fail is made by `Handler::fallible`"
)]
pub trait Outcome: sealed::Sealed + 'static {
    /// What the handler's function returns, and what [`Request::wait`](crate::Request::wait) returns: the value, or
    /// a vector.
    type Owned;
    #[doc(hidden)]
    type Item: Pod;
    #[doc(hidden)]
    const IS_SLICE: bool;
    /// The shape of the result, as all ranks compare it.
    #[doc(hidden)]
    fn shape() -> ValueShape {
        shape::<Self::Item>(Self::IS_SLICE)
    }
    /// Runs `run` with the bytes of a result.
    #[doc(hidden)]
    fn with_bytes<V>(owned: &Self::Owned, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause>;
    /// The result of `len` bytes that `fill` writes. The inner error: they are none.
    #[doc(hidden)]
    fn read(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Result<Self::Owned, Cause>>;
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Outcome for T {
    type Owned = T;
    type Item = T;
    const IS_SLICE: bool = false;

    #[inline(always)]
    fn with_bytes<V>(owned: &T, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        Ok(run(bytemuck::bytes_of(owned)))
    }

    #[inline(always)]
    fn read(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Result<T, Cause>> {
        if len != size_of::<T>() {
            return Ok(Err(another_size()));
        }
        let mut value = T::zeroed();
        fill(bytemuck::bytes_of_mut(&mut value))?;
        Ok(Ok(value))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Outcome for [T] {
    type Owned = Vec<T>;
    type Item = T;
    const IS_SLICE: bool = true;

    #[inline(always)]
    fn with_bytes<V>(owned: &Vec<T>, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        Ok(run(bytemuck::cast_slice(owned)))
    }

    fn read(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Result<Vec<T>, Cause>> {
        if !len.is_multiple_of(size_of::<T>().max(1)) {
            return Ok(Err(another_size()));
        }
        let mut values = vec![T::zeroed(); len / size_of::<T>().max(1)];
        fill(bytemuck::cast_slice_mut(&mut values))?;
        Ok(Ok(values))
    }
}

#[cold]
fn no_value(bytes: &[u8]) -> Cause {
    Cause::Bug(format!("an argument of {} bytes, which no value has", bytes.len()))
}

#[cold]
fn another_size() -> Cause {
    Cause::Bug("a reply of another size".into())
}

pub(super) mod sealed {
    use crate::Pod;

    pub trait Sealed {}
    impl<T: Pod> Sealed for T {}
    impl<T: Pod> Sealed for [T] {}
}

/// The shape of values of type `T`, as all ranks compare it. Ranks may run different programs, so of a type of the
/// program only the size counts: its path differs between programs.
fn shape<T: 'static>(is_slice: bool) -> ValueShape {
    let (bytes, name) = (size_of::<T>(), type_name::<T>());
    let name = if name.contains("::") {
        format!("a type of {bytes} bytes")
    } else {
        name.replace("usize", "u64").replace("isize", "i64")
    };
    ValueShape { bytes, is_slice, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_say_what_all_ranks_know() {
        let name = |shape: ValueShape| shape.to_string();
        assert_eq!(name(shape::<()>(false)), "()");
        assert_eq!(name(shape::<[usize; 3]>(true)), "[[u64; 3]]");
        assert_eq!(name(shape::<crate::Rank>(false)), "a type of 8 bytes");
        assert_ne!(shape::<f64>(false), shape::<u64>(false));
        assert_eq!(shape::<isize>(false), shape::<i64>(false));
    }

    #[test]
    fn values_with_a_large_alignment_are_copied() {
        let words = [0_u64, 1, 2, 3, 4];
        for first in 0..2 {
            let bytes: &[u8] = bytemuck::cast_slice(&words[first..first + 4]);
            let expected =
                [0, 2].map(|at| u128::from(words[first + at]) | u128::from(words[first + at + 1]) << 64);
            assert_eq!(<[u128]>::with(bytes, <[u128]>::to_vec), Ok(expected.to_vec()));
            assert_eq!(u128::with(&bytes[..16], |&value| value), Ok(expected[0]));
        }
        assert!(u128::with(&[0; 15], |&value| value).is_err());
    }
}
