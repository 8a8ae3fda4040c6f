//! Where the bytes of a message come from, or go.

use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{BufferUse, CachePolicy, RevocableBuffer, Started, Worker};
use tasuki_core::segment::GlobalAddress;

/// Memory that a message comes from, or goes to.
#[derive(Clone, Debug)]
pub enum MessageBuffer {
    /// Memory of the program's own, lent to the message.
    Own(Arc<RevocableBuffer>),
    /// Job memory of this rank's, and how many bytes.
    Job(GlobalAddress, u64),
}

impl MessageBuffer {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        match self {
            MessageBuffer::Own(loan) => loan.len() as u64,
            MessageBuffer::Job(_, len) => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Uses it, from here on for any number of copies: what counts its uses waits, on most processors, until all that
    /// was written before is in the caches.
    #[inline]
    pub(crate) fn enter(&self) -> Result<BufferAccess<'_>, Cause> {
        match self {
            MessageBuffer::Own(loan) => loan.enter().map(BufferAccess::Own),
            MessageBuffer::Job(at, _) => Ok(BufferAccess::Job(*at)),
        }
    }
}

/// A place in use.
#[derive(Debug)]
pub(crate) enum BufferAccess<'p> {
    Own(BufferUse<'p>),
    Job(GlobalAddress),
}

impl BufferAccess<'_> {
    /// Copies the first bytes out. Short messages from job memory are read before they set out.
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<(), Cause> {
        match self {
            BufferAccess::Own(used) => {
                used.view().read(0, into);
                Ok(())
            }
            BufferAccess::Job(_) => Err(Cause::Bug("a short message was left in job memory".into())),
        }
    }

    /// Starts to copy a few bytes in, from the start.
    pub(crate) fn store(&self, worker: &Worker, bytes: &[u8]) -> Result<Started, Cause> {
        match self {
            BufferAccess::Own(used) => {
                used.view().write(0, bytes);
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => {
                worker.start_put(*at, &RevocableBuffer::of(bytes.to_vec()).enter()?, 0..bytes.len())
            }
        }
    }

    /// Starts to copy a part of it, by its start and length, to global memory.
    pub(crate) fn launch(
        &self,
        worker: &Worker,
        (from, len): (u64, u64),
        to: GlobalAddress,
        caching: CachePolicy,
    ) -> Result<Started, Cause> {
        match self {
            BufferAccess::Own(used) if worker.copy_out(used.view(), from, to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Own(used) => worker.start_put(to, used, from as usize..(from + len) as usize),
            BufferAccess::Job(at) if worker.copy_across(at.add(from), to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => worker.start_copy(at.add(from), to, len),
        }
    }

    /// Starts to copy global memory into a part of it, by its start and length.
    pub(crate) fn fetch(
        &self,
        worker: &Worker,
        from: GlobalAddress,
        (to, len): (u64, u64),
        caching: CachePolicy,
    ) -> Result<Started, Cause> {
        match self {
            BufferAccess::Own(used) if worker.copy_in(from, used.view(), to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Own(used) => worker.start_get(from, used, to as usize..(to + len) as usize),
            BufferAccess::Job(at) if worker.copy_across(from, at.add(to), len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => worker.start_copy(from, at.add(to), len),
        }
    }
}
