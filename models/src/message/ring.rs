//! Rings: memory of the job's, small enough to stay in cache, through which messages between memories that only
//! their owners reach go a chunk at a time, so that both processors copy at once.
//!
//! A ring lies at the sender. The sender copies a chunk in and tells the receiver how many there are; the receiver
//! copies it out and tells the sender how many it has taken. A message has the ring to itself from its first chunk to
//! its last.

use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Error};
use tasuki_core::engine::Machine;
use tasuki_core::segment::GlobalAddress;

/// Bytes of a chunk.
pub(crate) const CHUNK: u64 = 32 << 10;
/// Chunks of a ring.
pub(crate) const CHUNKS: u32 = 8;
/// Rings of a rank: so many messages go through rings at a time, the others wait.
const RINGS_MAX: usize = 4;

/// A ring, taken by one message at a time.
#[derive(Debug)]
pub(crate) struct Ring {
    at: GlobalAddress,
}

/// The rings of a rank, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    all: Mutex<Vec<Arc<Ring>>>,
}

impl Ring {
    /// Where the ring begins.
    pub(crate) fn at(&self) -> GlobalAddress {
        self.at
    }
}

/// Where a chunk of a message lies in a ring.
pub(crate) fn place(ring: GlobalAddress, chunk: u32) -> GlobalAddress {
    ring.add(u64::from(chunk % CHUNKS) * CHUNK)
}

impl Rings {
    /// A ring that nobody uses, until the answer is dropped; none if all are in use.
    pub(crate) fn take(&self, machine: &Machine) -> Result<Option<Arc<Ring>>, Cause> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = all.iter().find(|ring| Arc::strong_count(ring) == 1) {
            return Ok(Some(free.clone()));
        }
        if all.len() == RINGS_MAX {
            return Ok(None);
        }
        let bytes = CHUNK * u64::from(CHUNKS);
        let offset =
            machine.registry().allocate_local(bytes).map_err(|error: Error| error.cause().clone())?;
        let ring = Arc::new(Ring { at: GlobalAddress::new(machine.rank(), offset) });
        all.push(ring.clone());
        Ok(Some(ring))
    }
}
