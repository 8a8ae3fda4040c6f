//! Memory of a call's own that it shows to another rank, which copies from it or into it by way of the fabric.
#![allow(unsafe_code)]
//! Unsafe: a word of job memory that the fabric named when the execution was made.
//!
//! The owner writes down where its bytes lie before it raises the signal by which the other is let at them, so who has
//! seen that finds them. A call that ends well does so when the other has said that it is done. One that ends in the
//! midst, by an error or a panic, takes its bytes back: it wipes the place, and then waits for as long as somebody is
//! counted as using them. A user counts itself before it looks for the place. Both have a full fence between, so one of
//! the two sees the other (`SYNC exposed`); what the user has copied is there when it is no longer counted (`SYNC
//! exposed-end`).

use super::CallBuffers;
use crate::base::sync::{AtomicU64, Ordering, fence};
use crate::base::{Cause, Rank, planted, relaxed_if_planted};
use crate::engine::worker::Worker;
use std::ptr::NonNull;

/// Where a rank shows bytes to another one: in its job memory, zeroed at first.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ExposedBuffer {
    /// The address in its process; 0: nowhere.
    place: AtomicU64,
    /// Which way the call goes: who goes another one is in another call.
    variant: AtomicU64,
    /// How many are using them.
    users: AtomicU64,
}

/// Somebody who uses what is shown: the owner waits for it before it takes that back.
#[derive(Debug)]
pub struct ExposedAccess<'s> {
    buffer: &'s ExposedBuffer,
    place: u64,
}

/// Bytes of a [`ExposedBuffer`].
pub const EXPOSED_BYTES: u64 = size_of::<ExposedBuffer>() as u64;

impl ExposedBuffer {
    /// Nothing is shown yet.
    pub fn nothing() -> ExposedBuffer {
        ExposedBuffer { place: AtomicU64::new(0), variant: AtomicU64::new(0), users: AtomicU64::new(0) }
    }

    /// Bytes lie there from now on, of a call that goes that way. Who is to use them is told after that.
    #[inline]
    pub fn expose(&self, place: u64, variant: u64) {
        self.variant.store(variant, Ordering::Relaxed);
        self.place.store(place, Ordering::Relaxed);
    }

    /// Uses them. None: they were taken back.
    pub fn enter(&self) -> Option<ExposedAccess<'_>> {
        self.users.fetch_add(1, Ordering::Relaxed);
        if !planted("exposed_user_fence") {
            fence(Ordering::SeqCst); // SYNC exposed
        }
        let access = ExposedAccess { buffer: self, place: self.place.load(Ordering::Relaxed) };
        (access.place != 0).then_some(access)
    }

    /// Takes them back: whoever comes now finds nothing.
    pub fn revoke(&self) {
        self.place.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst); // SYNC exposed
    }

    /// Whether somebody uses them, or is about to find that they are not there.
    pub fn is_used(&self) -> bool {
        self.users.load(relaxed_if_planted("exposed_end_relaxed", Ordering::Acquire)) != 0 // SYNC exposed-end
    }
}

impl ExposedAccess<'_> {
    /// Where they lie in their process.
    pub fn place(&self) -> u64 {
        self.place
    }
}

impl Drop for ExposedAccess<'_> {
    fn drop(&mut self) {
        self.buffer.users.fetch_sub(1, Ordering::Release); // SYNC exposed-end
    }
}

/// What a rank shows of its own, and to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExposureTarget {
    pub(super) word: NonNull<ExposedBuffer>,
    pub(super) to: Rank,
}

/// What another rank shows, from some byte on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerBuffer {
    pub(super) word: NonNull<ExposedBuffer>,
    pub(super) of: Rank,
    pub(super) at: u64,
}

// SAFETY: a pointer to atomics in shared memory that is mapped while the machine lives.
unsafe impl Send for ExposureTarget {}
// SAFETY: as above.
unsafe impl Sync for ExposureTarget {}
// SAFETY: as above.
unsafe impl Send for PeerBuffer {}
// SAFETY: as above.
unsafe impl Sync for PeerBuffer {}

impl PeerBuffer {
    fn word(&self) -> &ExposedBuffer {
        // SAFETY: a word of job memory that is mapped while the machine lives.
        unsafe { self.word.as_ref() }
    }

    /// Copies from there in a call that goes that way. Error: it was taken back, or belongs to another call, or cannot
    /// be reached any more.
    pub(super) fn copy_from(&self, worker: &Worker, variant: u64, into: &mut [u8]) -> Result<(), Cause> {
        // SAFETY: bytes of ours, which we may write.
        unsafe { self.copy(worker, variant, (into.as_mut_ptr(), into.len()), false) }
    }

    /// Copies to there. Errors as above.
    pub(super) fn copy_into(&self, worker: &Worker, variant: u64, from: &[u8]) -> Result<(), Cause> {
        // SAFETY: bytes of ours, which are only read.
        unsafe { self.copy(worker, variant, (from.as_ptr().cast_mut(), from.len()), true) }
    }

    /// # Safety
    /// As many bytes at `here` may be read, or written.
    unsafe fn copy(
        &self,
        worker: &Worker,
        variant: u64,
        (here, len): (*mut u8, usize),
        is_into: bool,
    ) -> Result<(), Cause> {
        let access = self.word().enter();
        // One that has found this out before has taken its bytes back, and left the way as it was.
        if self.word().variant.load(Ordering::Relaxed) != variant {
            let text = format!("rank {} is in the same call with another root", self.of);
            return Err(Cause::Argument(text));
        }
        let revoked = || Cause::Argument(format!("rank {} has ended the call with an error", self.of));
        let access = access.ok_or_else(revoked)?;
        // SAFETY: the caller's promise; the other rank keeps its bytes while it sees that they are used.
        unsafe { worker.fabric().copy_exposed(self.of, access.place() + self.at, here, len, is_into) }
    }
}

/// Bytes that are shown for as long as a call lasts.
pub(super) struct Exposure<'m> {
    worker: &'m Worker,
    target: ExposureTarget,
    is_over: bool,
}

impl<'m> Exposure<'m> {
    /// Shows what a call lends first, which goes that way.
    pub(super) fn of(
        worker: &'m Worker,
        target: ExposureTarget,
        variant: u64,
        lent: &CallBuffers<'_>,
    ) -> Exposure<'m> {
        let exposure = Exposure { worker, target, is_over: false };
        exposure.word().expose(lent.buffers[0].part(0, 0) as u64, variant);
        exposure
    }

    fn word(&self) -> &ExposedBuffer {
        // SAFETY: a word of job memory that is mapped while the machine lives.
        unsafe { self.target.word.as_ref() }
    }

    /// The call has ended well: the other has done with them.
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
        // One whose process is gone is using nothing any more.
        while self.word().is_used() && !self.worker.is_process_gone(self.target.to) {
            std::thread::yield_now();
        }
    }
}
