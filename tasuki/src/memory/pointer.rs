//! Typed global addresses.
#![allow(unsafe_code)]
//! Unsafe: promises that a pointer is a plain word (`repr(transparent)` over a 64-bit address), and a slice two words.

use crate::data::single_value_data;
use crate::engine::Cause;
use crate::onesided::GlobalAddress;
use crate::{Pod, Rank};
use std::fmt;
use std::marker::PhantomData;
use tasuki_core::engine::StrideLayout;

/// The address of values of type `T` in some rank's memory: 8 bytes, `Copy`, may be sent to any rank.
///
/// A pointer keeps no memory alive. Any bit pattern is safe, because each access checks that the address lies in a
/// live registration.
///
/// ```
/// tasuki::local(1, |job| {
///     let table = job.alloc::<u32>(8)?;
///     let third = table.pointer().at(2);
///     job.put(third, &[7])?;
///     assert_eq!((table.get(2)?, third.rank(), size_of_val(&third)), (7, job.rank(), 8));
///     assert!(job.get_value(third.at(6)).is_err());   // beyond the end
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[repr(transparent)]
pub struct GlobalPtr<T> {
    address: GlobalAddress,
    of: PhantomData<fn() -> T>,
}

// SAFETY: a transparent wrapper of a 64-bit word without padding, for which every bit pattern is legal.
unsafe impl<T: 'static> bytemuck::Zeroable for GlobalPtr<T> {}
// SAFETY: a transparent wrapper of a 64-bit word without padding, for which every bit pattern is legal.
unsafe impl<T: 'static> Pod for GlobalPtr<T> {}

impl<T> GlobalPtr<T> {
    /// The null pointer. Every access refuses it.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(1, |job| {
    ///     assert!(job.put(GlobalPtr::NULL, &[7]).is_err());
    ///     assert_ne!(job.alloc::<u64>(1)?.pointer(), GlobalPtr::NULL);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const NULL: GlobalPtr<T> = GlobalPtr::new(GlobalAddress::NULL);

    /// The pointer to values at `address`.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(1, |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     let bytes = GlobalPtr::<[u8; 4]>::new(words.pointer().address());
    ///     job.put(bytes.at(1), &[[1, 0, 0, 0]])?;
    ///     assert_eq!(words.get(0)?, 1 << 32);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn new(address: GlobalAddress) -> GlobalPtr<T> {
        GlobalPtr { address, of: PhantomData }
    }

    /// The untyped address.
    ///
    /// ```
    /// use tasuki::onesided::GlobalAddress;
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc_local::<f64>(10)?;
    ///     let tables: Vec<GlobalAddress> = job.world().allgather(&table.pointer().address())?;
    ///     assert_eq!(tables[job.rank().index()], table.pointer().address());
    ///     assert_eq!(tables[1].rank(), tasuki::Rank(1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn address(self) -> GlobalAddress {
        self.address
    }

    /// The rank that owns the memory.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let table = job.alloc::<f64>(10)?;
    ///     let next = job.rank_after(1);
    ///     assert_eq!(table.on(next).at(4).rank(), next);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn rank(self) -> Rank {
        self.address.rank()
    }

    /// The pointer to the value `index` places further on, in the same registration. Beyond the address range of the
    /// rank it becomes null.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u32>(10)?;
    ///     job.put(table.on(job.rank_after(1)).at(8), &[1, 2])?;
    ///     job.barrier()?;
    ///     assert_eq!(table.to_vec()?[7..], [0, 1, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn at(self, index: usize) -> GlobalPtr<T> {
        GlobalPtr::new(match (index as u64).checked_mul(size_of::<T>() as u64) {
            Some(bytes) => self.address.add(bytes),
            None => GlobalAddress::NULL,
        })
    }

    /// The pointer to the same address with another type.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(1, |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     words.set(0, 0x0102)?;
    ///     let bytes = words.pointer().cast::<u8>();
    ///     assert_eq!(job.get_vec(bytes, 2)?, [2, 1]);
    ///     assert!(GlobalPtr::<u8>::NULL.is_null() && !bytes.is_null());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn cast<U>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.address)
    }

    /// These `count` values.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let values = job.alloc::<u32>(8)?.pointer().slice(8);
    ///     assert_eq!((values.len(), values.pointer().rank()), (8, job.rank()));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn slice(self, count: usize) -> GlobalSlice<T> {
        GlobalSlice { start: self, len: count as u64 }
    }

    /// The values of `blocks` blocks of `block_len` values, of which each begins `stride` values after the one before:
    /// [`Job::put_strided`](crate::Job::put_strided) and [`Job::get_strided`](crate::Job::get_strided) access them.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let matrix = job.alloc::<u8>(3 * 4)?; // three rows of four values
    ///     let last_column = matrix.on(job.rank_after(1)).at(3).strided(3, 1, 4);
    ///     job.put_strided(last_column, &[7, 8, 9])?;
    ///     job.barrier()?;
    ///     assert_eq!(matrix.to_vec()?, [0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn strided(self, blocks: usize, block_len: usize, stride: usize) -> GlobalStrided<T> {
        GlobalStrided { start: self, blocks, block_len, stride }
    }

    /// Returns true if the pointer is null.
    ///
    /// ```
    /// use tasuki::Member;
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc_on::<u8>(job.world(), 10)?;
    ///     assert!(table.on(None::<Member>).is_null()); // the part of nobody
    ///     assert!(!table.on(Member(1)).is_null());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn is_null(self) -> bool {
        self.address.is_null()
    }
}

/// The address of several values of type `T` in some rank's memory: 16 bytes, `Copy`, may be sent to any rank. Made by
/// [`GlobalPtr::slice`].
///
/// ```
/// use tasuki::onesided::GlobalSlice;
/// tasuki::local(2, |job| {
///     let text = job.alloc_local::<u8>(20)?;
///     let words = [&b"one"[..], b"three"][job.rank().index()];
///     text.write(0, words)?;
///     let mine: GlobalSlice<u8> = text.pointer().slice(words.len());
///     let all = job.world().allgather(&[mine])?; // names of all texts
///     assert_eq!(job.get_vec(all[1].pointer(), all[1].len())?, b"three");
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct GlobalSlice<T> {
    start: GlobalPtr<T>,
    len: u64,
}

// SAFETY: two 64-bit words without padding, for which every bit pattern is legal.
unsafe impl<T: 'static> bytemuck::Zeroable for GlobalSlice<T> {}
// SAFETY: two 64-bit words without padding, for which every bit pattern is legal.
unsafe impl<T: 'static> Pod for GlobalSlice<T> {}

impl<T> GlobalSlice<T> {
    /// The address of the first value.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<u32>(10)?;
    ///     let half = table.pointer().at(5).slice(5);
    ///     job.put(half.pointer(), &vec![7; half.len()])?;
    ///     assert_eq!(table.to_vec()?, [0, 0, 0, 0, 0, 7, 7, 7, 7, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn pointer(self) -> GlobalPtr<T> {
        self.start
    }

    /// The number of values.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<u32>(10)?;
    ///     let rest = table.pointer().at(4).slice(6);
    ///     assert_eq!(job.get_vec(rest.pointer(), rest.len())?, [0; 6]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Returns true if there are no values.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<u32>(10)?;
    ///     assert!(table.pointer().slice(0).is_empty());
    ///     assert!(!table.pointer().slice(10).is_empty());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The address of values of type `T` in some rank's memory, in blocks of equal length at equal distances, as the columns of
/// a matrix. Made by [`GlobalPtr::strided`].
///
/// ```
/// use tasuki::onesided::GlobalStrided;
/// tasuki::local(2, |job| {
///     let matrix = job.alloc::<u32>(3 * 4)?; // three rows of four values
///     matrix.write(0, &[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23])?;
///     job.barrier()?;
///     let column = |index| -> GlobalStrided<u32> { matrix.on(job.rank_after(1)).at(index).strided(3, 1, 4) };
///     let mut values = [0; 3];
///     job.get_strided(column(2), &mut values)?;
///     assert_eq!(values, [2, 12, 22]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct GlobalStrided<T> {
    start: GlobalPtr<T>,
    blocks: usize,
    block_len: usize,
    stride: usize,
}

impl<T> GlobalStrided<T> {
    /// The address of the first value.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let matrix = job.alloc::<u32>(3 * 4)?;
    ///     let column = matrix.pointer().at(2).strided(3, 1, 4);
    ///     job.put_strided(column, &[7, 8, 9])?;
    ///     assert_eq!(job.get_value(column.pointer())?, 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub const fn pointer(self) -> GlobalPtr<T> {
        self.start
    }

    /// Where the blocks are, in bytes. Error: no memory is so long.
    pub(crate) fn layout(self) -> Result<StrideLayout, Cause> {
        let bytes = |count: usize| count.saturating_mul(size_of::<T>());
        let GlobalStrided { blocks, block_len, stride, .. } = self;
        StrideLayout::new(blocks, bytes(block_len), bytes(stride)).ok_or_else(|| {
            let text =
                format!("{blocks} blocks of {block_len} values at distances of {stride} are in no memory");
            Cause::Argument(text)
        })
    }

    /// Like [`layout`](Self::layout), of values that are written. Error: blocks overlap.
    pub(crate) fn layout_to_write(self) -> Result<StrideLayout, Cause> {
        let GlobalStrided { blocks, block_len, stride, .. } = self;
        if blocks > 1 && stride < block_len {
            let text = format!("blocks of {block_len} values at distances of {stride} overlap");
            return Err(Cause::Argument(text));
        }
        self.layout()
    }
}

impl<T> Clone for GlobalStrided<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalStrided<T> {}

impl<T> Clone for GlobalSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalSlice<T> {}

impl<T> PartialEq for GlobalSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }
}

impl<T> Eq for GlobalSlice<T> {}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalPtr<T> {}

impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for GlobalPtr<T> {}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl<T> fmt::Display for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

single_value_data! { [T: 'static] GlobalPtr<T>; }
