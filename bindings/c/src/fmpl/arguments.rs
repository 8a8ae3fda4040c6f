//! Pointers and numbers of C as values of Rust.
//!
//! Unsafe: slices are made of pointers and lengths of C, which the caller vouches for.
#![allow(unsafe_code)]

use crate::status::Failure;
use std::ffi::{c_int, c_void};
use tasuki::{Member, Slot};

/// In a receive: any slot.
pub const FMPL_TAG_ANY: c_int = -1;

/// Checks the bytes of a buffer.
fn check(at: *const c_void, size: usize) -> Result<(), Failure> {
    if size > isize::MAX as usize {
        return Err(Failure::misuse(format!("size is {}, and must be 0 or more", size.cast_signed())));
    }
    if at.is_null() && size != 0 {
        return Err(Failure::misuse(format!("the buffer of {size} bytes is null")));
    }
    Ok(())
}

/// Returns the bytes of a buffer that is read.
///
/// # Safety
/// It points to `size` bytes, which nobody writes while the result is used.
pub(super) unsafe fn read<'b>(at: *const c_void, size: usize) -> Result<&'b [u8], Failure> {
    check(at, size)?;
    // SAFETY: the pointer is not null, and the caller promises the rest.
    Ok(if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at.cast(), size) } })
}

/// Returns the bytes of a buffer that is written.
///
/// # Safety
/// It points to `size` bytes, which nobody else uses while the result is used.
pub(super) unsafe fn written<'b>(at: *mut c_void, size: usize) -> Result<&'b mut [u8], Failure> {
    check(at, size)?;
    // SAFETY: the pointer is not null, and the caller promises the rest.
    Ok(if size == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(at.cast(), size) } })
}

/// Returns the place that a result goes to.
///
/// # Safety
/// It is null, or points to a value that nobody else uses meanwhile.
pub(super) unsafe fn result<'b, T>(at: *mut T, name: &str) -> Result<&'b mut T, Failure> {
    // SAFETY: the caller promises it.
    unsafe { at.as_mut() }.ok_or_else(|| Failure::misuse(format!("{name} is null")))
}

/// Returns a member of a group of that size.
#[inline]
pub(super) fn member(number: c_int, size: usize) -> Result<Member, Failure> {
    match usize::try_from(number) {
        Ok(member) if member < size => Ok(Member(member)),
        _ => Err(no_such_member(number, size)),
    }
}

#[cold]
fn no_such_member(number: c_int, size: usize) -> Failure {
    Failure::misuse(format!("rank {number} is not in the communicator, which has ranks 0 to {}", size - 1))
}

/// Returns a slot of a communicator with that many.
#[inline]
pub(super) fn slot(mai: c_int, slots: c_int) -> Result<Slot, Failure> {
    if (0..slots).contains(&mai) { Ok(Slot(mai as usize)) } else { Err(no_such_slot(mai, slots)) }
}

#[cold]
fn no_such_slot(mai: c_int, slots: c_int) -> Failure {
    Failure::misuse(format!("mai is {mai}, and fmpl_init was called for 0 to {}", slots - 1))
}

/// Returns a slot, or any slot.
#[inline]
pub(super) fn slot_or_any(mai: c_int, slots: c_int) -> Result<Slot, Failure> {
    if mai == FMPL_TAG_ANY { Ok(Slot::ANY) } else { slot(mai, slots) }
}
