//! Copies from and to job memory that this process has mapped, without a call of the fabric.
#![allow(unsafe_code)]
//! Unsafe: copies between bytes in view and memory that the fabric has just named.

use crate::base::Cause;
use crate::engine::sync::revocable_buffer::BufferView;
use crate::engine::worker::Worker;
use crate::os::copy;
use crate::segment::GlobalAddress;

/// How a copy treats the processor's caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CachePolicy {
    /// As any copy.
    Cached,
    /// For another processor to read next: through them or past them, whichever is quicker (`os/store_policy.rs`).
    Adaptive,
    /// Past them, to memory: what is written is not fetched before, and takes no room.
    Streamed,
}

impl CachePolicy {
    /// For a part of `len` bytes that are copied in parts.
    pub fn of(len: u64) -> CachePolicy {
        if len < copy::HUGE as u64 { CachePolicy::Cached } else { CachePolicy::Streamed }
    }
}

impl Worker {
    /// Copies a part of `from`, which begins at `at`, to job memory. A signal that is raised after that tells of all of
    /// it. False if the memory is not in this process's reach: nothing was done.
    #[inline]
    pub fn copy_out(
        &self,
        from: BufferView<'_>,
        at: u64,
        to: GlobalAddress,
        len: u64,
        caching: CachePolicy,
    ) -> bool {
        let from = from.part(at, len);
        let Some(to) = self.fabric().mapped(to, len) else { return false };
        // SAFETY: inside the view, and memory of the job that was just found.
        unsafe { self.copy_bytes(from, to.as_ptr(), len as usize, caching) };
        true
    }

    /// Copies job memory into a part of `to`, which begins at `at`. False if the memory is not in this process's reach:
    /// nothing was done.
    #[inline]
    pub fn copy_in(
        &self,
        from: GlobalAddress,
        to: BufferView<'_>,
        at: u64,
        len: u64,
        caching: CachePolicy,
    ) -> bool {
        let to = to.part_mut(at, len);
        let Some(from) = self.fabric().mapped(from, len) else { return false };
        // SAFETY: as above.
        unsafe { self.copy_bytes(from.as_ptr(), to, len as usize, caching) };
        true
    }

    /// Copies job memory to job memory. False if either is not in this process's reach: nothing was done.
    #[inline]
    pub fn copy_across(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        caching: CachePolicy,
    ) -> bool {
        let (Some(from), Some(to)) = (self.fabric().mapped(from, len), self.fabric().mapped(to, len)) else {
            return false;
        };
        // SAFETY: memory of the job that was just found.
        unsafe { self.copy_bytes(from.as_ptr(), to.as_ptr(), len as usize, caching) };
        true
    }

    /// How a copy by a command treats the caches: what lands in another rank's memory is for its processor.
    pub(in crate::engine) fn caching(&self, to: GlobalAddress, len: u64) -> CachePolicy {
        match CachePolicy::of(len) {
            CachePolicy::Cached if to.rank() != self.rank() => CachePolicy::Adaptive,
            usual => usual,
        }
    }

    /// # Safety
    /// As for [`copy::copy`]; streamed ranges do not overlap.
    #[inline]
    unsafe fn copy_bytes(&self, from: *const u8, to: *mut u8, len: usize, caching: CachePolicy) {
        // SAFETY: the caller's promise.
        unsafe {
            match caching {
                CachePolicy::Cached => copy::copy(from, to, len),
                CachePolicy::Adaptive => self.outward().copy(from, to, len),
                CachePolicy::Streamed => copy::stream(from, to, len),
            }
        }
        copy::fence_after_bulk(len);
    }

    /// Whether job memory is in this process's reach; maps it if it can be.
    pub fn has_in_reach(&self, at: GlobalAddress, len: u64) -> bool {
        let is_mapped = || self.fabric().mapped(at, len).is_some();
        is_mapped() || self.fabric().check(at, len).is_ok() && is_mapped()
    }

    /// Whether an access of job memory is possible, and why not.
    #[inline]
    pub fn check_place(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        if self.fabric().mapped(at, len).is_some() { Ok(()) } else { self.fabric().check(at, len) }
    }
}
