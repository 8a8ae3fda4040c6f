//! Signals and signal lines: counters that report the arrival of data. Accessed directly in mapped memory, else by
//! the fabric.
#![allow(unsafe_code)]
//! Unsafe: atomics in a mapped system piece of a rank. A fabric makes each `SignalCell` and `SignalLine`. They are
//! used only while that fabric lives, which keeps the pieces mapped. Signal memory is never unmapped or reused for
//! anything else.

use super::signal_line::{LineWords, PAYLOAD_WORDS, RaiseTags};
use super::{Fabric, Poison, SignalControl};
use crate::base::sync::{AtomicU64, Ordering};
use crate::node::node_state::RankState;
use crate::node::park::WakeMode;
use crate::segment::GlobalAddress;
use crate::segment::layout::LINE_PAYLOAD;
use std::ptr::NonNull;

/// The payload of a signal line: up to 48 bytes, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinePayload {
    words: [u64; PAYLOAD_WORDS],
    used: u8,
}

impl LinePayload {
    /// Makes a payload from the bytes of one value of at most 48 bytes.
    #[inline]
    pub fn of<T: bytemuck::NoUninit>(value: &T) -> LinePayload {
        const { assert!(size_of::<T>() <= LINE_PAYLOAD, "a signal line carries at most 48 bytes") };
        let mut words = [0; PAYLOAD_WORDS];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size_of::<T>()]
            .copy_from_slice(bytemuck::bytes_of(value));
        LinePayload { words, used: size_of::<T>().div_ceil(8) as u8 }
    }

    /// Converts the bytes to a value.
    #[inline]
    pub fn to<T: bytemuck::AnyBitPattern>(&self) -> T {
        const { assert!(size_of::<T>() <= LINE_PAYLOAD, "a signal line carries at most 48 bytes") };
        bytemuck::pod_read_unaligned(&bytemuck::cast_slice::<u64, u8>(&self.words)[..size_of::<T>()])
    }
}

/// How to read one of this rank's own signals.
#[derive(Clone, Copy, Debug)]
pub enum SignalCell {
    /// In memory that this process has mapped.
    Direct(DirectCell),
    /// By a call of the fabric.
    Via(GlobalAddress),
}

/// Pointer to the first word of a signal line in mapped memory. The payload words follow it.
#[derive(Clone, Copy, Debug)]
pub struct DirectCell(NonNull<AtomicU64>);

// SAFETY: a pointer to atomics that any thread may access; the caller of `new` keeps them mapped.
unsafe impl Send for DirectCell {}
// SAFETY: a pointer to atomics that any thread may access; the caller of `new` keeps them mapped.
unsafe impl Sync for DirectCell {}

impl DirectCell {
    /// Makes a cell of the line whose counter lies at `word`.
    ///
    /// # Safety
    /// `word` must be the start of a signal (two lines of 64 bytes) in signal memory that stays mapped while the cell
    /// is used.
    pub unsafe fn new(word: NonNull<u8>) -> DirectCell {
        DirectCell(word.cast())
    }

    #[inline]
    fn words(&self) -> &LineWords {
        // SAFETY: the caller of `new` keeps the first line of the signal mapped; it is made of atomics.
        unsafe { self.0.cast().as_ref() }
    }

    /// Returns the counter.
    #[inline]
    pub fn counter(&self) -> &AtomicU64 {
        &self.words().counter
    }

    /// Returns the second line of the signal: which command queues wait for it, and whether it is poisoned.
    #[inline]
    pub fn control(&self) -> &SignalControl {
        // SAFETY: the caller of `new` keeps both lines of the signal mapped; they are made of atomics.
        unsafe { self.0.cast::<LineWords>().add(1).cast::<SignalControl>().as_ref() }
    }

    /// Poisons the signal. Returns false if it was poisoned before.
    pub fn poison(&self, poison: Poison) -> bool {
        self.control().poison(self.counter(), poison)
    }

    /// Returns the tags of the start whose raise the caller has seen in the counter, and of those around it. Only for
    /// signals whose raises are all tagged.
    #[inline(always)]
    pub fn tags(&self) -> RaiseTags {
        self.words().tags()
    }

    /// Stores the tag of a start, numbered from 1, without a raise. Only for signals that are raised by additions, and
    /// whose tags the caller alone stores. A rank that sees what the caller writes later sees the tag.
    pub fn store_tag(&self, start: u32, tag: u32) {
        self.words().store_tag(start, tag);
    }

    /// Removes all tags of starts numbered from 1. Called by the owner before another rank stores tags.
    pub fn clear_tags(&self) {
        self.words().clear_tags();
    }

    /// Copies the first `used` words of the payload, if it still is the one that came with `value`.
    #[inline]
    pub fn payload(&self, value: u64, used: usize) -> Option<LinePayload> {
        let words = self.words().read(value, used)?;
        Some(LinePayload { words, used: used.min(PAYLOAD_WORDS) as u8 })
    }
}

impl SignalCell {
    /// Loads the counter. Bytes put before the raise that it shows are visible after this call.
    #[inline]
    pub fn read(&self, fabric: &dyn Fabric) -> u64 {
        match self {
            SignalCell::Direct(cell) => cell.counter().load(Ordering::Acquire), // SYNC signal-raise
            SignalCell::Via(signal) => fabric.read_signal(*signal),
        }
    }

    /// Returns the value in the payload, if the counter is still `value`; `None` if the writer has begun another.
    #[inline]
    pub fn read_payload<T: bytemuck::AnyBitPattern>(&self, fabric: &dyn Fabric, value: u64) -> Option<T> {
        let payload = match self {
            SignalCell::Direct(cell) => cell.payload(value, size_of::<T>().div_ceil(8)),
            SignalCell::Via(signal) => fabric.read_line(*signal, value),
        };
        payload.map(|payload| payload.to())
    }
}

/// A peer's signal line that only this rank writes.
#[derive(Clone, Copy, Debug)]
pub enum SignalLine<'f> {
    /// In mapped memory: costs a few stores.
    Direct(DirectLine<'f>),
    /// By calls of the fabric.
    Via(FabricLine<'f>),
}

/// A line in mapped memory, and its owner's rank state.
#[derive(Clone, Copy, Debug)]
pub struct DirectLine<'f> {
    cell: DirectCell,
    rank_state: &'f RankState,
    mode: WakeMode,
}

/// A line that only the fabric can reach.
#[derive(Clone, Copy, Debug)]
pub struct FabricLine<'f> {
    /// The fabric.
    pub fabric: &'f dyn Fabric,
    /// The line's address.
    pub signal: GlobalAddress,
}

impl<'f> DirectLine<'f> {
    /// Makes a line from its cell and the rank state of its owner.
    pub fn new(cell: DirectCell, rank_state: &'f RankState, mode: WakeMode) -> DirectLine<'f> {
        DirectLine { cell, rank_state, mode }
    }

    /// Returns the cell, which stays valid while the fabric lives.
    pub fn cell(&self) -> DirectCell {
        self.cell
    }

    /// Returns how its owner is woken.
    pub fn mode(&self) -> WakeMode {
        self.mode
    }

    /// Sets the counter to `value` in a start of that number, with its tag instead of a payload, and wakes the owner if
    /// it sleeps. What the caller wrote before is visible to a rank that sees the value.
    #[inline(always)]
    pub fn raise_tagged(&self, value: u64, start: u32, tag: u32) {
        self.cell.words().raise_tagged(value, start, tag);
        if self.rank_state.park().needs_wake(self.mode) {
            self.rank_state.wake_futex();
        }
    }

    /// Writes the payload and then the counter, and wakes the owner if it sleeps.
    #[inline]
    pub fn write(&self, payload: LinePayload, value: u64) {
        self.cell.words().write(&payload.words[..payload.used as usize], value);
        if self.rank_state.park().needs_wake(self.mode) {
            self.rank_state.wake_futex();
        }
    }
}
