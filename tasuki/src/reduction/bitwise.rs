//! Bitwise and logical reductions.
#![allow(unsafe_code)]
//! Unsafe: a truth value is one byte.

use crate::data::single_value_data;
use crate::reduction::reduce_op::{Numbered, ReduceOp, built_in, wide};
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor};
use tasuki_core::queue::reduction::{Combine, ElementType, Reduction};

/// Bitwise and. Of truth values: true if all are true.
///
/// ```
/// use tasuki::collective::{And, Bool};
/// tasuki::local(2, |job| {
///     let mask = [0b0110_u8, 0b0011][job.rank().index()];
///     assert_eq!(job.world().allreduce(&mask, And)?, 0b0010);
///     let is_done = Bool::from(job.rank() == 0);
///     assert!(!job.world().allreduce(&is_done, And)?.get()); // rank 1 is not
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct And;

/// Bitwise or. Of truth values: true if at least one is true.
///
/// ```
/// use tasuki::collective::{Bool, Or};
/// tasuki::local(2, |job| {
///     let mask = [0b0110_u8, 0b0011][job.rank().index()];
///     assert_eq!(job.world().allreduce(&mask, Or)?, 0b0111);
///     let has_failed = Bool::from(job.rank() == 1);
///     assert!(job.world().allreduce(&has_failed, Or)?.get());
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Or;

/// Bitwise exclusive or. Of truth values: true if an odd number is true.
///
/// ```
/// use tasuki::collective::{Bool, Xor};
/// tasuki::local(2, |job| {
///     let mask = [0b0110_u8, 0b0011][job.rank().index()];
///     assert_eq!(job.world().allreduce(&mask, Xor)?, 0b0101);
///     assert!(!job.world().allreduce(&Bool::from(true), Xor)?.get()); // an even number is true
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xor;

/// A truth value in shared memory. A `bool` has only two valid bit patterns, which bytes from another rank cannot
/// guarantee. Here the lowest bit counts, and every bit pattern is valid.
///
/// ```
/// use tasuki::collective::{And, Bool, Or};
/// tasuki::local(3, |job| {
///     let is_first = Bool::from(job.rank().0 == 0);
///     assert!(job.world().allreduce(&is_first, Or)?.get());
///     assert!(!job.world().allreduce(&is_first, And)?.get());
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

// SAFETY: one byte, for which every bit pattern, zero too, is a value.
unsafe impl Zeroable for Bool {}
// SAFETY: the only field is one byte, for which every bit pattern is a value, so there is no padding.
unsafe impl Pod for Bool {}

impl Bool {
    /// Returns true if the value is true.
    ///
    /// ```
    /// use tasuki::collective::{And, Bool};
    /// tasuki::local(2, |job| {
    ///     let all_ready: Bool = job.world().allreduce(&Bool::from(true), And)?;
    ///     assert!(all_ready.get());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn get(self) -> bool {
        self.0 & 1 == 1
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value.into())
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> bool {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

impl BitAnd for Bool {
    type Output = Bool;

    fn bitand(self, other: Bool) -> Bool {
        Bool(self.0 & other.0)
    }
}

impl BitOr for Bool {
    type Output = Bool;

    fn bitor(self, other: Bool) -> Bool {
        Bool(self.0 | other.0)
    }
}

impl BitXor for Bool {
    type Output = Bool;

    fn bitxor(self, other: Bool) -> Bool {
        Bool(self.0 ^ other.0)
    }
}

impl Numbered for Bool {
    const NUMBER: ElementType = ElementType::U8;
}

built_in! {
    And false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize Bool;
    Or false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize Bool;
    Xor false: i8 i16 i32 i64 isize u8 u16 u32 u64 usize Bool;
}

wide! {
    i128: And false BitAnd::bitand;
    i128: Or false BitOr::bitor;
    i128: Xor false BitXor::bitxor;
    u128: And false BitAnd::bitand;
    u128: Or false BitOr::bitor;
    u128: Xor false BitXor::bitxor;
}

single_value_data! { [] Bool; }
