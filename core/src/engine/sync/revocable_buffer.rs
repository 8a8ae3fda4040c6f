//! Memory of the program's own that is lent to operations under way.
#![allow(unsafe_code)]
//! Unsafe: a lent place, valid until it is called back, which waits for whoever is using it.
//!
//! A *use* counts itself and whoever calls the loan back says so in one and the same word, so either the use finds it
//! called back, or the caller finds the use (`SYNC loan`), and waits for its end (`SYNC loan-end`).

use crate::base::Cause;
use crate::base::sync::{AtomicU32, Ordering};
use crate::base::{planted, relaxed_if_planted};
use crate::engine::{Local, Worker};
use crate::os::copy;
use crate::segment::GlobalAddress;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const CALLED_BACK: u32 = 1 << 31;

/// A place in memory that may be used until it is called back.
#[derive(Debug)]
pub struct RevocableBuffer {
    place: Local,
    len: usize,
    writable: bool,
    /// What the bytes belong to, if the loan owns them.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
    /// Bit 31: called back; below: how many are using it.
    uses: AtomicU32,
}

/// One user of a loan. It is not called back while this lives.
#[derive(Debug)]
pub struct BufferUse<'l>(&'l Arc<RevocableBuffer>);

/// The same for as long as it takes.
#[derive(Debug)]
pub(in crate::engine) struct LongBufferUse(Arc<RevocableBuffer>);

impl RevocableBuffer {
    /// Lends `len` bytes at `place`, for writing, too, if `writable`. With an owner nobody needs to call it back.
    ///
    /// # Safety
    /// WaitSpec [`RevocableBuffer::revoke`] has returned, or for as long as `owner` lives, the bytes are valid, and nobody else
    /// writes them, nor reads them if the loan is writable.
    pub unsafe fn new(
        place: Local,
        len: usize,
        writable: bool,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<RevocableBuffer> {
        Arc::new(RevocableBuffer { place, len, writable, _owner: owner, uses: AtomicU32::new(0) })
    }

    /// Lends bytes that the loan owns, for reading.
    pub fn of(bytes: Vec<u8>) -> Arc<RevocableBuffer> {
        let bytes = Arc::new(bytes);
        let place = Local(bytes.as_ptr().cast_mut());
        // SAFETY: the bytes live as long as the loan, and nobody writes them.
        unsafe { RevocableBuffer::new(place, bytes.len(), false, Some(bytes)) }
    }

    /// Lends zeroed bytes that the loan owns, for reading and writing.
    pub fn scratch(len: usize) -> Arc<RevocableBuffer> {
        let bytes: Arc<[AtomicU64]> = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let place = Local(bytes.as_ptr().cast_mut().cast());
        // SAFETY: the bytes live as long as the loan, and nobody else knows them.
        unsafe { RevocableBuffer::new(place, len, true, Some(Arc::new(bytes))) }
    }

    /// Registers the bytes, so that peers can reach them.
    pub fn register(self: &Arc<RevocableBuffer>, worker: &Arc<Worker>) -> Result<Registration, Cause> {
        let used = self.enter()?;
        let offset = worker.registry().register(self.place.0 as u64, self.len as u64);
        let offset = offset.map_err(|error| error.cause().clone())?;
        Ok(Registration { worker: worker.clone(), offset, _used: used.longer() })
    }

    /// Lends bytes in view while `body` runs. At its end, also by a panic, nobody uses them any more: until then
    /// `pause` is called again and again.
    pub fn lend<R>(
        bytes: BufferView<'_>,
        pause: &dyn Fn(),
        body: impl FnOnce(&Arc<RevocableBuffer>) -> R,
    ) -> R {
        // SAFETY: in view until the guard has called the loan back.
        let loan = unsafe { RevocableBuffer::new(bytes.place, bytes.len, bytes.writable, None) };
        let lent = RevokeOnDrop { loan, pause };
        body(&lent.loan)
    }

    /// How many bytes are lent.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is lent.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Uses it. Fails if it was called back.
    #[inline]
    pub fn enter(self: &Arc<RevocableBuffer>) -> Result<BufferUse<'_>, Cause> {
        let before = self.uses.fetch_add(1, Ordering::Acquire); // SYNC loan
        let entered = BufferUse(self);
        let open =
            if planted("revocable_not_looked_at") { before != u32::MAX } else { before & CALLED_BACK == 0 };
        if open { Ok(entered) } else { Err(called_back()) }
    }

    #[inline]
    fn leave(&self) {
        let order = relaxed_if_planted("revocable_end_relaxed", Ordering::Release); // SYNC loan-end
        self.uses.fetch_sub(1, order);
    }

    /// Ends the loan. Returns when nobody uses it any more, and does not unwind before; `pause` is called meanwhile.
    pub fn revoke(&self, pause: impl FnMut()) {
        self.uses.fetch_or(CALLED_BACK, Ordering::AcqRel); // SYNC loan
        WaitForUsers { loan: self, pause }.wait();
    }
}

/// A loan that was called back. It is waited for once more when this is dropped, for a pause may unwind.
struct WaitForUsers<'l, P: FnMut()> {
    loan: &'l RevocableBuffer,
    pause: P,
}

impl<P: FnMut()> WaitForUsers<'_, P> {
    fn wait(&mut self) {
        while self.loan.uses.load(Ordering::Acquire) & !CALLED_BACK != 0 {
            (self.pause)(); // SYNC loan-end
        }
    }
}

impl<P: FnMut()> Drop for WaitForUsers<'_, P> {
    fn drop(&mut self) {
        self.wait();
    }
}

#[cold]
fn called_back() -> Cause {
    Cause::Bug("a loan was used after it was called back".into())
}

/// RevokeOnDrop bytes that peers can reach, until this is dropped.
#[derive(Debug)]
pub struct Registration {
    worker: Arc<Worker>,
    offset: u64,
    _used: LongBufferUse,
}

impl Registration {
    /// Where they are.
    pub fn address(&self) -> GlobalAddress {
        GlobalAddress::new(self.worker.rank(), self.offset)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.worker.life().is_forked() {
            return; // it is the rank's, which goes on
        }
        // An error says that a rank died inside an access: it ends with its process, or has ended.
        let _ = self.worker.registry().free_unless(self.offset, &|| self.worker.death());
    }
}

/// Calls a loan back, however its time ends.
struct RevokeOnDrop<'p> {
    loan: Arc<RevocableBuffer>,
    pause: &'p dyn Fn(),
}

impl Drop for RevokeOnDrop<'_> {
    fn drop(&mut self) {
        self.loan.revoke(self.pause);
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
    /// One more use, which outlives this one.
    pub(in crate::engine) fn longer(&self) -> LongBufferUse {
        self.0.uses.fetch_add(1, Ordering::Relaxed);
        LongBufferUse(self.0.clone())
    }

    /// The bytes.
    #[inline]
    pub fn view(&self) -> BufferView<'_> {
        let RevocableBuffer { place, len, writable, .. } = **self.0;
        BufferView { place, len, writable, borrowed: PhantomData }
    }
}

/// Bytes of the program's own, for as long as they are borrowed or a loan of them is in use.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'v> {
    place: Local,
    len: usize,
    writable: bool,
    borrowed: PhantomData<&'v ()>,
}

impl<'v> BufferView<'v> {
    /// For reading.
    pub fn of(bytes: &'v [u8]) -> BufferView<'v> {
        BufferView {
            place: Local(bytes.as_ptr().cast_mut()),
            len: bytes.len(),
            writable: false,
            borrowed: PhantomData,
        }
    }

    /// For reading and writing.
    pub fn of_mut(bytes: &'v mut [u8]) -> BufferView<'v> {
        BufferView {
            place: Local(bytes.as_mut_ptr()),
            len: bytes.len(),
            writable: true,
            borrowed: PhantomData,
        }
    }

    /// How many bytes there are.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Some of them.
    pub fn piece(self, piece: Range<usize>) -> BufferView<'v> {
        let place = Local(self.part(piece.start as u64, piece.len() as u64).cast_mut());
        BufferView { place, len: piece.len(), ..self }
    }

    /// Where `len` bytes from `from` on are.
    #[inline]
    pub(in crate::engine) fn part(self, from: u64, len: u64) -> *const u8 {
        let all = self.len as u64;
        assert!(from <= all && len <= all - from, "inside the bytes");
        // SAFETY: inside.
        unsafe { self.place.0.add(from as usize) }
    }

    /// The same for writing.
    #[inline]
    pub(in crate::engine) fn part_mut(self, from: u64, len: u64) -> *mut u8 {
        assert!(self.writable, "for writing");
        self.part(from, len).cast_mut()
    }

    /// Copies bytes out, from `from` on.
    pub fn read(self, from: usize, into: &mut [u8]) {
        let from = self.part(from as u64, into.len() as u64);
        // SAFETY: inside bytes that are borrowed, or in use.
        unsafe { copy::copy(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies bytes in, from `to` on.
    pub fn write(self, to: usize, bytes: &[u8]) {
        let to = self.part_mut(to as u64, bytes.len() as u64);
        // SAFETY: as for reading.
        unsafe { copy::copy(bytes.as_ptr(), to, bytes.len()) };
    }
}
