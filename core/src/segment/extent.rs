//! One entry of the extent table: what is registered, whether it lives, and who is using it.
//!
//! Only the owner writes `start`, `len`, `host` and `state`. An entry that was freed is used again for another
//! registration, so `state` carries a generation, and a reader reads it before and after the other fields.
//!
//! ```text
//! FREE --publish--> LIVE --retire--> DEAD --publish--> LIVE (next generation)
//! ```
//!
//! Memory that the user merely owns is given back to him by `retire`, which therefore waits for *sections*: a reader
//! adds itself and then looks whether the entry still lives; the owner sets DEAD and then looks who is inside. With
//! a full fence between on both sides, one of the two sees the other.

use super::layout::EXTENT_BYTES;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::{planted, relaxed_if_planted};

const FREE: u32 = 0;
const LIVE: u32 = 1;
const DEAD: u32 = 2;
const STATE: u32 = 3;

/// One entry of the extent table.
#[repr(C)]
#[derive(Debug)]
pub struct Extent {
    /// First byte as an offset in the range.
    start: AtomicU64,
    /// Length in bytes.
    len: AtomicU64,
    /// Address in the owner's process; 0 for job memory.
    host: AtomicU64,
    /// Bits 0-1: FREE, LIVE or DEAD; bits 2-31: generation. Written by the owner, read by all.
    state: AtomicU32,
    /// How many accesses are inside. Any rank adds and subtracts; the owner waits for zero.
    sections: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Extent>() as u64 == EXTENT_BYTES);
#[cfg(loom)]
const _: u64 = EXTENT_BYTES;

/// What a live entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentInfo {
    /// First byte as an offset in the range.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Address in the owner's process; 0 for job memory.
    pub host: u64,
}

impl ExtentInfo {
    /// How far inside all of `offset .. offset + bytes` begins, if it lies in there.
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
    /// What the entry says, if it lives.
    #[inline]
    pub fn facts(&self) -> Option<ExtentInfo> {
        let state = self.state.load(Ordering::Acquire); // SYNC extent-live
        let facts = ExtentInfo {
            start: self.start.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            host: self.host.load(Ordering::Relaxed),
        };
        if !planted("extent_reader_order") {
            fence(Ordering::Acquire); // SYNC extent-reuse
        }
        (state & STATE == LIVE && self.state.load(Ordering::Relaxed) == state).then_some(facts)
    }

    /// The owner registers something in an entry that does not live.
    pub fn publish(&self, facts: ExtentInfo) {
        let generation = (self.state.load(Ordering::Relaxed) | STATE).wrapping_add(1);
        self.start.store(facts.start, Ordering::Relaxed);
        self.len.store(facts.len, Ordering::Relaxed);
        self.host.store(facts.host, Ordering::Relaxed);
        let order = relaxed_if_planted("extent_live_relaxed", Ordering::Release); // SYNC extent-live
        self.state.store(generation | LIVE, order);
    }

    /// The owner ends the registration. What is inside may still be used by those that [`Extent::is_used`] counts.
    pub fn retire(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !STATE | DEAD, Ordering::Relaxed);
        // Whoever is inside is seen (SYNC extent-section); whoever sees what is published here next, sees DEAD or
        // later too (SYNC extent-reuse).
        if !planted("extent_owner_fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Whether somebody is inside. After `retire` nobody new comes in.
    pub fn is_used(&self) -> bool {
        self.sections.load(Ordering::Acquire) != 0 // SYNC extent-leave
    }

    /// A reader announces itself; it must then look at the facts again.
    pub fn begin_section(&self) {
        self.sections.fetch_add(1, Ordering::Relaxed);
        if !planted("extent_section_fence") {
            fence(Ordering::SeqCst); // SYNC extent-section
        }
    }

    /// The reader is done.
    pub fn end_section(&self) {
        let order = relaxed_if_planted("extent_leave_relaxed", Ordering::Release); // SYNC extent-leave
        self.sections.fetch_sub(1, order);
    }
}
