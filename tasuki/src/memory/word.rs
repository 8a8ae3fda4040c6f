//! The word types of atomic operations.

use tasuki_core::fabric::Width;

mod sealed {
    pub trait SealedWord {}
}

/// An integer of 4 or 8 bytes on which atomic operations work. Arithmetic wraps.
///
/// ```
/// use tasuki::{GlobalPtr, Job, onesided::Word};
/// /// Exchanges two words, one after the other.
/// fn exchange<W: Word>(job: &Job, one: GlobalPtr<W>, other: GlobalPtr<W>) -> tasuki::Result<()> {
///     let value = job.swap(one, job.load(other)?)?;
///     job.store(other, value)
/// }
/// tasuki::local(1, |job| {
///     let (wide, narrow) = (job.alloc::<u64>(2)?, job.alloc::<i32>(2)?);
///     wide.write(0, &[1, 2])?;
///     narrow.write(0, &[-1, -2])?;
///     exchange(job, wide.pointer(), wide.pointer().at(1))?;
///     exchange(job, narrow.pointer(), narrow.pointer().at(1))?;
///     assert_eq!((wide.to_vec()?, narrow.to_vec()?), (vec![2, 1], vec![-2, -1]));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Word: crate::Pod + PartialEq + sealed::SealedWord {
    #[doc(hidden)]
    const WIDTH: Width;
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

macro_rules! words {
    ($($type:ty, $width:ident, $unsigned:ty;)*) => {$(
        impl sealed::SealedWord for $type {}
        impl Word for $type {
            const WIDTH: Width = Width::$width;
            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
            #[inline]
            fn from_bits(bits: u64) -> $type {
                bits as $type
            }
        }
    )*};
}

words! {
    u32, W4, u32;
    i32, W4, u32;
    u64, W8, u64;
    i64, W8, u64;
}
