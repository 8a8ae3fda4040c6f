//! The memory that a resolved step reads or writes.
#![allow(unsafe_code)]
//! Unsafe: pointers to job memory, which the fabric keeps mapped while it lives.

use std::ptr::NonNull;

/// Job memory that this process has mapped, or a buffer of the call by its number and an offset in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum ResolvedOperand {
    Mapped(NonNull<u8>),
    CallBuffers(usize, u64),
}

// SAFETY: a pointer to shared memory that all threads of the process may use, and that stays mapped while the fabric
// lives.
unsafe impl Send for ResolvedOperand {}
// SAFETY: a pointer to shared memory that all threads of the process may use, and that stays mapped while the fabric
// lives.
unsafe impl Sync for ResolvedOperand {}
