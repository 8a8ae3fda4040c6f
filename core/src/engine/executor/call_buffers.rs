//! What a call lends to its execution: its buffers, and the operation that combines values.
#![allow(unsafe_code)]
//! Unsafe: values of others are read in place, in job memory that stays mapped while the fabric lives. The rank that
//! raised the awaited signal leaves them unchanged until this rank raises its own. The caller lends its buffers for
//! as long as the [`CallBuffers`] live, and steps that use them run one after the other.

use super::operand::ResolvedOperand;
use crate::engine::sync::revocable_buffer::BufferView;
use crate::os::copy;
use crate::queue::reduction::{BorrowedOperation, Operator, ReduceOperation};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Most bytes that are combined at a time in a block on the stack.
pub const COMBINED_MAX: usize = 4096;

/// The buffers that a call lends, and how it combines values.
pub struct CallBuffers<'l> {
    /// The buffers. Steps name them by their index.
    pub buffers: [BufferView<'l>; 2],
    /// How values are combined. A value of the program's own operation has at most [`COMBINED_MAX`] bytes.
    pub operation: BorrowedOperation<'l>,
}

/// A block on the stack, aligned for values of any type.
#[repr(align(64))]
struct CombineBlock([MaybeUninit<u8>; COMBINED_MAX]);

impl<'l> CallBuffers<'l> {
    /// Lends nothing.
    pub fn nothing() -> CallBuffers<'l> {
        CallBuffers::read(&[])
    }

    /// Lends values that the call reads.
    pub fn read(values: &'l [u8]) -> CallBuffers<'l> {
        CallBuffers::between(values, &mut [])
    }

    /// Lends values that are moved without combining: the call reads them if `is_given`, else it writes them.
    pub fn moved(values: &'l mut [u8], is_given: bool) -> CallBuffers<'l> {
        match is_given {
            true => CallBuffers::read(values),
            false => CallBuffers::combined(values, ReduceOperation::Nothing),
        }
    }

    /// Lends values that the call reads, and a buffer for its result.
    pub fn between(values: &'l [u8], result: &'l mut [u8]) -> CallBuffers<'l> {
        let buffers = [BufferView::of(values), BufferView::of_mut(result)];
        CallBuffers { buffers, operation: ReduceOperation::Nothing }
    }

    /// Lends values that the call reads and replaces by the result.
    pub fn combined(values: &'l mut [u8], operation: BorrowedOperation<'l>) -> CallBuffers<'l> {
        CallBuffers { buffers: [BufferView::of_mut(values), BufferView::of_mut(&mut [])], operation }
    }

    /// Returns the same buffers, with only a piece of the first one.
    pub fn piece(&self, piece: Range<usize>) -> CallBuffers<'_> {
        let [values, result] = self.buffers;
        CallBuffers { buffers: [values.piece(piece), result], ..*self }
    }

    /// Returns the address of an operand of `len` bytes.
    #[inline(always)]
    pub(super) fn place(&self, place: ResolvedOperand, len: usize) -> *const u8 {
        match place {
            ResolvedOperand::Mapped(at) => at.as_ptr(),
            ResolvedOperand::CallBuffers(buffer, at) => self.buffers[buffer].part(at, len as u64),
        }
    }

    /// Returns bytes of a buffer for reading.
    pub(super) fn own(&self, buffer: usize, at: u64, len: usize) -> &[u8] {
        // SAFETY: `part` has checked that the bytes are inside a buffer that the caller lends. Nobody writes them
        // meanwhile, because steps run one after the other.
        unsafe { std::slice::from_raw_parts(self.buffers[buffer].part(at, len as u64), len) }
    }

    /// Returns bytes of a buffer for writing.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // the caller lends them for writing, and steps run one after the other
    pub(super) fn own_mut(&self, buffer: usize, at: u64, len: usize) -> &mut [u8] {
        // SAFETY: `part_mut` has checked that the bytes are inside a buffer that the caller lends for writing. Nobody
        // else accesses them meanwhile, because steps run one after the other.
        unsafe { std::slice::from_raw_parts_mut(self.buffers[buffer].part_mut(at, len as u64), len) }
    }

    /// Combines as many bytes at `from` as `into` has with the values in `into`. Other ranks may write the memory at
    /// `from` meanwhile. The values at `from` are the left ones if `in_front`.
    #[inline]
    pub(super) fn combine(&self, from: *const u8, into: &mut [u8], in_front: bool) {
        match self.operation {
            ReduceOperation::Nothing => {}
            ReduceOperation::Builtin(reduction) => {
                // SAFETY: `from` comes from `place`, for a range of `into.len()` bytes that was resolved or checked.
                unsafe { reduction.with_incoming_first(in_front).combine_from(into, from) }
            }
            // SAFETY: `from` comes from `place`, for a range of `into.len()` bytes that was resolved or checked.
            ReduceOperation::UserDefined(operator) => unsafe {
                combine_blocks(operator, from, into, in_front);
            },
        }
    }
}

/// Combines values by an operation of the program, block by block.
///
/// # Safety
/// `into.len()` bytes at `from` are readable.
unsafe fn combine_blocks(operator: &dyn Operator, from: *const u8, into: &mut [u8], in_front: bool) {
    let mut block = CombineBlock([MaybeUninit::uninit(); COMBINED_MAX]);
    let value_bytes = operator.value_bytes();
    let most = COMBINED_MAX / value_bytes * value_bytes;
    let mut at = 0;
    for ours in into.chunks_mut(most) {
        let place: *mut u8 = block.0.as_mut_ptr().cast();
        // SAFETY: the chunk at `at` is inside the range that the caller names. A chunk fits into the block, and the
        // copy initializes its bytes there before the slice is made.
        let theirs = unsafe {
            copy::copy(from.add(at), place, ours.len());
            std::slice::from_raw_parts_mut(place, ours.len())
        };
        if in_front {
            operator.combine(theirs, ours);
            ours.copy_from_slice(theirs);
        } else {
            operator.combine(ours, theirs);
        }
        at += ours.len();
    }
}
