//! The values that calls read and fill: numbers, arrays, slices and vectors.

use crate::onesided::GlobalAddress;
use crate::{Pod, Rank};

/// Values that a call reads or fills: a number, an array, a slice or a vector of plain values.
///
/// Calls take them by reference: `&x`, `&[1.0; 8]`, `&v` and `&v[3..]` all compile. A single value of a type of the
/// program is passed as an array of one. A literal needs a type: if `at` is the address of a `u64`, `job.put(at, &1)`
/// does not compile, but `job.put(at, &1_u64)` and `job.put(at, &[1])` do.
///
/// ```
/// use tasuki::{Rank, Slot, Sum};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     let (mut number, mut array, mut vector) = (0_u64, [0_u64; 2], vec![0_u64; 3]);
///     if job.rank() == 0 {
///         world.send(&7_u64, Rank(1), Slot(0))?;
///         world.send(&[7_u64; 2], Rank(1), Slot(0))?;
///         world.send(&vec![7_u64; 2], Rank(1), Slot(0))?;
///     } else {
///         world.recv(&mut number, Rank(0), Slot(0))?;
///         world.recv(&mut array, Rank(0), Slot(0))?;
///         world.recv(&mut vector[1..], Rank(0), Slot(0))?;
///         assert_eq!((number, array, &vector[..]), (7, [7; 2], &[0, 7, 7][..]));
///     }
///     let sum: f64 = world.allreduce(&0.5, Sum)?;                  // a number for a number
///     let sums: [f64; 2] = world.allreduce(&[0.5, 1.0], Sum)?;     // an array for an array
///     assert_eq!((sum, sums), (1.0, [1.0, 2.0]));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold values that a call can read or fill",
    note = "values are numbers, or arrays, slices or vectors of numbers or of types that are `Pod`; a type of the program \
            gets that by `#[derive(Clone, Copy, Pod, Zeroable)]`, `#[repr(C)]` and \
            `#[bytemuck(crate = \"tasuki::bytemuck\")]`",
    note = "a `bool` is passed as a `tasuki::collective::Bool`",
    note = "pass a single value of a type of the program as an array of one: `&[value]`",
    note = "vectors of vectors are `Blocks`: `&Blocks::from(vectors)`, in `alltoall`, `scatter` and `neighbor_alltoall`"
)]
pub trait Data: sealed::SealedData {
    /// The type of one value.
    type Value: Pod;
    /// What a call that allocates its result returns: a number for a number, an array for an array, a vector for a
    /// slice or a vector.
    type Owned;

    /// The values.
    #[doc(hidden)]
    fn values(&self) -> &[Self::Value];

    /// The values, to fill.
    #[doc(hidden)]
    fn values_mut(&mut self) -> &mut [Self::Value];

    /// A copy of the values. A number and an array are copied without an allocation.
    #[doc(hidden)]
    fn to_owned_data(&self) -> Self::Owned;

    /// The values of a copy.
    #[doc(hidden)]
    fn owned_values(owned: &mut Self::Owned) -> &mut [Self::Value];
}

/// [`Data`] that a nonblocking call owns until it is complete: a number, an array or a vector. The result has the same
/// type.
///
/// ```
/// use tasuki::{Request, Sum};
/// tasuki::local(3, |job| {
///     let (world, me) = (job.world(), job.rank().0);
///     let mut number = world.iallreduce(me, Sum)?;
///     let mut array = world.iallreduce([me, 1], Sum)?;
///     let mut vector = world.iallreduce(vec![me; 100], Sum)?;
///     assert_eq!((vector.wait()?, array.wait()?, number.wait()?), (vec![3; 100], [3, 3], 3));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait OwnedValues: RequestValues + Data<Value: Send + Sync> + Send {}

impl<T: Pod + Send + Sync> OwnedValues for Vec<T> {}

impl<T: Pod + Send + Sync, const N: usize> OwnedValues for [T; N] {}

/// [`Data`] that a nonblocking send or receive owns until it is complete: a number, an array or a vector, which comes
/// back. A vector that has received becomes as long as the message; a number and an array keep what no value has
/// replaced.
///
/// ```
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let (world, next, previous) = (job.world(), job.rank_after(1), job.rank_after(-1));
///     let (mut number, mut array) = (world.isend(7, next, Slot(0))?, world.isend([1.5, 2.5], next, Slot(1))?);
///     assert_eq!(world.irecv(0, previous, Slot(0))?.wait()?.0, 7);
///     let (got, received) = world.irecv([0.0; 3], previous, Slot(1))?.wait()?;
///     assert_eq!((got, received.count), ([1.5, 2.5, 0.0], 2));
///     assert_eq!((number.wait()?, array.wait()?), (7, [1.5, 2.5]));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait RequestValues: Data + Sized + 'static {
    /// The values as a vector.
    #[doc(hidden)]
    fn into_vec(self) -> Vec<Self::Value>;

    /// The values of a vector that has as many values as this type.
    #[doc(hidden)]
    fn from_vec(values: Vec<Self::Value>) -> Self;

    /// Such values, of which a message has filled the first `count`.
    #[doc(hidden)]
    fn received(values: Vec<Self::Value>, _count: usize) -> Self {
        Self::from_vec(values)
    }
}

impl<T: Pod> RequestValues for Vec<T> {
    #[inline(always)]
    fn into_vec(self) -> Vec<T> {
        self
    }

    #[inline(always)]
    fn from_vec(values: Vec<T>) -> Vec<T> {
        values
    }

    #[inline(always)]
    fn received(mut values: Vec<T>, count: usize) -> Vec<T> {
        values.truncate(count);
        values
    }
}

impl<T: Pod, const N: usize> RequestValues for [T; N] {
    fn into_vec(self) -> Vec<T> {
        self.to_vec()
    }

    fn from_vec(values: Vec<T>) -> [T; N] {
        let mut array = [T::zeroed(); N];
        array.copy_from_slice(&values);
        array
    }
}

/// Implements `Data` but for `to_owned_data`, by a function that returns the values as a slice.
macro_rules! slice_data {
    ($owned:ty, $to_owned:expr) => {
        type Value = T;
        type Owned = $owned;

        #[inline(always)]
        fn values(&self) -> &[T] {
            self
        }

        #[inline(always)]
        fn values_mut(&mut self) -> &mut [T] {
            self
        }

        #[inline(always)]
        fn to_owned_data(&self) -> $owned {
            $to_owned(self)
        }

        #[inline(always)]
        fn owned_values(owned: &mut $owned) -> &mut [T] {
            owned
        }
    };
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Data for [T] {
    slice_data! { Vec<T>, <[T]>::to_vec }
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Data for Vec<T> {
    slice_data! { Vec<T>, Vec::clone }
}

#[diagnostic::do_not_recommend]
impl<T: Pod, const N: usize> Data for [T; N] {
    slice_data! { [T; N], <[T; N]>::clone }
}

/// Implements `Data`, `RequestValues` and `OwnedValues` for types of which one value is data.
macro_rules! single_value_data {
    ($([$($generic:tt)*] $type:ty $(where $bound:ty)?;)*) => {$(
        impl<$($generic)*> $crate::collective::Data for $type $(where $bound: $crate::Pod + Send + Sync)? {
            type Value = $type;
            type Owned = $type;

            #[inline(always)]
            fn values(&self) -> &[$type] {
                std::slice::from_ref(self)
            }

            #[inline(always)]
            fn values_mut(&mut self) -> &mut [$type] {
                std::slice::from_mut(self)
            }

            #[inline(always)]
            fn to_owned_data(&self) -> $type {
                *self
            }

            #[inline(always)]
            fn owned_values(owned: &mut $type) -> &mut [$type] {
                std::slice::from_mut(owned)
            }
        }

        impl<$($generic)*> $crate::data::sealed::SealedData for $type {}

        impl<$($generic)*> $crate::collective::OwnedValues for $type $(where $bound: $crate::Pod + Send + Sync)? {}

        impl<$($generic)*> $crate::message::RequestValues for $type $(where $bound: $crate::Pod + Send + Sync)? {
            fn into_vec(self) -> Vec<$type> {
                vec![self]
            }

            fn from_vec(values: Vec<$type>) -> $type {
                values[0]
            }
        }
    )*};
}

pub(crate) use single_value_data;

single_value_data! {
    [] i8; [] i16; [] i32; [] i64; [] i128; [] isize;
    [] u8; [] u16; [] u32; [] u64; [] u128; [] usize;
    [] f32; [] f64;
    [] Rank; [] GlobalAddress;
}

pub(crate) mod sealed {
    pub trait SealedData {}
    impl<T> SealedData for [T] {}
    impl<T> SealedData for Vec<T> {}
    impl<T, const N: usize> SealedData for [T; N] {}
}
