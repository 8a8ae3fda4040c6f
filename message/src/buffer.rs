//! The buffer of a message.

use crate::strided::{StridedBuffer, StridedUse};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tasuki_core::base::Cause;
use tasuki_core::engine::{
    BufferUse, BufferView, CachePolicy, RevocableBuffer, Started, StridedView, Worker,
};
use tasuki_core::segment::GlobalAddress;

/// Memory that a message is read from or written to.
#[derive(Clone, Debug)]
pub enum MessageBuffer {
    /// Memory of the program, which the message uses until it is revoked.
    Unregistered(Arc<RevocableBuffer>),
    /// Job memory of this rank: its address and length in bytes.
    Job(GlobalAddress, u64),
    /// Memory that is made when the length of the message is known.
    OnArrival(Arc<ArrivalBuffer>),
    /// Blocks of the program's memory, which the message uses until it is revoked. No peer can write to them.
    Strided(Arc<StridedBuffer>),
}

type Made = Result<Arc<RevocableBuffer>, Cause>;

/// The buffer of a receive that does not know the length of its message. It is made when the message has met the
/// receive, before the first byte is copied. No peer can write to it, so such a message never goes in place: it comes
/// in the line, or through a ring.
pub struct ArrivalBuffer {
    /// A message consists of values of this size.
    value_bytes: u64,
    make: Box<dyn Fn(u64) -> Made + Send + Sync>,
    made: OnceLock<Made>,
}

impl ArrivalBuffer {
    /// Makes the buffer of a receive of values of `value_bytes` bytes each. `make` is called at most once, with the
    /// length of the message. It returns a writable buffer of at least that length, which owns its bytes.
    pub fn new(
        value_bytes: usize,
        make: impl Fn(u64) -> Result<Arc<RevocableBuffer>, Cause> + Send + Sync + 'static,
    ) -> Arc<ArrivalBuffer> {
        let value_bytes = value_bytes.max(1) as u64;
        Arc::new(ArrivalBuffer { value_bytes, make: Box::new(make), made: OnceLock::new() })
    }

    /// Returns the buffer, if the message has met the receive.
    fn made(&self) -> Option<&Arc<RevocableBuffer>> {
        self.made.get().and_then(|made| made.as_ref().ok())
    }
}

impl fmt::Debug for ArrivalBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivalBuffer").field("made", &self.made).finish_non_exhaustive()
    }
}

impl MessageBuffer {
    /// Makes the buffer of the blocks of a view. `buffer` lends the memory from the first block to the last one.
    pub fn of_blocks(buffer: Arc<RevocableBuffer>, blocks: StridedView<'_>) -> MessageBuffer {
        match blocks.contiguous() {
            Some(_) => MessageBuffer::Unregistered(buffer),
            None => MessageBuffer::Strided(StridedBuffer::new(buffer, blocks.layout())),
        }
    }

    /// Returns the length in bytes. A buffer that is not made yet has room for any message.
    pub fn len(&self) -> u64 {
        match self {
            MessageBuffer::Unregistered(buffer) => buffer.len() as u64,
            MessageBuffer::Job(_, len) => *len,
            MessageBuffer::OnArrival(buffer) => buffer.made().map_or(u64::MAX, |made| made.len() as u64),
            MessageBuffer::Strided(buffer) => buffer.len(),
        }
    }

    /// Makes the buffer for a message of that length, if it was not made yet.
    #[inline]
    pub(crate) fn make_for(&self, len: u64) -> Result<(), Cause> {
        match self {
            MessageBuffer::OnArrival(buffer) => {
                buffer.made.get_or_init(|| (buffer.make)(len)).as_ref().map(drop).map_err(Cause::clone)
            }
            MessageBuffer::Unregistered(_) | MessageBuffer::Job(..) | MessageBuffer::Strided(_) => Ok(()),
        }
    }

    /// Returns the size of which the length of a message must be a multiple.
    pub(crate) fn value_bytes(&self) -> u64 {
        match self {
            MessageBuffer::OnArrival(buffer) => buffer.value_bytes,
            MessageBuffer::Unregistered(_) | MessageBuffer::Job(..) | MessageBuffer::Strided(_) => 1,
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
            MessageBuffer::OnArrival(buffer) => match buffer.made() {
                Some(made) => made.enter().map(BufferAccess::Unregistered),
                None => Err(Cause::Bug("a buffer was used before it was made".into())),
            },
            MessageBuffer::Strided(buffer) => buffer.enter().map(BufferAccess::Strided),
        }
    }

    /// Returns true if the bytes are blocks.
    pub(crate) fn is_strided(&self) -> bool {
        matches!(self, MessageBuffer::Strided(_))
    }

    /// Unpacks what has arrived in staging memory. `is_fetching`: true if the last part is on its way there.
    #[inline]
    pub(crate) fn unpack_staged(&self, is_fetching: bool) -> Result<(), Cause> {
        match self {
            MessageBuffer::Strided(buffer) => buffer.unpack_staged(is_fetching),
            _ => Ok(()),
        }
    }

    /// Copies the first `len` bytes.
    pub(crate) fn copied(&self, worker: &Worker, len: u64) -> Result<Vec<u8>, Cause> {
        let mut bytes = vec![0; len as usize];
        match self {
            MessageBuffer::Job(at, _) => {
                worker.get(*at, &mut bytes).map_err(|error| error.cause().clone())?
            }
            _ => self.enter()?.read(&mut bytes)?,
        }
        Ok(bytes)
    }
}

/// A buffer in use.
#[derive(Debug)]
pub(crate) enum BufferAccess<'p> {
    Unregistered(BufferUse<'p>),
    Job(GlobalAddress),
    Strided(StridedUse<'p>),
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
            BufferAccess::Strided(used) => {
                used.view().read(0, into);
                Ok(())
            }
            BufferAccess::Job(_) => Err(Cause::Bug("a short message was not read from job memory".into())),
        }
    }

    /// Copies the first `len` bytes of program memory out. Returns `None` for job memory.
    pub(crate) fn copy_to(&self, into: BufferView<'_>, len: usize) -> Option<()> {
        match self {
            BufferAccess::Unregistered(used) => used.view().copy_to(into, len),
            BufferAccess::Strided(used) => used.view().pack(0, into, len),
            BufferAccess::Job(_) => return None,
        }
        Some(())
    }

    /// Starts to copy a few bytes to the start of the buffer.
    pub(crate) fn start_store(&self, worker: &Worker, bytes: &[u8]) -> Result<Started, Cause> {
        match self {
            BufferAccess::Unregistered(used) => {
                used.view().write(0, bytes);
                Ok(Started::Done(0))
            }
            BufferAccess::Strided(used) => {
                used.view().write(0, bytes);
                Ok(Started::Done(0))
            }
            BufferAccess::Job(at) => {
                worker.start_put(*at, &RevocableBuffer::from_vec(bytes.to_vec()).enter()?, 0..bytes.len())
            }
        }
    }

    /// Starts to copy the first `len` bytes of another buffer, which is program memory, to the start of this one.
    pub(crate) fn start_copy_of(
        &self,
        worker: &Worker,
        bytes: &MessageBuffer,
        len: u64,
    ) -> Result<Started, Cause> {
        let BufferAccess::Unregistered(bytes) = bytes.enter()? else {
            return Err(Cause::Bug("a message was kept in memory that its receive does not own".into()));
        };
        match self {
            BufferAccess::Unregistered(used) => {
                bytes.view().copy_to(used.view(), len as usize);
                Ok(Started::Done(0))
            }
            BufferAccess::Strided(used) => {
                used.view().unpack(0, bytes.view(), len as usize);
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
            BufferAccess::Strided(used) => used.start_copy_out(worker, (from, len), to),
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
            BufferAccess::Strided(used) => used.start_copy_in(worker, from, (to, len)),
        }
    }
}
