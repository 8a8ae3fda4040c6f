//! The buffer of a message.

use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{BufferUse, CachePolicy, RevocableBuffer, Started, Worker};
use tasuki_core::segment::GlobalAddress;

/// Memory that a message is read from or written to.
#[derive(Clone, Debug)]
pub enum MessageBuffer {
    /// Memory of the program, which the message uses until it is revoked.
    Unregistered(Arc<RevocableBuffer>),
    /// Job memory of this rank: its address and length in bytes.
    Job(GlobalAddress, u64),
}

impl MessageBuffer {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            MessageBuffer::Unregistered(buffer) => buffer.len() as u64,
            MessageBuffer::Job(_, len) => *len,
        }
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins to use the buffer, for any number of copies. On most processors the use counter waits until all earlier
    /// stores are in the caches, so enter once for several copies.
    #[inline]
    pub(crate) fn enter(&self) -> Result<BufferAccess<'_>, Cause> {
        match self {
            MessageBuffer::Unregistered(buffer) => buffer.enter().map(BufferAccess::Unregistered),
            MessageBuffer::Job(at, _) => Ok(BufferAccess::Job(*at)),
        }
    }
}

/// A buffer in use.
#[derive(Debug)]
pub(crate) enum BufferAccess<'p> {
    Unregistered(BufferUse<'p>),
    Job(GlobalAddress),
}

impl BufferAccess<'_> {
    /// Copies the first bytes out. Only for program memory: a short message in job memory is read before its send
    /// begins.
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<(), Cause> {
        match self {
            BufferAccess::Unregistered(used) => {
                used.view().read(0, into);
                Ok(())
            }
            BufferAccess::Job(_) => Err(Cause::Bug("a short message was not read from job memory".into())),
        }
    }

    /// Starts to copy a few bytes to the start of the buffer.
    pub(crate) fn start_store(&self, worker: &Worker, bytes: &[u8]) -> Result<Started, Cause> {
        match self {
            BufferAccess::Unregistered(used) => {
                used.view().write(0, bytes);
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => {
                worker.start_put(*at, &RevocableBuffer::from_vec(bytes.to_vec()).enter()?, 0..bytes.len())
            }
        }
    }

    /// Starts to copy the first `len` bytes of another buffer to the start of this one.
    pub(crate) fn start_copy_of(
        &self,
        worker: &Worker,
        bytes: &Arc<RevocableBuffer>,
        len: u64,
    ) -> Result<Started, Cause> {
        let bytes = bytes.enter()?;
        match self {
            BufferAccess::Unregistered(used) => {
                bytes.view().copy_to(used.view(), len as usize);
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => worker.start_put(*at, &bytes, 0..len as usize),
        }
    }

    /// Starts to copy a part of the buffer, given by start and length, to global memory.
    pub(crate) fn start_copy_out(
        &self,
        worker: &Worker,
        (from, len): (u64, u64),
        to: GlobalAddress,
        caching: CachePolicy,
    ) -> Result<Started, Cause> {
        match self {
            BufferAccess::Unregistered(used) if worker.copy_out(used.view(), from, to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Unregistered(used) => {
                worker.start_put(to, used, from as usize..(from + len) as usize)
            }
            BufferAccess::Job(at) if worker.copy_across(at.add(from), to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => worker.start_copy(at.add(from), to, len),
        }
    }

    /// Starts to copy global memory into a part of the buffer, given by start and length.
    pub(crate) fn start_copy_in(
        &self,
        worker: &Worker,
        from: GlobalAddress,
        (to, len): (u64, u64),
        caching: CachePolicy,
    ) -> Result<Started, Cause> {
        match self {
            BufferAccess::Unregistered(used) if worker.copy_in(from, used.view(), to, len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Unregistered(used) => {
                worker.start_get(from, used, to as usize..(to + len) as usize)
            }
            BufferAccess::Job(at) if worker.copy_across(from, at.add(to), len, caching) => {
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => worker.start_copy(from, at.add(to), len),
        }
    }
}
