//! Messages whose values lie in blocks at equal distances. They are ordinary messages: only the copies between the
//! program's memory and the line or ring differ, which pack or unpack the blocks.

use crate::buffer::MessageBuffer;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::Cause;
use tasuki_core::engine::{
    BufferUse, BufferView, CachePolicy, RevocableBuffer, Started, StrideLayout, StridedView, Worker,
};
use tasuki_core::segment::GlobalAddress;

/// Memory of the program of which a message uses blocks.
pub struct StridedBuffer {
    buffer: Arc<RevocableBuffer>,
    layout: StrideLayout,
    /// Parts of the message that have arrived in staging memory or are on their way there, in the order of the message.
    staged: Mutex<Vec<StagedPart>>,
}

/// A part of a message in staging memory: its place in the message and its bytes.
struct StagedPart {
    at: u64,
    bytes: Arc<RevocableBuffer>,
}

impl fmt::Debug for StridedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StridedBuffer { buffer, layout, .. } = self;
        f.debug_struct("StridedBuffer")
            .field("buffer", buffer)
            .field("layout", layout)
            .finish_non_exhaustive()
    }
}

impl StridedBuffer {
    /// Makes the buffer of the blocks of `buffer`, which they fill.
    pub(crate) fn new(buffer: Arc<RevocableBuffer>, layout: StrideLayout) -> Arc<StridedBuffer> {
        Arc::new(StridedBuffer { buffer, layout, staged: Mutex::default() })
    }

    /// Returns the bytes of the longest message.
    pub(crate) fn len(&self) -> u64 {
        self.layout.len() as u64
    }

    /// Begins to use the buffer.
    pub(crate) fn enter(&self) -> Result<StridedUse<'_>, Cause> {
        Ok(StridedUse { buffer: self, used: self.buffer.enter()? })
    }

    /// Unpacks the parts that have arrived in staging memory. `is_fetching`: true if the last part is on its way.
    pub(crate) fn unpack_staged(&self, is_fetching: bool) -> Result<(), Cause> {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = staged.len() - usize::from(is_fetching).min(staged.len());
        if arrived == 0 {
            return Ok(());
        }
        let used = self.buffer.enter()?;
        for StagedPart { at, bytes } in staged.drain(..arrived) {
            used.strided(self.layout).unpack(at as usize, bytes.enter()?.view(), bytes.len());
        }
        Ok(())
    }
}

/// A strided buffer in use.
#[derive(Debug)]
pub(crate) struct StridedUse<'p> {
    buffer: &'p StridedBuffer,
    used: BufferUse<'p>,
}

impl StridedUse<'_> {
    pub(crate) fn view(&self) -> StridedView<'_> {
        self.used.strided(self.buffer.layout)
    }

    /// Starts to copy a part of the message to global memory, as one piece. Where that memory is not mapped, the part is
    /// packed into staging memory, which the operation keeps. An earlier part may travel meanwhile.
    pub(crate) fn start_copy_out(
        &self,
        worker: &Worker,
        (from, len): (u64, u64),
        to: GlobalAddress,
    ) -> Result<Started, Cause> {
        if worker.pack_out(self.view(), from, to, len) {
            return Ok(Started::Done(0));
        }
        let staging = RevocableBuffer::zeroed(len as usize);
        let staging = staging.enter()?;
        self.view().pack(from as usize, staging.view(), len as usize);
        worker.start_put(to, &staging, 0..len as usize)
    }

    /// Starts to copy global memory to a part of the message. Where that memory is not mapped, the part comes to staging
    /// memory first; [`StridedBuffer::unpack_staged`] unpacks it.
    pub(crate) fn start_copy_in(
        &self,
        worker: &Worker,
        from: GlobalAddress,
        (to, len): (u64, u64),
    ) -> Result<Started, Cause> {
        if worker.unpack_in(from, self.view(), to, len) {
            return Ok(Started::Done(0));
        }
        let bytes = RevocableBuffer::zeroed(len as usize);
        let started = worker.start_get(from, &bytes.enter()?, 0..len as usize)?;
        match started {
            Started::Done(_) => self.view().unpack(to as usize, bytes.enter()?.view(), len as usize),
            Started::InFlight(_) => {
                let mut staged = self.buffer.staged.lock().unwrap_or_else(PoisonError::into_inner);
                staged.push(StagedPart { at: to, bytes });
            }
            Started::Later => {}
        }
        Ok(started)
    }
}

/// Values of a message in memory of the program: one range of bytes, or blocks.
pub(crate) trait ValueView: Copy {
    /// Returns their number of bytes.
    fn bytes(self) -> u64;

    /// Copies a part, given by start and length, to job memory. Returns false, and does nothing, if this process cannot
    /// map that memory.
    fn copy_out(self, worker: &Worker, part: (u64, u64), to: GlobalAddress) -> bool;

    /// Copies job memory to a part. Returns false, and does nothing, if this process cannot map that memory.
    fn copy_in(self, worker: &Worker, from: GlobalAddress, part: (u64, u64), caching: CachePolicy) -> bool;

    /// Lends the values to a message while `body` runs.
    fn lend<R>(self, worker: &Worker, body: impl FnOnce(MessageBuffer) -> R) -> R;
}

impl ValueView for BufferView<'_> {
    #[inline(always)]
    fn bytes(self) -> u64 {
        self.len() as u64
    }

    #[inline(always)]
    fn copy_out(self, worker: &Worker, (from, len): (u64, u64), to: GlobalAddress) -> bool {
        worker.copy_out(self, from, to, len, CachePolicy::Adaptive)
    }

    #[inline(always)]
    fn copy_in(
        self,
        worker: &Worker,
        from: GlobalAddress,
        (to, len): (u64, u64),
        caching: CachePolicy,
    ) -> bool {
        worker.copy_in(from, self, to, len, caching)
    }

    #[inline(always)]
    fn lend<R>(self, worker: &Worker, body: impl FnOnce(MessageBuffer) -> R) -> R {
        RevocableBuffer::lend(self, &|| worker.pause(), |buffer| {
            body(MessageBuffer::Unregistered(buffer.clone()))
        })
    }
}

impl ValueView for StridedView<'_> {
    fn bytes(self) -> u64 {
        self.len() as u64
    }

    fn copy_out(self, worker: &Worker, (from, len): (u64, u64), to: GlobalAddress) -> bool {
        worker.pack_out(self, from, to, len)
    }

    fn copy_in(self, worker: &Worker, from: GlobalAddress, (to, len): (u64, u64), _: CachePolicy) -> bool {
        worker.unpack_in(from, self, to, len)
    }

    fn lend<R>(self, worker: &Worker, body: impl FnOnce(MessageBuffer) -> R) -> R {
        RevocableBuffer::lend(self.span(), &|| worker.pause(), |buffer| {
            body(MessageBuffer::of_blocks(buffer.clone(), self))
        })
    }
}
