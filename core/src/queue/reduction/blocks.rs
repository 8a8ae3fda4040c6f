//! Combining values in memory that other ranks may write meanwhile: in blocks, on the stack.
#![allow(unsafe_code)]
//! Unsafe: copies between such memory and a block.

use crate::os::copy;

/// Bytes that are combined at a time, on the stack.
pub const BLOCK: usize = 1024;

/// A block of values on the stack, aligned for any type.
#[repr(align(64))]
pub struct ReduceBlock(pub [u8; BLOCK]);

/// Combines `len` bytes of values of `value` bytes at `from` into those at `to`, in blocks that are copied to the stack
/// and back, because other ranks may write the memory at `to` meanwhile. Returns false if a value is larger than a
/// block, or `combine` returns false.
///
/// # Safety
/// `len` bytes at both addresses are accessible.
pub unsafe fn in_blocks(
    (from, to, len): (*const u8, *mut u8, usize),
    value: usize,
    mut combine: impl FnMut(&mut [u8], *const u8) -> bool,
) -> bool {
    let most = BLOCK / value * value;
    let mut ours = ReduceBlock([0; BLOCK]);
    most > 0
        && (0..len).step_by(most).all(|at| {
            let size = (len - at).min(most);
            let ours = &mut ours.0[..size];
            // SAFETY: the caller promises `len` bytes at both addresses, and `at + size` is at most `len`; `ours` has
            // `size` bytes.
            unsafe {
                copy::copy(to.add(at), ours.as_mut_ptr(), size);
                combine(ours, from.add(at)) && {
                    copy::copy(ours.as_ptr(), to.add(at), size);
                    true
                }
            }
        })
}
