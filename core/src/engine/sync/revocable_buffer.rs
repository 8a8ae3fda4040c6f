//! User memory that is lent to operations in flight and can be revoked.
#![allow(unsafe_code)]
//! Unsafe: a borrowed range, valid until it is revoked; `revoke` waits for its users.
//!
//! A user increments the count, and `revoke` sets a bit, in the same word. So either the user finds
//! the buffer revoked, or `revoke` finds the user (`SYNC revocable-enter`) and waits for its end
//! (`SYNC revocable-leave`).

use crate::base::Cause;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::base::{planted, relaxed_if_planted};
use crate::engine::Local;
use crate::engine::sync::strided_view::{StrideLayout, StridedView};
use crate::os::copy;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

const REVOKED: u32 = 1 << 31;

/// A range of memory that may be used until it is revoked.
#[derive(Debug)]
pub struct RevocableBuffer {
    place: Local,
    len: usize,
    writable: bool,
    /// What owns the bytes, if the buffer owns them.
    owner: Option<Arc<dyn Any + Send + Sync>>,
    /// Bit 31: revoked; bits 0 to 30: number of users. Users and `revoke` write.
    uses: AtomicU32,
}

/// One use of a buffer. `revoke` does not return while it lives.
#[derive(Debug)]
pub struct BufferUse<'l>(&'l Arc<RevocableBuffer>);

/// A use that is not bound to a borrow, for an operation in flight.
#[derive(Debug)]
pub(in crate::engine) struct LongBufferUse(Arc<RevocableBuffer>);

impl RevocableBuffer {
    /// Lends `len` bytes at `place`, also for writing if `writable`. A buffer with an owner need not be revoked.
    ///
    /// # Safety
    /// Until [`RevocableBuffer::revoke`] has returned, or for as long as `owner` lives, the bytes
    /// must be valid, and nothing else may write them, nor read them if the buffer is writable. If only blocks of the
    /// buffer are used ([`BufferUse::strided`]), this holds for the bytes of the blocks.
    pub unsafe fn new(
        place: Local,
        len: usize,
        writable: bool,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<RevocableBuffer> {
        Arc::new(RevocableBuffer { place, len, writable, owner, uses: AtomicU32::new(0) })
    }

    /// Lends the bytes of a view.
    ///
    /// # Safety
    /// As for [`RevocableBuffer::new`] without an owner.
    pub unsafe fn of_view(bytes: BufferView<'_>) -> Arc<RevocableBuffer> {
        // SAFETY: the caller promises what `new` needs.
        unsafe { RevocableBuffer::new(bytes.place, bytes.len, bytes.writable, None) }
    }

    /// Makes a readable buffer that owns its bytes.
    pub fn from_vec(bytes: Vec<u8>) -> Arc<RevocableBuffer> {
        let bytes = Arc::new(bytes);
        let place = Local(bytes.as_ptr().cast_mut());
        // SAFETY: the bytes live as long as the buffer, and nothing writes them.
        unsafe { RevocableBuffer::new(place, bytes.len(), false, Some(bytes)) }
    }

    /// Makes a readable and writable buffer that owns `len` zeroed bytes.
    pub fn zeroed(len: usize) -> Arc<RevocableBuffer> {
        let bytes: Arc<[AtomicU64]> = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let place = Local(bytes.as_ptr().cast_mut().cast());
        // SAFETY: the bytes live as long as the buffer, and nothing else has their address.
        unsafe { RevocableBuffer::new(place, len, true, Some(Arc::new(bytes))) }
    }

    /// Lends the bytes of a view while `body` runs. Revokes them at its end, also after a panic;
    /// calls `pause` repeatedly while there are users.
    pub fn lend<R>(
        bytes: BufferView<'_>,
        pause: &dyn Fn(),
        body: impl FnOnce(&Arc<RevocableBuffer>) -> R,
    ) -> R {
        // SAFETY: the view borrows the bytes until the guard has revoked the buffer.
        let buffer = unsafe { RevocableBuffer::new(bytes.place, bytes.len, bytes.writable, None) };
        let revoke_on_drop = RevokeOnDrop { buffer, pause };
        body(&revoke_on_drop.buffer)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the buffer owns its bytes, so that they stay valid while the buffer exists.
    pub fn owns_bytes(&self) -> bool {
        self.owner.is_some()
    }

    /// Begins a use. Fails if the buffer was revoked.
    #[inline]
    pub fn enter(self: &Arc<RevocableBuffer>) -> Result<BufferUse<'_>, Cause> {
        let before = self.uses.fetch_add(1, Ordering::Acquire); // SYNC revocable-enter
        let entered = BufferUse(self);
        let open =
            if planted("revocable_not_looked_at") { before != u32::MAX } else { before & REVOKED == 0 };
        if open { Ok(entered) } else { Err(used_after_revoke()) }
    }

    #[inline]
    fn leave(&self) {
        let order = relaxed_if_planted("revocable_end_relaxed", Ordering::Release); // SYNC revocable-leave
        self.uses.fetch_sub(1, order);
    }

    /// Revokes the buffer. Returns, or unwinds, only when it has no users; calls `pause` meanwhile.
    pub fn revoke(&self, pause: impl FnMut()) {
        self.uses.fetch_or(REVOKED, Ordering::AcqRel); // SYNC revocable-enter
        WaitForUsers { buffer: self, pause }.wait();
    }
}

/// Waits for the users of a revoked buffer; waits once more when it is dropped, because `pause` may unwind.
struct WaitForUsers<'l, P: FnMut()> {
    buffer: &'l RevocableBuffer,
    pause: P,
}

impl<P: FnMut()> WaitForUsers<'_, P> {
    fn wait(&mut self) {
        while self.buffer.uses.load(Ordering::Acquire) & !REVOKED != 0 {
            (self.pause)(); // SYNC revocable-leave
        }
    }
}

impl<P: FnMut()> Drop for WaitForUsers<'_, P> {
    fn drop(&mut self) {
        self.wait();
    }
}

#[cold]
fn used_after_revoke() -> Cause {
    Cause::Bug("a buffer was used after it was revoked".into())
}

/// Revokes a buffer when it is dropped.
struct RevokeOnDrop<'p> {
    buffer: Arc<RevocableBuffer>,
    pause: &'p dyn Fn(),
}

impl Drop for RevokeOnDrop<'_> {
    fn drop(&mut self) {
        self.buffer.revoke(self.pause);
    }
}

impl Drop for BufferUse<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for LongBufferUse {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl BufferUse<'_> {
    /// Begins one more use, which may outlive this one.
    pub(in crate::engine) fn extend(&self) -> LongBufferUse {
        self.0.uses.fetch_add(1, Ordering::Relaxed);
        LongBufferUse(self.0.clone())
    }

    /// Returns the bytes.
    #[inline]
    pub fn view(&self) -> BufferView<'_> {
        let RevocableBuffer { place, len, writable, .. } = **self.0;
        BufferView { place, len, writable, borrowed: PhantomData }
    }

    /// Returns the blocks of a buffer that is used by blocks only.
    #[inline]
    pub fn strided(&self, layout: StrideLayout) -> StridedView<'_> {
        StridedView::new(self.view(), layout)
    }
}

/// A view of user memory, valid while the memory is borrowed or a buffer over it is in use.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'v> {
    place: Local,
    len: usize,
    writable: bool,
    borrowed: PhantomData<&'v ()>,
}

impl<'v> BufferView<'v> {
    /// Returns a view for reading.
    pub fn of(bytes: &'v [u8]) -> BufferView<'v> {
        BufferView {
            place: Local(bytes.as_ptr().cast_mut()),
            len: bytes.len(),
            writable: false,
            borrowed: PhantomData,
        }
    }

    /// Returns a view for reading and writing.
    pub fn of_mut(bytes: &'v mut [u8]) -> BufferView<'v> {
        BufferView {
            place: Local(bytes.as_mut_ptr()),
            len: bytes.len(),
            writable: true,
            borrowed: PhantomData,
        }
    }

    /// Returns the length in bytes.
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns a view of a part.
    pub fn piece(self, piece: Range<usize>) -> BufferView<'v> {
        let place = Local(self.part(piece.start as u64, piece.len() as u64).cast_mut());
        BufferView { place, len: piece.len(), ..self }
    }

    /// Returns the address of `len` bytes from `from` on. Panics if they are not inside.
    #[inline]
    pub(in crate::engine) fn part(self, from: u64, len: u64) -> *const u8 {
        let all = self.len as u64;
        assert!(from <= all && len <= all - from, "the range must be inside the buffer");
        // SAFETY: the assertion keeps the range inside the view's bytes.
        unsafe { self.place.0.add(from as usize) }
    }

    /// Returns the address for writing. Panics if the view is not writable.
    #[inline]
    pub(in crate::engine) fn part_mut(self, from: u64, len: u64) -> *mut u8 {
        assert!(self.writable, "the buffer must be writable");
        self.part(from, len).cast_mut()
    }

    /// Copies bytes out, from `from` on.
    pub fn read(self, from: usize, into: &mut [u8]) {
        let from = self.part(from as u64, into.len() as u64);
        // SAFETY: `part` has checked that the range lies in the view, whose bytes stay valid while the view exists.
        unsafe { copy::copy(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies the first `len` bytes to the start of another view.
    pub fn copy_to(self, into: BufferView<'_>, len: usize) {
        let (from, to) = (self.part(0, len as u64), into.part_mut(0, len as u64));
        // SAFETY: `part` and `part_mut` have checked that the ranges lie in the views, whose bytes stay valid while the
        // views exist. Two writable buffers do not overlap.
        unsafe { copy::copy(from, to, len) };
    }

    /// Copies `count` blocks of `block` bytes to another view. In each view they are given by the place of the first one
    /// and the distance of two.
    pub(in crate::engine) fn copy_blocks(
        self,
        (from, from_stride): (usize, usize),
        into: BufferView<'_>,
        (to, to_stride): (usize, usize),
        block: usize,
        count: usize,
    ) {
        let span = |stride| blocks_span(block, stride, count);
        let (from, to) =
            (self.part(from as u64, span(from_stride)), into.part_mut(to as u64, span(to_stride)));
        // SAFETY: `part` and `part_mut` have checked that all blocks lie in the views, whose bytes stay valid while the
        // views exist. Two writable buffers have no block in common.
        unsafe { copy::blocks((from, from_stride), (to, to_stride), block, count) };
    }

    /// Copies bytes in, from `to` on.
    pub fn write(self, to: usize, bytes: &[u8]) {
        let to = self.part_mut(to as u64, bytes.len() as u64);
        // SAFETY: `part_mut` has checked that the range lies in the view, whose bytes stay valid and writable while the
        // view exists.
        unsafe { copy::copy(bytes.as_ptr(), to, bytes.len()) };
    }
}

/// Returns the bytes from the first of `count` blocks to the end of the last one.
pub(in crate::engine) fn blocks_span(block: usize, stride: usize, count: usize) -> u64 {
    let others = count.saturating_sub(1) as u64;
    others.saturating_mul(stride as u64).saturating_add(block as u64)
}
