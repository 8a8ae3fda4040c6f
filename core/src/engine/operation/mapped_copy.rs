//! Copies from and to job memory that this process has mapped, without a call of the fabric.
#![allow(unsafe_code)]
//! Unsafe: copies between bytes of a `BufferView` and memory that the fabric has just returned.

use crate::base::Cause;
use crate::engine::operation::strided::Way;
use crate::engine::sync::revocable_buffer::{BufferView, blocks_span};
use crate::engine::sync::strided_view::{BlockPairs, StrideLayout, StridedView};
use crate::engine::worker::Worker;
use crate::os::copy;
use crate::segment::GlobalAddress;

/// How a copy treats the processor's caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CachePolicy {
    /// Like an ordinary copy.
    Cached,
    /// For another processor to read next: through the caches or past them, whichever is faster
    /// (`os/memory/store_policy.rs`).
    Adaptive,
    /// Past the caches, to memory: the destination is not fetched before, and takes no room in the caches.
    Streamed,
}

impl CachePolicy {
    /// Returns the policy for `len` bytes that are copied in parts.
    pub fn of(len: u64) -> CachePolicy {
        if len < copy::HUGE as u64 { CachePolicy::Cached } else { CachePolicy::Streamed }
    }
}

impl Worker {
    /// Copies `len` bytes of `from`, beginning at `at`, to job memory. A rank that sees a signal
    /// raised after that sees all the bytes. Returns false, and does nothing, if this process
    /// cannot map the memory.
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
        // SAFETY: `part` has checked that the source lies in the view; the fabric has just found the destination
        // mapped.
        unsafe { self.copy_bytes(from, to.as_ptr(), len as usize, caching) };
        true
    }

    /// Copies job memory into `len` bytes of `to`, beginning at `at`. Returns false, and does nothing, if this process
    /// cannot map the memory.
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
        // SAFETY: the fabric has just found the source mapped; `part_mut` has checked that the destination lies in the
        // view.
        unsafe { self.copy_bytes(from.as_ptr(), to, len as usize, caching) };
        true
    }

    /// Copies `len` packed bytes of blocks, beginning at `at`, to job memory. Otherwise like [`Worker::copy_out`].
    pub fn pack_out(&self, from: StridedView<'_>, at: u64, to: GlobalAddress, len: u64) -> bool {
        let Some(to) = self.fabric().mapped(to, len) else { return false };
        let (layout, mut to) = (from.layout(), to.as_ptr());
        for run in layout.runs(at as usize, len as usize) {
            let span = blocks_span(run.block, layout.stride(), run.count);
            let from = from.span().part(run.at as u64, span);
            // SAFETY: `part` has checked that the blocks lie in the view; the fabric has just found `len` bytes mapped, of
            // which the runs together have no more.
            unsafe {
                copy::blocks((from, layout.stride()), (to, run.block), run.block, run.count);
                to = to.add(run.block * run.count);
            }
        }
        copy::fence_after_copy(len as usize);
        true
    }

    /// Copies job memory into `len` packed bytes of blocks, beginning at `at`. Otherwise like [`Worker::copy_in`].
    pub fn unpack_in(&self, from: GlobalAddress, to: StridedView<'_>, at: u64, len: u64) -> bool {
        let Some(from) = self.fabric().mapped(from, len) else { return false };
        let (layout, mut from) = (to.layout(), from.as_ptr().cast_const());
        for run in layout.runs(at as usize, len as usize) {
            let span = blocks_span(run.block, layout.stride(), run.count);
            let to = to.span().part_mut(run.at as u64, span);
            // SAFETY: the fabric has just found `len` bytes mapped, of which the runs together have no more; `part_mut`
            // has checked that the blocks lie in the view.
            unsafe {
                copy::blocks((from, run.block), (to, layout.stride()), run.block, run.count);
                from = from.add(run.block * run.count);
            }
        }
        copy::fence_after_copy(len as usize);
        true
    }

    /// Copies between blocks of this rank's memory and blocks of global memory that begin at `at`. Returns false, and does
    /// nothing, if this process cannot map that memory.
    pub(super) fn copy_mapped_blocks(
        &self,
        way: Way,
        at: GlobalAddress,
        layout: StrideLayout,
        own: StridedView<'_>,
    ) -> bool {
        let Some(there) = self.fabric().mapped(at, layout.span() as u64) else { return false };
        for BlockPairs { places: [there_at, own_at], strides: [there_stride, own_stride], block, count } in
            layout.pairs(own.layout())
        {
            let span = blocks_span(block, own_stride, count);
            // SAFETY: the fabric has just found all blocks of `layout` mapped; `part` and `part_mut` have checked that the
            // others lie in the view.
            unsafe {
                let there = (there.as_ptr().add(there_at), there_stride);
                match way {
                    Way::Put => {
                        let from = own.span().part(own_at as u64, span);
                        copy::blocks((from, own_stride), there, block, count);
                    }
                    Way::Get => {
                        let to = own.span().part_mut(own_at as u64, span);
                        copy::blocks((there.0.cast_const(), there.1), (to, own_stride), block, count);
                    }
                }
            }
        }
        copy::fence_after_copy(layout.len());
        true
    }

    /// Copies job memory to job memory. Returns false, and does nothing, unless this process can
    /// map both ranges.
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
        // SAFETY: the fabric has just returned both ranges of job memory.
        unsafe { self.copy_bytes(from.as_ptr(), to.as_ptr(), len as usize, caching) };
        true
    }

    /// Returns the cache policy for a copy by a command: bytes for another rank are read by its processor next.
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
        // SAFETY: the caller promises `len` mapped bytes at both addresses, and that streamed ranges do not overlap.
        unsafe {
            match caching {
                CachePolicy::Cached => copy::copy(from, to, len),
                CachePolicy::Adaptive => self.store_policy().copy(from, to, len),
                CachePolicy::Streamed => copy::stream(from, to, len),
            }
        }
        copy::fence_after_copy(len);
    }

    /// Returns true if this process can map the job memory; maps it if needed.
    pub fn can_map(&self, at: GlobalAddress, len: u64) -> bool {
        let is_mapped = || self.fabric().mapped(at, len).is_some();
        is_mapped() || self.fabric().check(at, len).is_ok() && is_mapped()
    }

    /// Checks that an access of job memory is possible.
    #[inline]
    pub fn check_access(&self, at: GlobalAddress, len: u64) -> Result<(), Cause> {
        if self.fabric().mapped(at, len).is_some() { Ok(()) } else { self.fabric().check(at, len) }
    }
}
