//! Deeds that are done while the lease is held: short ones, on memory that this process has mapped.
#![allow(unsafe_code)]
//! Unsafe: atomics and copies on memory that the fabric has just named.

use crate::engine::worker::Worker;
use crate::engine::{BufferView, CachePolicy};
use crate::fabric::{Atomic, Width};
use crate::os::copy;
use crate::queue::command::{Action, Command};
use crate::queue::inline_data::Inline;
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use std::ptr::NonNull;

/// Most bytes that are copied under the lease: longer copies let others at the queue meanwhile.
const AT_ONCE: u64 = 8 * 1024;
/// Most bytes that are combined under it: nobody helps with a reduction, and the long way takes some 4 us more.
pub(in crate::engine::command_queue) const COMBINED_AT_ONCE: u64 = 64 * 1024;
/// Bytes that are reduced in one go, on the stack.
pub(in crate::engine::command_queue) const BLOCK: usize = 1024;

impl Worker {
    /// Does what the command says, if this rank may, and it is quick and needs nobody else; whether it did. Where
    /// anything is unusual, an address not mapped yet or wrong, the command goes the long way.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn try_inline(&self, command: &Command) -> bool {
        self.may_run(command)
            && match command.deed {
                Action::Nothing => true,
                Action::Copy { from, to, len } => {
                    len <= AT_ONCE && (len == 0 || self.copy_across(from, to, len, self.caching(to, len)))
                }
                Action::Put { to, bytes } => self.put_inline(to, &bytes),
                Action::Atomic { at, atomic, result } => self.atomic_inline(at, atomic, result),
                Action::Call(_) => false,
                Action::Reduce { from, to, len, how } => {
                    len <= COMBINED_AT_ONCE && self.reduce_inline(from, to, len, how)
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
        // SAFETY: just found.
        let before = unsafe { atomic.apply(word) }.to_le_bytes();
        result.is_null() || {
            let before = &before[..atomic.width.bytes() as usize];
            // EventKind was mapped stays so; freed meanwhile, nobody reads it.
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
        // SAFETY: memory of the job that was just found mapped, and stays so; freed meanwhile, nobody reads it.
        unsafe { self.reduce_between(from, to, len as usize, how) }
    }

    /// The same between places of whole values. False: the operator is not there, or a value is more than is kept on
    /// the stack.
    ///
    /// # Safety
    /// As many bytes as that are mapped at both.
    pub(in crate::engine::command_queue) unsafe fn reduce_between(
        &self,
        from: NonNull<u8>,
        to: NonNull<u8>,
        len: usize,
        how: Reduction,
    ) -> bool {
        let value = how.bytes() as usize;
        let most = BLOCK / value * value;
        if most == 0 {
            return false;
        }
        let mut ours = ReduceBlock([0; BLOCK]);
        for at in (0..len).step_by(most) {
            let size = (len - at).min(most);
            let ours = &mut ours.0[..size];
            // SAFETY: within both places. Others may write them meanwhile, if the program is wrong.
            let is_done = unsafe {
                let (from, to) = (from.add(at).as_ptr(), to.add(at).as_ptr());
                copy::copy(to, ours.as_mut_ptr(), size);
                self.combine_from(how, ours, from) && {
                    copy::copy(ours.as_ptr(), to, size);
                    true
                }
            };
            if !is_done {
                return false;
            }
        }
        true
    }

    /// Combines values with those that lie there, a block of them at most. An operator gets these as a slice, which
    /// nobody may write meanwhile: a copy. False: it is not there.
    ///
    /// # Safety
    /// As many bytes as `into` has can be read there.
    unsafe fn combine_from(&self, how: Reduction, into: &mut [u8], from: *const u8) -> bool {
        if how.operator().is_none() {
            // SAFETY: the caller's promise.
            unsafe { how.combine_from(into, from) };
            return true;
        }
        let mut theirs = ReduceBlock([0; BLOCK]);
        let theirs = &mut theirs.0[..into.len()];
        // SAFETY: as above.
        unsafe { copy::copy(from, theirs.as_mut_ptr(), theirs.len()) };
        self.combine(how, into, theirs)
    }
}

/// Values on the stack, where any type may lie.
#[repr(align(64))]
struct ReduceBlock([u8; BLOCK]);

/// Bytes of the widest word.
pub(in crate::engine::command_queue) const WORD: usize = Width::W8.bytes() as usize;
