//! Job memory of this rank's that it fills itself, without the fabric.
#![allow(unsafe_code)]
//! Unsafe: a pointer into the own window, found once, and valid while the machine that gave it keeps the window.

use super::loan::Use;
use super::machine::Machine;
use crate::base::Cause;
use crate::os::copy;
use crate::segment::{GlobalAddress, Window};
use std::sync::Arc;

/// A range of this rank's job memory. Its owner does not free it while this lives.
#[derive(Debug)]
pub struct OwnRange {
    first: *mut u8,
    len: u64,
    _kept: Arc<Window>,
}

// SAFETY: job memory is shared by design, and the window is kept.
unsafe impl Send for OwnRange {}
// SAFETY: as above.
unsafe impl Sync for OwnRange {}

/// How a copy treats the processor's caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Caching {
    /// As any copy.
    Cached,
    /// Past them, to memory: costs no more where another processor has the lines.
    Streamed,
}

impl Machine {
    /// The `len` bytes at `at`, memory of this rank's, if it may fill them without the fabric.
    pub fn own_range(&self, at: GlobalAddress, len: u64) -> Result<Option<OwnRange>, Cause> {
        if !self.fabric().capabilities().own_copies {
            return Ok(None);
        }
        let first = self.own_place(at, len)?;
        Ok(Some(OwnRange { first, len, _kept: self.registry().window().clone() }))
    }
}

impl OwnRange {
    /// Copies the bytes of a loan from `from` on, `len` of them, to `to` and on. A signal that is raised after that
    /// tells of all of them.
    #[inline]
    pub fn fill(&self, to: u64, used: &Use, from: u64, len: u64, caching: Caching) {
        assert!(to <= self.len && len <= self.len - to, "inside the range");
        let from = used.part(from, len);
        // SAFETY: inside the range and inside the loan, by the checks above.
        unsafe {
            let to = self.first.add(to as usize);
            match caching {
                Caching::Cached => copy::copy(from, to, len as usize),
                Caching::Streamed => copy::stream(from, to, len as usize),
            }
        }
        copy::fence_after_bulk(len as usize);
    }
}
