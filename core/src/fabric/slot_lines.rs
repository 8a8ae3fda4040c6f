//! Slot lines: the shared words through which two ranks exchange messages.
#![allow(unsafe_code)]
//! Unsafe: atomics in the mapped arena of a rank. The structure that points into the arena keeps it mapped, whichever
//! lines it points to.
//!
//! A slot line is 64 bytes in the arena of its owner. One peer writes it, and its owner reads it. Lines that hold a
//! claim are an exception: both sides change the main word by compare-and-swap, and the part counter by addition.
//!
//! | word | holds | written |
//! |---|---|---|
//! | 0 | the main word | after the payload: a reader that sees it sees the payload (`SYNC slot-main`) |
//! | 1 | the side word | independently (`SYNC slot-side`) |
//! | 2-7 | payload | before the main word |
//!
//! Both words only grow, also across their wrap, so a fabric may drop a write that a later one has overtaken. The
//! line itself does not say when its payload may be overwritten. The protocol of its users decides that: the reader
//! informs the writer through a line that the writer owns. So data and the posting of the next receive travel in one
//! line, which moves between the two processors once.

use super::{Fabric, Refused};
use crate::base::Cause;
use crate::base::relaxed_if_planted;
use crate::base::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::node::node_state::{NodeState, RankState};
use crate::node::park::WakeMode;
use crate::segment::layout::{ARENA, ARENA_BYTES, SLOT_LINE, is_slot_line};
use crate::segment::{GlobalAddress, MappedRange};
use std::ptr::NonNull;
use std::sync::Arc;

/// Words of payload in a slot line.
pub const SLOT_PAYLOAD: usize = 6;

/// Selects one of the two words of a slot line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotWord {
    /// Word 0, written after its payload.
    Main,
    /// Word 1.
    Side,
}

/// One write into a slot line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlotWrite<'p> {
    /// The word to write.
    pub word: SlotWord,
    /// Its new value, which is never older than the present one.
    pub value: u64,
    /// The first words of the payload; empty for the side word.
    pub payload: &'p [u64],
}

/// One slot line in memory.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SlotLine {
    words: [AtomicU64; 2],
    payload: [AtomicU64; SLOT_PAYLOAD],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SlotLine>() as u64 == SLOT_LINE);

impl Default for SlotLine {
    fn default() -> SlotLine {
        SlotLine {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            payload: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl SlotLine {
    /// Called by the writer: stores the payload, then the main word.
    #[inline(always)]
    pub fn write(&self, payload: &[u64], value: u64) {
        for (word, &value) in self.payload.iter().zip(payload) {
            word.store(value, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("slot_main_relaxed", Ordering::Release); // SYNC slot-main
        self.words[0].store(value, order);
    }

    /// Called by the writer: stores the side word.
    #[inline(always)]
    pub fn write_side(&self, value: u64) {
        let order = relaxed_if_planted("slot_side_relaxed", Ordering::Release); // SYNC slot-side
        self.words[1].store(value, order);
    }

    /// Called by the reader: loads one of the two words.
    #[inline(always)]
    pub fn read(&self, word: SlotWord) -> u64 {
        let order = relaxed_if_planted("slot_reader_relaxed", Ordering::Acquire); // SYNC slot-main slot-side
        self.words[word as usize].load(order)
    }

    /// Returns the main word, for lines whose main word both sides change by compare-and-swap: a claim.
    pub fn main(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// Loads one payload word. The caller has seen the main word that came with it.
    #[inline(always)]
    pub fn payload(&self, index: usize) -> u64 {
        self.payload[index].load(Ordering::Relaxed)
    }

    /// Resets the part counter to 0. The counter is the last payload word, which no write uses then. Called by the
    /// line's owner; the other side knows of it when it sees what the owner writes afterwards.
    pub fn begin_parts(&self) {
        self.payload[SLOT_PAYLOAD - 1].store(0, Ordering::Relaxed);
    }

    /// Returns the number of the next part, which no other call gets. Relaxed: both sides knew what the parts are
    /// before.
    pub fn take_part(&self) -> u64 {
        self.payload[SLOT_PAYLOAD - 1].fetch_add(1, Ordering::Relaxed)
    }

    /// Applies a write that a fabric delivers, unless a later one has overtaken it. One writer at a time.
    pub fn take(&self, write: &SlotWrite<'_>) {
        let behind = write.value.wrapping_sub(self.words[write.word as usize].load(Ordering::Relaxed)) as i64;
        match write.word {
            _ if behind < 0 => {}
            SlotWord::Main => self.write(write.payload, write.value),
            SlotWord::Side => self.write_side(write.value),
        }
    }
}

/// Slot lines in a rank's arena that this process has mapped.
#[derive(Debug)]
pub struct DirectSlots {
    /// Never null. At least the requested number of lines follow, wherever it points.
    first: AtomicPtr<SlotLine>,
    rank_state: NonNull<RankState>,
    mode: WakeMode,
    /// Keep the memory and the rank state mapped.
    _keep_alive: (Arc<MappedRange>, Arc<NodeState>),
}

// SAFETY: pointers to atomics that any thread may access; the structure keeps their memory mapped.
unsafe impl Send for DirectSlots {}
// SAFETY: pointers to atomics that any thread may access; the structure keeps their memory mapped.
unsafe impl Sync for DirectSlots {}

impl DirectSlots {
    /// Makes the `lines` slot lines at `at`, in `range`, which is that rank's mapped range.
    pub fn new(
        range: &Arc<MappedRange>,
        node_state: &Arc<NodeState>,
        at: GlobalAddress,
        lines: u64,
    ) -> Result<DirectSlots, Cause> {
        Ok(DirectSlots {
            first: AtomicPtr::new(find(range, at, lines)?.as_ptr()),
            rank_state: NonNull::from(node_state.rank_state(at.rank())),
            mode: node_state.wake_mode(),
            _keep_alive: (range.clone(), node_state.clone()),
        })
    }

    /// Moves to the `lines` slot lines at `at`, of the same rank.
    fn move_to(&self, at: GlobalAddress, lines: u64) -> Result<(), Cause> {
        self.first.store(find(&self._keep_alive.0, at, lines)?.as_ptr(), Ordering::Relaxed);
        Ok(())
    }

    /// Applies a write to the first line, as a fabric delivers it, unless a later one has overtaken it. Wakes nobody.
    pub fn take(&self, write: &SlotWrite<'_>) {
        self.line(0).take(write);
    }

    /// Writes into the first line and wakes its owner if it sleeps.
    pub fn write_first(&self, write: &SlotWrite<'_>) {
        self.write(0, *write);
    }

    /// Loads word 0 to 7 of the first line.
    pub fn read_word(&self, word: usize) -> u64 {
        match word {
            0 => self.line(0).read(SlotWord::Main),
            1 => self.line(0).read(SlotWord::Side),
            _ => self.line(0).payload(word - 2),
        }
    }

    #[inline(always)]
    fn write(&self, line: usize, write: SlotWrite<'_>) {
        match write.word {
            SlotWord::Main => self.line(line).write(write.payload, write.value),
            SlotWord::Side => self.line(line).write_side(write.value),
        }
        self.wake();
    }

    /// Returns a line. The caller has checked the number.
    #[inline(always)]
    fn line(&self, index: usize) -> &SlotLine {
        // Relaxed: wherever it points there are lines. The thread that moved it tells others when they may use them.
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: `Slots` checks the number; all lines lie in the mapped arena, to which it always points.
        unsafe { &*first.add(index) }
    }

    #[inline(always)]
    fn wake(&self) {
        // SAFETY: `_keep_alive` holds the node state that the rank state is a part of.
        let rank_state = unsafe { self.rank_state.as_ref() };
        if rank_state.park().needs_wake(self.mode) {
            rank_state.wake_futex();
        }
    }
}

/// `LINES` slot lines of one rank: this rank's own, for reading, or a peer's, which only this rank writes.
#[derive(Debug)]
pub struct Slots<const LINES: usize> {
    access: SlotAccess,
}

#[derive(Debug)]
enum SlotAccess {
    Direct(DirectSlots),
    Via(Arc<dyn Fabric>, AtomicU64),
}

/// Checks that `lines` slot lines lie at `at`.
fn check(at: GlobalAddress, lines: u64) -> Result<(), Cause> {
    let fits = is_slot_line(at.offset()) && lines <= (ARENA + ARENA_BYTES - at.offset()) / SLOT_LINE;
    if fits { Ok(()) } else { Err(Cause::Argument(format!("no slots lie at {at}"))) }
}

/// Returns the address of these lines in `range`, checked and mapped.
fn find(range: &MappedRange, at: GlobalAddress, lines: u64) -> Result<NonNull<SlotLine>, Cause> {
    check(at, lines)?;
    let system = range.system().map_err(|error| error.cause().clone())?;
    // SAFETY: the arena lies in the system piece, which is mapped while the range lives.
    Ok(unsafe { system.add(at.offset() as usize) }.cast())
}

impl<const LINES: usize> Slots<LINES> {
    /// Makes the slot lines from `at` on, accessed directly or through `fabric`.
    pub fn new(fabric: &Arc<dyn Fabric>, at: GlobalAddress) -> Result<Slots<LINES>, Cause> {
        let lines = LINES as u64;
        check(at, lines)?;
        let access = match fabric.slots(at, lines)? {
            Some(direct) => SlotAccess::Direct(direct),
            None => SlotAccess::Via(fabric.clone(), AtomicU64::new(at.bits())),
        };
        Ok(Slots { access })
    }

    /// Moves to the slot lines at `at`, in the arena of the same rank. Threads that use the lines meanwhile may still
    /// use the old ones: the caller must tell other threads when to use the new ones.
    pub fn move_to(&self, at: GlobalAddress) -> Result<(), Cause> {
        let lines = LINES as u64;
        match &self.access {
            SlotAccess::Direct(slots) => slots.move_to(at, lines),
            SlotAccess::Via(_, old) => {
                check(at, lines)?;
                old.store(at.bits(), Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Returns true if this process accesses the lines directly.
    pub fn is_direct(&self) -> bool {
        matches!(self.access, SlotAccess::Direct(_))
    }

    /// Writes into a peer's line and wakes the peer if it sleeps. Never refused on mapped memory.
    #[inline(always)]
    pub fn write(&self, line: usize, write: SlotWrite<'_>) -> Result<(), Refused> {
        assert!(line < LINES);
        match &self.access {
            SlotAccess::Direct(slots) => {
                slots.write(line, write);
                Ok(())
            }
            SlotAccess::Via(fabric, at) => via((&**fabric, at), line, write.word, write.value, write.payload),
        }
    }

    /// Loads a word of an own line. What was written before it can be read afterwards.
    #[inline(always)]
    pub fn read(&self, line: usize, word: SlotWord) -> u64 {
        assert!(line < LINES);
        match &self.access {
            SlotAccess::Direct(slots) => slots.line(line).read(word),
            SlotAccess::Via(fabric, at) => read_word(&**fabric, at, line, word as usize),
        }
    }

    /// Prefetches an own line that will be read and whose main word will then be changed by compare-and-swap. Does
    /// nothing without mapped memory.
    #[inline(always)]
    pub fn prefetch_for_write(&self, line: usize) {
        assert!(line < LINES);
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if let SlotAccess::Direct(slots) = &self.access {
            let line: *const SlotLine = slots.line(line);
            // SAFETY: a prefetch changes nothing, whatever the address. The compiler's intrinsic would fetch the line
            // for reading, since the x86_64 baseline lacks `prefetchw`.
            unsafe { std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
    }

    /// Prefetches an own line that will be read soon and is not written before. Does nothing without mapped memory.
    #[inline(always)]
    pub fn prefetch_for_read(&self, line: usize) {
        assert!(line < LINES);
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if let SlotAccess::Direct(slots) = &self.access {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line: *const SlotLine = slots.line(line);
            // SAFETY: a prefetch changes nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
    }

    /// Resets the part counter of an own line to 0.
    pub fn begin_parts(&self, line: usize) {
        assert!(line < LINES);
        if let SlotAccess::Direct(slots) = &self.access {
            slots.line(line).begin_parts();
        }
    }

    /// Returns the number of the next part by the counter of a line, own or the peer's; no other call gets it.
    /// Without mapped memory it is `u32::MAX`, so that the caller gets no part.
    pub fn take_part(&self, line: usize) -> u32 {
        assert!(line < LINES);
        match &self.access {
            SlotAccess::Direct(slots) => u32::try_from(slots.line(line).take_part()).unwrap_or(u32::MAX),
            SlotAccess::Via(..) => u32::MAX,
        }
    }

    /// Loads a payload word of an own line. The caller has seen its main word.
    #[inline(always)]
    pub fn payload(&self, line: usize, index: usize) -> u64 {
        assert!(line < LINES && index < SLOT_PAYLOAD);
        match &self.access {
            SlotAccess::Direct(slots) => slots.line(line).payload(index),
            SlotAccess::Via(fabric, at) => read_word(&**fabric, at, line, 2 + index),
        }
    }
}

/// Takes the parts of a write one by one, so that a direct write need not build a structure in memory first.
#[cold]
#[inline(never)]
fn via(
    (fabric, at): (&dyn Fabric, &AtomicU64),
    line: usize,
    word: SlotWord,
    value: u64,
    payload: &[u64],
) -> Result<(), Refused> {
    fabric.write_slot(line_at(at, line), &SlotWrite { word, value, payload })
}

#[cold]
#[inline(never)]
fn read_word(fabric: &dyn Fabric, at: &AtomicU64, line: usize, word: usize) -> u64 {
    fabric.read_slot(line_at(at, line), word)
}

fn line_at(first: &AtomicU64, line: usize) -> GlobalAddress {
    GlobalAddress::from_bits(first.load(Ordering::Relaxed)).add(line as u64 * SLOT_LINE)
}
