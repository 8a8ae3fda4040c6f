//! Deeds that are done while the lease is held: short ones, on memory that this process has mapped.
#![allow(unsafe_code)]
//! Unsafe: atomics on words that the fabric has just named.

use crate::engine::machine::Machine;
use crate::engine::{Caching, View};
use crate::fabric::{Atomic, Width};
use crate::queue::command::{Command, Deed};
use crate::queue::inline::Inline;
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;

/// Most bytes that are copied under the lease: longer copies let others at the queue meanwhile.
const AT_ONCE: u64 = 8 * 1024;
/// Bytes that are reduced in one go, on the stack.
pub(super) const BLOCK: usize = 1024;

impl Machine {
    /// Does what the command says, if this rank may, and it is quick and needs nobody else; whether it did. Where
    /// anything is unusual, an address not mapped yet or wrong, the command goes the long way.
    #[inline(always)]
    pub(super) fn try_at_once(&self, command: &Command) -> bool {
        self.may_run(command)
            && match command.deed {
                Deed::Nothing => true,
                Deed::Copy { from, to, len } => {
                    len <= AT_ONCE && (len == 0 || self.copy_across(from, to, len, self.caching(to, len)))
                }
                Deed::Put { to, bytes } => self.put_at_once(to, &bytes),
                Deed::Atomic { at, atomic, result } => self.change_at_once(at, atomic, result),
                Deed::Call(_) => false,
                Deed::Reduce { from, to, len, how } => {
                    len <= AT_ONCE && self.reduce_at_once(from, to, len, how)
                }
            }
    }

    #[inline(never)]
    fn put_at_once(&self, to: GlobalAddress, bytes: &Inline) -> bool {
        let len = bytes.len() as u64;
        len == 0 || self.copy_out(View::of(bytes.bytes()), 0, to, len, self.caching(to, len))
    }

    #[inline(never)]
    fn change_at_once(&self, at: GlobalAddress, atomic: Atomic, result: GlobalAddress) -> bool {
        let Some(word) = self.fabric().word(at, atomic.width) else { return false };
        if !result.is_null() && self.fabric().mapped(result, atomic.width.bytes()).is_none() {
            return false;
        }
        // SAFETY: just found.
        let before = unsafe { atomic.apply(word) }.to_le_bytes();
        result.is_null() || {
            let before = &before[..atomic.width.bytes() as usize];
            // What was mapped stays so; freed meanwhile, nobody reads it.
            self.copy_out(View::of(before), 0, result, before.len() as u64, Caching::Cached);
            true
        }
    }

    #[inline(never)]
    pub(super) fn reduce_at_once(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        how: Reduction,
    ) -> bool {
        if !len.is_multiple_of(how.bytes()) {
            return false;
        }
        if len > 0 && (self.fabric().mapped(from, len).is_none() || self.fabric().mapped(to, len).is_none()) {
            return false;
        }
        let block = BLOCK as u64 / how.bytes() * how.bytes();
        if block == 0 {
            return false; // one value is more than is kept on the stack
        }
        let (mut theirs, mut ours) = (Block([0; BLOCK]), Block([0; BLOCK]));
        for at in (0..len).step_by(block as usize) {
            let size = (len - at).min(block) as usize;
            let (theirs, ours) = (&mut theirs.0[..size], &mut ours.0[..size]);
            let copied = self.copy_in(from.add(at), View::of_mut(theirs), 0, size as u64, Caching::Cached)
                && self.copy_in(to.add(at), View::of_mut(ours), 0, size as u64, Caching::Cached);
            if !self.combine(how, ours, theirs) {
                return false;
            }
            if !copied || !self.copy_out(View::of(ours), 0, to.add(at), size as u64, Caching::Cached) {
                return true; // freed in the middle: nobody reads it
            }
        }
        true
    }
}

/// Values on the stack, where any type may lie.
#[repr(align(64))]
struct Block([u8; BLOCK]);

/// Bytes of the widest word.
pub(super) const WORD: usize = Width::W8.bytes() as usize;
