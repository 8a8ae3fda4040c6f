//! Short actions on memory that this process has mapped. They run while the lease is held.
#![allow(unsafe_code)]
//! Unsafe: atomics and copies on memory that the fabric has just reported as mapped.

use crate::engine::worker::Worker;
use crate::engine::{BufferView, CachePolicy};
use crate::fabric::{Atomic, Width};
use crate::os::copy;
use crate::queue::command::{Action, Command};
use crate::queue::inline_data::Inline;
use crate::queue::reduction::Reduction;
use crate::queue::reduction::blocks::{BLOCK, ReduceBlock, in_blocks};
use crate::segment::GlobalAddress;
use std::ptr::NonNull;

/// Most bytes that are copied under the lease. During a longer copy other ranks can run the queue.
pub(in crate::engine::command_queue) const INLINE_COPY_MAX: u64 = 8 * 1024;
/// Most bytes that are combined under the lease. No rank helps with a reduction, and running it without the lease takes
/// about 4 us more.
pub(in crate::engine::command_queue) const INLINE_REDUCE_MAX: u64 = 64 * 1024;

impl Worker {
    /// Runs the action if this rank may, it is short, and it needs no other rank. Returns true if it was run. If
    /// anything is unusual, such as an address that is wrong or not mapped yet, the command is run as a long action.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn try_short_action(&self, command: &Command) -> bool {
        self.commands().may_run(command)
            && match command.action {
                Action::Nothing => true,
                Action::Copy { from, to, len } => {
                    len <= INLINE_COPY_MAX
                        && (len == 0 || self.copy_across(from, to, len, self.caching(to, len)))
                }
                Action::Put { to, bytes } => self.put_inline(to, &bytes),
                Action::Atomic { at, atomic, result } => self.atomic_inline(at, atomic, result),
                Action::Call(_) => false,
                Action::Reduce { from, to, len, how } => {
                    len <= INLINE_REDUCE_MAX && self.reduce_inline(from, to, len, how)
                }
            }
    }

    #[inline(never)]
    fn put_inline(&self, to: GlobalAddress, bytes: &Inline) -> bool {
        let len = bytes.len() as u64;
        len == 0 || self.copy_out(BufferView::of(bytes.bytes()), 0, to, len, self.caching(to, len))
    }

    #[inline(never)]
    fn atomic_inline(&self, at: GlobalAddress, atomic: Atomic, result: GlobalAddress) -> bool {
        let Some(word) = self.fabric().word(at, atomic.width) else { return false };
        if !result.is_null() && self.fabric().mapped(result, atomic.width.bytes()).is_none() {
            return false;
        }
        // SAFETY: the fabric has just returned this word.
        let before = unsafe { atomic.apply(word) }.to_le_bytes();
        result.is_null() || {
            let before = &before[..atomic.width.bytes() as usize];
            // Mapped memory stays mapped. If it was freed meanwhile, no rank reads the result.
            self.copy_out(BufferView::of(before), 0, result, before.len() as u64, CachePolicy::Cached);
            true
        }
    }

    #[inline(never)]
    pub(in crate::engine::command_queue) fn reduce_inline(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        how: Reduction,
    ) -> bool {
        if !len.is_multiple_of(how.bytes()) {
            return false;
        }
        let (Some(from), Some(to)) = (self.fabric().mapped(from, len), self.fabric().mapped(to, len)) else {
            return len == 0;
        };
        // SAFETY: memory of the job that was just found mapped, and stays mapped. If it was freed meanwhile, no rank
        // reads it.
        unsafe { self.reduce_between(from, to, len as usize, how) }
    }

    /// Combines the values at `from` into those at `to`; `len` is a multiple of the size of a value. Returns false if
    /// this rank does not know the operator, or if a value is larger than the block on the stack.
    ///
    /// # Safety
    /// `len` bytes are mapped at both addresses.
    pub(in crate::engine::command_queue) unsafe fn reduce_between(
        &self,
        from: NonNull<u8>,
        to: NonNull<u8>,
        len: usize,
        how: Reduction,
    ) -> bool {
        let range = (from.as_ptr().cast_const(), to.as_ptr(), len);
        // SAFETY: the caller promises `len` bytes at both addresses, and `in_blocks` passes parts of them. Other ranks
        // may write the bytes meanwhile, if the program is wrong.
        unsafe { in_blocks(range, how.bytes() as usize, |ours, theirs| self.combine_from(how, ours, theirs)) }
    }

    /// Combines at most a block of values with those at `from`. A user-defined operator gets a slice, which no rank may
    /// write meanwhile, so it gets a copy. Returns false if this rank does not know the operator.
    ///
    /// # Safety
    /// `into.len()` bytes at `from` are readable.
    unsafe fn combine_from(&self, how: Reduction, into: &mut [u8], from: *const u8) -> bool {
        if how.operator().is_none() {
            // SAFETY: the caller promises `into.len()` readable bytes at `from`.
            unsafe { how.combine_from(into, from) };
            return true;
        }
        let mut theirs = ReduceBlock([0; BLOCK]);
        let theirs = &mut theirs.0[..into.len()];
        // SAFETY: the caller promises `into.len()` readable bytes at `from`, and `theirs` is as long.
        unsafe { copy::copy(from, theirs.as_mut_ptr(), theirs.len()) };
        self.operators().combine(how, into, theirs, self.log())
    }
}

/// Bytes of the widest word of an atomic.
pub(in crate::engine::command_queue) const WORD: usize = Width::W8.bytes() as usize;
