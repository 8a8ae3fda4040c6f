//! Signals and signal lines: the words that tell of arrivals, directly where memory is mapped, else by the fabric.
#![allow(unsafe_code)]
//! Unsafe: atomics in a mapped system piece of a rank. A `SignalCell` or `SignalLine` is made by a fabric and used only
//! while that fabric, which keeps the pieces mapped, lives; signal memory is never unmapped or given to others.

use super::signal_line::{LineWords, PAYLOAD_WORDS};
use super::{Fabric, Poison, SignalControl};
use crate::base::sync::{AtomicU64, Ordering};
use crate::node::node_state::RankState;
use crate::node::park::WakeMode;
use crate::segment::GlobalAddress;
use crate::segment::layout::LINE_PAYLOAD;
use std::ptr::NonNull;

/// The payload of a signal line: up to 48 bytes, the rest zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinePayload {
    words: [u64; PAYLOAD_WORDS],
    used: u8,
}

impl LinePayload {
    /// The bytes of one value of at most 48 bytes.
    #[inline]
    pub fn of<T: bytemuck::NoUninit>(value: &T) -> LinePayload {
        const { assert!(size_of::<T>() <= LINE_PAYLOAD, "a signal line carries at most 48 bytes") };
        let mut words = [0; PAYLOAD_WORDS];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size_of::<T>()]
            .copy_from_slice(bytemuck::bytes_of(value));
        LinePayload { words, used: size_of::<T>().div_ceil(8) as u8 }
    }

    /// The value that the bytes are.
    #[inline]
    pub fn to<T: bytemuck::AnyBitPattern>(&self) -> T {
        const { assert!(size_of::<T>() <= LINE_PAYLOAD, "a signal line carries at most 48 bytes") };
        bytemuck::pod_read_unaligned(&bytemuck::cast_slice::<u64, u8>(&self.words)[..size_of::<T>()])
    }
}

/// Where one of this rank's own signals is read.
#[derive(Clone, Copy, Debug)]
pub enum SignalCell {
    /// In memory that this process maps.
    Direct(DirectCell),
    /// By asking the fabric.
    Via(GlobalAddress),
}

/// The first word of a signal line in mapped memory; the payload's words follow it.
#[derive(Clone, Copy, Debug)]
pub struct DirectCell(NonNull<AtomicU64>);

// SAFETY: a pointer to atomics in memory that is shared by design.
unsafe impl Send for DirectCell {}
// SAFETY: as above.
unsafe impl Sync for DirectCell {}

impl DirectCell {
    /// The line whose counter lies at `word`.
    ///
    /// # Safety
    /// `word` must be the start of a signal (two lines of 64 bytes) in signal memory, mapped while the cell is used.
    pub unsafe fn new(word: NonNull<u8>) -> DirectCell {
        DirectCell(word.cast())
    }

    #[inline]
    fn words(&self) -> &LineWords {
        // SAFETY: the promise of `new`.
        unsafe { self.0.cast().as_ref() }
    }

    /// The counter.
    #[inline]
    pub fn counter(&self) -> &AtomicU64 {
        &self.words().counter
    }

    /// Who waits for it besides threads, and whether it is poisoned: the second line of a signal.
    #[inline]
    pub fn arming(&self) -> &SignalControl {
        // SAFETY: the promise of `new`; signals are two lines apart.
        unsafe { self.0.cast::<LineWords>().add(1).cast::<SignalControl>().as_ref() }
    }

    /// Poisons the signal; false if it was poisoned before.
    pub fn poison(&self, poison: Poison) -> bool {
        self.arming().poison(self.counter(), poison)
    }

    /// Copies the first `used` words of the payload out, if it still is the one that came with `value`.
    #[inline]
    pub fn payload(&self, value: u64, used: usize) -> Option<LinePayload> {
        let words = self.words().read(value, used)?;
        Some(LinePayload { words, used: used.min(PAYLOAD_WORDS) as u8 })
    }
}

impl SignalCell {
    /// The counter; bytes put before it was raised are visible once it is seen.
    #[inline]
    pub fn read(&self, fabric: &dyn Fabric) -> u64 {
        match self {
            SignalCell::Direct(cell) => cell.counter().load(Ordering::Acquire), // SYNC signal-raise
            SignalCell::Via(signal) => fabric.read_signal(*signal),
        }
    }

    /// The value in the payload of the line, if the counter is still `value`; `None` if its writer has gone on.
    #[inline]
    pub fn read_payload<T: bytemuck::AnyBitPattern>(&self, fabric: &dyn Fabric, value: u64) -> Option<T> {
        let payload = match self {
            SignalCell::Direct(cell) => cell.payload(value, size_of::<T>().div_ceil(8)),
            SignalCell::Via(signal) => fabric.read_line(*signal, value),
        };
        payload.map(|payload| payload.to())
    }
}

/// A signal line of a peer, of which this rank is the one writer.
#[derive(Clone, Copy, Debug)]
pub enum SignalLine<'f> {
    /// In mapped memory: a few stores.
    Direct(DirectLine<'f>),
    /// By the fabric.
    Via(FabricLine<'f>),
}

/// A line in mapped memory, and the rank state of its owner.
#[derive(Clone, Copy, Debug)]
pub struct DirectLine<'f> {
    cell: DirectCell,
    rank_state: &'f RankState,
    mode: WakeMode,
}

/// A line that only the fabric reaches.
#[derive(Clone, Copy, Debug)]
pub struct FabricLine<'f> {
    /// Who carries it.
    pub fabric: &'f dyn Fabric,
    /// Where it is.
    pub signal: GlobalAddress,
}

impl<'f> DirectLine<'f> {
    /// The line at `cell`, whose owner sits at `rank_state`.
    pub fn new(cell: DirectCell, rank_state: &'f RankState, mode: WakeMode) -> DirectLine<'f> {
        DirectLine { cell, rank_state, mode }
    }

    /// Its place, which stays while the fabric lives.
    pub fn cell(&self) -> DirectCell {
        self.cell
    }

    /// How its owner is woken.
    pub fn mode(&self) -> WakeMode {
        self.mode
    }

    /// The counter becomes `value`, without a payload; wakes the owner if it sleeps. What was written before is visible
    /// to whoever sees it.
    #[inline(always)]
    pub fn raise_to(&self, value: u64) {
        self.cell.words().raise_to(value);
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
