//! The registration of a buffer that can be revoked.

use super::sync::revocable_buffer::{LongBufferUse, RevocableBuffer};
use super::worker::Worker;
use crate::base::Cause;
use crate::segment::GlobalAddress;
use std::sync::Arc;

/// Registered bytes, which peers can access until this is dropped.
#[derive(Debug)]
pub struct Registration {
    worker: Arc<Worker>,
    offset: u64,
    _used: LongBufferUse,
}

impl Registration {
    /// Registers the bytes of a buffer.
    pub fn new(buffer: &Arc<RevocableBuffer>, worker: &Arc<Worker>) -> Result<Registration, Cause> {
        let (used, len) = (buffer.enter()?, buffer.len() as u64);
        let offset = worker.registry().register(used.view().part(0, len) as u64, len);
        let offset = offset.map_err(|error| error.cause().clone())?;
        Ok(Registration { worker: worker.clone(), offset, _used: used.extend() })
    }

    /// Returns the global address of the bytes.
    pub fn address(&self) -> GlobalAddress {
        GlobalAddress::new(self.worker.rank(), self.offset)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.worker.fork_guard().is_forked() {
            return; // the registration belongs to the rank, which goes on
        }
        // An error means that a rank died inside an access: that access has ended with its process.
        let _ = self.worker.registry().free_unless(self.offset, &|| self.worker.death());
    }
}
