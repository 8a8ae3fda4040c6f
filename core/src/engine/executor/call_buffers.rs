//! What a call lends to its execution: its buffers, and how it combines values.
#![allow(unsafe_code)]
//! Unsafe: values of others are read where they lie, in job memory that stays mapped while the machine lives. Who
//! raised the signal that was waited for leaves them as they are until this rank raises its own.

use super::ResolvedOperand;
use crate::engine::sync::revocable_buffer::BufferView;
use crate::os::copy;
use crate::queue::reduction::Reduction;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes that are combined in one go, on the stack.
pub const COMBINED_MAX: usize = 4096;

/// How a call combines values.
#[derive(Clone, Copy)]
pub enum CombineWith<'l> {
    /// Not.
    Not,
    /// As everybody knows: values of others are read where they lie.
    Known(Reduction),
    /// The left ones become left with right. Values of others are copied first: nobody may change them meanwhile.
    By(&'l dyn Fn(&mut [u8], &[u8])),
}

/// What the call lends, and how it combines values.
pub struct CallBuffers<'l> {
    /// Its buffers.
    pub buffers: [BufferView<'l>; 2],
    /// How it combines.
    pub how: CombineWith<'l>,
    /// Bytes of a value, [`COMBINED_MAX`] at most.
    pub value_bytes: usize,
}

/// Values on the stack, where any type may lie.
#[repr(align(64))]
struct CombineBlock([MaybeUninit<u8>; COMBINED_MAX]);

impl<'l> CallBuffers<'l> {
    /// Nothing.
    pub fn nothing() -> CallBuffers<'l> {
        CallBuffers::read(&[])
    }

    /// Values that are given.
    pub fn read(values: &'l [u8]) -> CallBuffers<'l> {
        CallBuffers::between(values, &mut [])
    }

    /// Values that are only moved: given, or gotten there.
    pub fn moved(values: &'l mut [u8], is_given: bool) -> CallBuffers<'l> {
        if is_given { CallBuffers::read(values) } else { CallBuffers::combined(values, 1, CombineWith::Not) }
    }

    /// Values that are given, and others that are gotten.
    pub fn between(values: &'l [u8], result: &'l mut [u8]) -> CallBuffers<'l> {
        let buffers = [BufferView::of(values), BufferView::of_mut(result)];
        CallBuffers { buffers, how: CombineWith::Not, value_bytes: 1 }
    }

    /// Values of so many bytes each, which become what all come to.
    pub fn combined(values: &'l mut [u8], value_bytes: usize, how: CombineWith<'l>) -> CallBuffers<'l> {
        CallBuffers { buffers: [BufferView::of_mut(values), BufferView::of_mut(&mut [])], how, value_bytes }
    }

    /// The same with a piece of the first buffer.
    pub fn piece(&self, piece: Range<usize>) -> CallBuffers<'_> {
        let [values, result] = self.buffers;
        CallBuffers { buffers: [values.piece(piece), result], ..*self }
    }

    /// Where that is.
    #[inline(always)]
    pub(super) fn place(&self, place: ResolvedOperand, len: usize) -> *const u8 {
        match place {
            ResolvedOperand::Mapped(at) => at.as_ptr(),
            ResolvedOperand::CallBuffers(buffer, at) => self.buffers[buffer].part(at, len as u64),
        }
    }

    /// Bytes of a buffer that are read.
    pub(super) fn own(&self, buffer: usize, at: u64, len: usize) -> &[u8] {
        // SAFETY: bytes that the caller lends, and nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.buffers[buffer].part(at, len as u64), len) }
    }

    /// Bytes of a buffer that are written.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // the caller lends them for that, and steps are run one after the other
    pub(super) fn own_mut(&self, buffer: usize, at: u64, len: usize) -> &mut [u8] {
        // SAFETY: bytes that the caller lends for writing, and nobody else has.
        unsafe { std::slice::from_raw_parts_mut(self.buffers[buffer].part_mut(at, len as u64), len) }
    }

    /// Combines what lies `from` there on, in memory that others may write, with as many values.
    #[inline]
    pub(super) fn combine(&self, from: *const u8, into: &mut [u8], in_front: bool) {
        match self.how {
            CombineWith::Not => {}
            // SAFETY: as many bytes as `into` has lie there.
            CombineWith::Known(how) => unsafe { how.with_incoming_first(in_front).combine_from(into, from) },
            CombineWith::By(combine) => self.combine_blocks(combine, from, into, in_front),
        }
    }

    fn combine_blocks(
        &self,
        combine: &dyn Fn(&mut [u8], &[u8]),
        from: *const u8,
        into: &mut [u8],
        in_front: bool,
    ) {
        let mut block = CombineBlock([MaybeUninit::uninit(); COMBINED_MAX]);
        let most = COMBINED_MAX / self.value_bytes * self.value_bytes;
        let mut at = 0;
        for ours in into.chunks_mut(most) {
            let place: *mut u8 = block.0.as_mut_ptr().cast();
            // SAFETY: as many bytes as `into` has lie there, and a chunk of them fits the block; then they are written.
            let theirs = unsafe {
                copy::copy(from.add(at), place, ours.len());
                std::slice::from_raw_parts_mut(place, ours.len())
            };
            if in_front {
                combine(theirs, ours);
                ours.copy_from_slice(theirs);
            } else {
                combine(ours, theirs);
            }
            at += ours.len();
        }
    }
}
