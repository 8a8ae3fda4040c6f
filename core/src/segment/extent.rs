//! One entry of the extent table: the range of a registration, its state, and the number of accesses in progress.
//!
//! Only the owner writes `start`, `len`, `host` and `state`. An entry that was freed is used again for another
//! registration. So `state` contains a generation, and a reader reads it before and after the other fields.
//!
//! ```text
//! FREE --publish--> LIVE --retire--> DEAD --publish--> LIVE (next generation)
//! ```
//!
//! When a registration of the user's own memory ends, peers must no longer access it. So the owner
//! waits until no access is in a *section*: a reader increments `sections` and then checks that the
//! entry is still LIVE; the owner sets DEAD and then checks `sections`. Both sides have a full
//! fence in between, so at least one of the two sees the other.

use super::layout::EXTENT_BYTES;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};

/// The `host` of *closed* job memory: its owner and one peer have references to it, so all operations on it are refused.
pub const CLOSED: u64 = 1;

const FREE: u32 = 0;
const LIVE: u32 = 1;
const DEAD: u32 = 2;
const STATE: u32 = 3;

/// One entry of the extent table.
#[repr(C)]
#[derive(Debug)]
pub struct Extent {
    /// Offset of the first byte in the range.
    start: AtomicU64,
    /// Length in bytes.
    len: AtomicU64,
    /// Address in the owner's process; 0 for job memory, [`CLOSED`] if that is closed.
    host: AtomicU64,
    /// Bits 0-1: FREE, LIVE or DEAD; bits 2-31: generation. Written by the owner, read by all.
    state: AtomicU32,
    /// The number of accesses in a section. Every rank adds and subtracts; the owner waits for zero.
    sections: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Extent>() as u64 == EXTENT_BYTES);
#[cfg(loom)]
const _: u64 = EXTENT_BYTES;

/// The fields of a live entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentInfo {
    /// Offset of the first byte in the range.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Address in the owner's process; 0 for job memory, [`CLOSED`] if that is closed.
    pub host: u64,
}

impl ExtentInfo {
    /// Returns the offset of `offset` in the registration, if it contains all of `offset .. offset + bytes`.
    #[inline]
    pub fn inside(&self, offset: u64, bytes: u64) -> Option<u64> {
        let inside = offset.wrapping_sub(self.start);
        (inside < self.len && bytes <= self.len - inside).then_some(inside)
    }
}

impl Default for Extent {
    fn default() -> Extent {
        Extent {
            start: AtomicU64::new(0),
            len: AtomicU64::new(0),
            host: AtomicU64::new(0),
            state: AtomicU32::new(FREE),
            sections: AtomicU32::new(0),
        }
    }
}

impl Extent {
    /// Returns the entry's fields if it is live.
    #[inline]
    pub fn info(&self) -> Option<ExtentInfo> {
        let state = self.state.load(Ordering::Acquire); // SYNC extent-live
        let info = ExtentInfo {
            start: self.start.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            host: self.host.load(Ordering::Relaxed),
        };
        if !planted("extent_reader_order") {
            fence(Ordering::Acquire); // SYNC extent-reuse
        }
        (state & STATE == LIVE && self.state.load(Ordering::Relaxed) == state).then_some(info)
    }

    /// Registers a range in an entry that is not live. Only the owner calls this.
    pub fn publish(&self, info: ExtentInfo) {
        let generation = (self.state.load(Ordering::Relaxed) | STATE).wrapping_add(1);
        self.start.store(info.start, Ordering::Relaxed);
        self.len.store(info.len, Ordering::Relaxed);
        self.host.store(info.host, Ordering::Relaxed);
        let order = relaxed_if_planted("extent_live_relaxed", Ordering::Release); // SYNC extent-live
        self.state.store(generation | LIVE, order);
    }

    /// Ends the registration. Only the owner calls this. Accesses in a section may still use the memory
    /// ([`Extent::is_used`]).
    pub fn retire(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !STATE | DEAD, Ordering::Relaxed);
        // After the fence, the owner sees each section that saw LIVE (SYNC extent-section). A reader that sees fields
        // published later in this entry also sees DEAD or a later state (SYNC extent-reuse).
        if !planted("extent_owner_fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Returns true if an access is in a section. After `retire`, no new access passes its check.
    pub fn is_used(&self) -> bool {
        self.sections.load(Ordering::Acquire) != 0 // SYNC extent-leave
    }

    /// Begins a section. The reader must then check [`Extent::info`] again.
    pub fn begin_section(&self) {
        self.sections.fetch_add(1, Ordering::Relaxed);
        if !planted("extent_section_fence") {
            fence(Ordering::SeqCst); // SYNC extent-section
        }
    }

    /// Ends a section.
    pub fn end_section(&self) {
        let order = relaxed_if_planted("extent_leave_relaxed", Ordering::Release); // SYNC extent-leave
        self.sections.fetch_sub(1, order);
    }
}
