//! A caller's buffer that is exposed to another rank, which copies from it or into it through the fabric.
#![allow(unsafe_code)]
//! Unsafe: pointers to an [`ExposedBuffer`] in job memory, which was resolved when the execution was made; and copies
//! between a buffer of this process and one that another rank exposes.
//!
//! The owner stores the address of its buffer before it raises the signal that lets the other rank access it. So a
//! rank that sees the signal finds the address. A call that succeeds ends after the other rank has signalled that it
//! is done. A call that an error or a panic ends early revokes its buffer: it clears the address, and then waits
//! while any user is counted. A user counts itself before it reads the address. Both execute a full fence in between,
//! so at least one of the two sees the other (`SYNC exposed`). When a user is no longer counted, the bytes that it
//! copied are visible (`SYNC exposed-end`).

use super::CallBuffers;
use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{Cause, Rank, planted, relaxed_if_planted};
use crate::engine::worker::Worker;
use std::ptr::NonNull;

/// The place in a rank's job memory by which the rank exposes a buffer to another one. All zero at first.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ExposedBuffer {
    /// The address of the buffer in the owner's process; 0: nothing is exposed.
    place: AtomicU64,
    /// The variant of the owner's call. A rank that uses another variant is in another call.
    variant: AtomicU64,
    /// Number of users.
    users: AtomicU64,
}

/// A use of an exposed buffer. An owner that revokes the buffer waits until this is dropped.
#[derive(Debug)]
pub struct ExposedAccess<'s> {
    buffer: &'s ExposedBuffer,
    place: u64,
}

/// Size of an [`ExposedBuffer`].
pub const EXPOSED_BYTES: u64 = size_of::<ExposedBuffer>() as u64;

impl ExposedBuffer {
    /// Creates the state in which nothing is exposed.
    pub fn nothing() -> ExposedBuffer {
        ExposedBuffer { place: AtomicU64::new(0), variant: AtomicU64::new(0), users: AtomicU64::new(0) }
    }

    /// Exposes the buffer at address `place`, for a call that uses `variant`. The caller tells the other rank
    /// afterwards, by a signal.
    #[inline]
    pub fn expose(&self, place: u64, variant: u64) {
        self.variant.store(variant, Ordering::Relaxed);
        self.place.store(place, Ordering::Relaxed);
    }

    /// Begins a use. Returns `None` if nothing is exposed, because the owner has revoked the buffer.
    pub fn enter(&self) -> Option<ExposedAccess<'_>> {
        self.users.fetch_add(1, Ordering::Relaxed);
        if !planted("exposed_user_fence") {
            fence(Ordering::SeqCst); // SYNC exposed
        }
        let access = ExposedAccess { buffer: self, place: self.place.load(Ordering::Relaxed) };
        (access.place != 0).then_some(access)
    }

    /// Revokes the buffer: a use that begins later finds nothing.
    pub fn revoke(&self) {
        self.place.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst); // SYNC exposed
    }

    /// Returns true if a use has not ended, or is about to find that the buffer was revoked.
    pub fn is_used(&self) -> bool {
        self.users.load(relaxed_if_planted("exposed_end_relaxed", Ordering::Acquire)) != 0 // SYNC exposed-end
    }
}

impl ExposedAccess<'_> {
    /// Returns the address of the buffer in the owner's process.
    pub fn place(&self) -> u64 {
        self.place
    }
}

impl Drop for ExposedAccess<'_> {
    fn drop(&mut self) {
        self.buffer.users.fetch_sub(1, Ordering::Release); // SYNC exposed-end
    }
}

/// The place by which this rank exposes a buffer, and the rank that uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExposureTarget {
    pub(super) word: NonNull<ExposedBuffer>,
    pub(super) to: Rank,
}

/// A range, from offset `at` on, of the buffer that rank `of` exposes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerBuffer {
    pub(super) word: NonNull<ExposedBuffer>,
    pub(super) of: Rank,
    pub(super) at: u64,
}

// SAFETY: a pointer to atomics in shared memory that stays mapped while the fabric lives.
unsafe impl Send for ExposureTarget {}
// SAFETY: a pointer to atomics in shared memory that stays mapped while the fabric lives.
unsafe impl Sync for ExposureTarget {}
// SAFETY: a pointer to atomics in shared memory that stays mapped while the fabric lives.
unsafe impl Send for PeerBuffer {}
// SAFETY: a pointer to atomics in shared memory that stays mapped while the fabric lives.
unsafe impl Sync for PeerBuffer {}

impl PeerBuffer {
    fn word(&self) -> &ExposedBuffer {
        // SAFETY: it points to atomics in job memory that stays mapped while the fabric lives.
        unsafe { self.word.as_ref() }
    }

    /// Copies from the exposed buffer, in a call that uses `variant`. Fails if the owner has revoked the buffer, if
    /// it is in another call, or if its process cannot be reached any more.
    pub(super) fn copy_from(&self, worker: &Worker, variant: u64, into: &mut [u8]) -> Result<(), Cause> {
        // SAFETY: `into` is a mutable slice, so its bytes may be written.
        unsafe { self.copy(worker, variant, (into.as_mut_ptr(), into.len()), false) }
    }

    /// Copies into the exposed buffer. Fails like [`PeerBuffer::copy_from`].
    pub(super) fn copy_into(&self, worker: &Worker, variant: u64, from: &[u8]) -> Result<(), Cause> {
        // SAFETY: `from` is a slice, so its bytes may be read; a copy with `is_into` only reads them.
        unsafe { self.copy(worker, variant, (from.as_ptr().cast_mut(), from.len()), true) }
    }

    /// Copies `len` bytes at `here` into the exposed buffer if `is_into`, else from there.
    ///
    /// # Safety
    /// `len` bytes at `here` may be read if `is_into`, else written.
    unsafe fn copy(
        &self,
        worker: &Worker,
        variant: u64,
        (here, len): (*mut u8, usize),
        is_into: bool,
    ) -> Result<(), Cause> {
        let access = self.word().enter();
        // Checked before the address: an owner that found the difference first has revoked its buffer, but left the
        // variant.
        if self.word().variant.load(Ordering::Relaxed) != variant {
            let text = format!("rank {} is in the same call with another root", self.of);
            return Err(Cause::mismatch(Some(self.of.index()), text));
        }
        let revoked = || {
            Cause::mismatch(
                Some(self.of.index()),
                format!("rank {} has ended the call with an error", self.of),
            )
        };
        let access = access.ok_or_else(revoked)?;
        // SAFETY: the caller promises `len` bytes at `here` that are valid for the direction; the other rank keeps its
        // buffer valid while `access` counts as a use.
        unsafe { worker.fabric().copy_exposed(self.of, access.place() + self.at, here, len, is_into) }
    }
}

/// A buffer that this rank exposes while a call lasts. Revoked on drop, unless the call has ended well.
pub(super) struct Exposure<'m> {
    worker: &'m Worker,
    target: ExposureTarget,
    is_over: bool,
}

impl<'m> Exposure<'m> {
    /// Exposes the first buffer that a call lends, for a call that uses `variant`.
    pub(super) fn of(
        worker: &'m Worker,
        target: ExposureTarget,
        variant: u64,
        call_buffers: &CallBuffers<'_>,
    ) -> Exposure<'m> {
        let exposure = Exposure { worker, target, is_over: false };
        exposure.word().expose(call_buffers.buffers[0].part(0, 0) as u64, variant);
        exposure
    }

    fn word(&self) -> &ExposedBuffer {
        // SAFETY: it points to atomics in job memory that stays mapped while the fabric lives.
        unsafe { self.target.word.as_ref() }
    }

    /// Ends the exposure of a call that has succeeded: the other rank is done with the buffer.
    pub(super) fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Exposure<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.word().revoke();
        // A rank whose process is gone uses nothing any more.
        while self.word().is_used() && !self.worker.is_process_gone(self.target.to) {
            std::thread::yield_now();
        }
    }
}
