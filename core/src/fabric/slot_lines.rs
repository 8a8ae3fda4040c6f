//! Slot lines: the words through which two ranks exchange messages.
#![allow(unsafe_code)]
//! Unsafe: atomics in the mapped arena of a rank. What they lie in is kept mapped by the structure that points there,
//! wherever in the arena it is made to point.
//!
//! A slot line is 64 bytes of some rank's arena. One peer writes it, its owner reads it:
//!
//! | word | is | written |
//! |---|---|---|
//! | 0 | the main word | after the payload: whoever sees it sees the payload (`SYNC slot-main`) |
//! | 1 | the side word | by itself (`SYNC slot-side`) |
//! | 2-7 | payload | before the main word |
//!
//! Both words only grow, across their wrap, so that a fabric may drop a write that a later one has overtaken. Nothing
//! says that a payload may be overwritten but the protocol of those who use the line: the reader tells the writer
//! by a line of the writer's own. Data and the posting of the next receive travel in one line that way, and move
//! between two processors once.

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

/// One of the two words of a slot line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotWord {
    /// Word 0, which the payload belongs to.
    Main,
    /// Word 1.
    Side,
}

/// What is written into a slot line in one go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlotWrite<'p> {
    /// Which word.
    pub word: SlotWord,
    /// Its new value, never behind the present one.
    pub value: u64,
    /// The first words of the payload; only with the main word.
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
    /// The writer's part: payload, then main word.
    #[inline(always)]
    pub fn write(&self, payload: &[u64], value: u64) {
        for (word, &value) in self.payload.iter().zip(payload) {
            word.store(value, Ordering::Relaxed);
        }
        let order = relaxed_if_planted("slot_main_relaxed", Ordering::Release); // SYNC slot-main
        self.words[0].store(value, order);
    }

    /// The writer's part: the side word.
    #[inline(always)]
    pub fn write_side(&self, value: u64) {
        let order = relaxed_if_planted("slot_side_relaxed", Ordering::Release); // SYNC slot-side
        self.words[1].store(value, order);
    }

    /// The reader's part: one of the words.
    #[inline(always)]
    pub fn read(&self, word: SlotWord) -> u64 {
        let order = relaxed_if_planted("slot_reader_relaxed", Ordering::Acquire); // SYNC slot-main slot-side
        self.words[word as usize].load(order)
    }

    /// The main word, where both sides change it in one step: a claim.
    pub fn main(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// One word of the payload, after the main word that it came with was seen.
    #[inline(always)]
    pub fn payload(&self, index: usize) -> u64 {
        self.payload[index].load(Ordering::Relaxed)
    }

    /// The line's owner will let both sides take turns, from 0 on, by the last word of the payload, which no write
    /// brings then. The other side knows when it sees what the owner writes after that.
    pub fn begin_turns(&self) {
        self.payload[SLOT_PAYLOAD - 1].store(0, Ordering::Relaxed);
    }

    /// The next turn, which nobody else gets. It orders nothing: what a turn is about was known to both before.
    pub fn take_turn(&self) -> u64 {
        self.payload[SLOT_PAYLOAD - 1].fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a write as a fabric brings it: one that was overtaken is dropped. For one writer at a time.
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
    /// Never null; as many lines as were asked for follow, wherever it points.
    first: AtomicPtr<SlotLine>,
    rank_state: NonNull<RankState>,
    mode: WakeMode,
    /// Keep memory and rank state where they are.
    _kept: (Arc<MappedRange>, Arc<NodeState>),
}

// SAFETY: pointers to atomics in memory that is shared by design and kept by the structure.
unsafe impl Send for DirectSlots {}
// SAFETY: as above.
unsafe impl Sync for DirectSlots {}

impl DirectSlots {
    /// The `lines` slot lines at `at`, in `window`, which is the range of that rank.
    pub fn new(
        window: &Arc<MappedRange>,
        node_state: &Arc<NodeState>,
        at: GlobalAddress,
        lines: u64,
    ) -> Result<DirectSlots, Cause> {
        Ok(DirectSlots {
            first: AtomicPtr::new(find(window, at, lines)?.as_ptr()),
            rank_state: NonNull::from(node_state.rank_state(at.rank())),
            mode: node_state.wake_mode(),
            _kept: (window.clone(), node_state.clone()),
        })
    }

    /// From now on these are the `lines` slot lines at `at`, of the same rank.
    fn move_to(&self, at: GlobalAddress, lines: u64) -> Result<(), Cause> {
        self.first.store(find(&self._kept.0, at, lines)?.as_ptr(), Ordering::Relaxed);
        Ok(())
    }

    /// Brings a write to the first line, as a fabric does, and wakes nobody. One that was overtaken is dropped.
    pub fn take(&self, write: &SlotWrite<'_>) {
        self.line(0).take(write);
    }

    /// Writes into the first line and wakes its owner if it sleeps.
    pub fn write_first(&self, write: &SlotWrite<'_>) {
        self.write(0, *write);
    }

    /// Word 0 to 7 of the first line.
    pub fn look(&self, word: usize) -> u64 {
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

    /// The line of that number; the caller knows how many there are.
    #[inline(always)]
    fn line(&self, index: usize) -> &SlotLine {
        // Relaxed: wherever it points there are lines. Who may use them is said by who moved it.
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: `Slots` checks the number; all lines lie in the mapped arena, to which it always points.
        unsafe { &*first.add(index) }
    }

    #[inline(always)]
    fn wake(&self) {
        // SAFETY: the node state is kept.
        let rank_state = unsafe { self.rank_state.as_ref() };
        if rank_state.park().needs_wake(self.mode) {
            rank_state.wake_futex();
        }
    }
}

/// `LINES` slot lines of one rank: its own, to be read, or a peer's, of which this rank is the one writer.
#[derive(Debug)]
pub struct Slots<const LINES: usize> {
    way: SlotAccess,
}

#[derive(Debug)]
enum SlotAccess {
    Direct(DirectSlots),
    Via(Arc<dyn Fabric>, AtomicU64),
}

/// That so many slot lines lie there.
fn check(at: GlobalAddress, lines: u64) -> Result<(), Cause> {
    let fits = is_slot_line(at.offset()) && lines <= (ARENA + ARENA_BYTES - at.offset()) / SLOT_LINE;
    if fits { Ok(()) } else { Err(Cause::Argument(format!("no slots lie at {at}"))) }
}

/// Where these lines lie in `window`, checked and mapped.
fn find(window: &MappedRange, at: GlobalAddress, lines: u64) -> Result<NonNull<SlotLine>, Cause> {
    check(at, lines)?;
    let system = window.system().map_err(|error| error.cause().clone())?;
    // SAFETY: the arena lies in the system piece, which is mapped while the window lives.
    Ok(unsafe { system.add(at.offset() as usize) }.cast())
}

impl<const LINES: usize> Slots<LINES> {
    /// The slot lines from `at` on, in this process's reach or through `fabric`.
    pub fn new(fabric: &Arc<dyn Fabric>, at: GlobalAddress) -> Result<Slots<LINES>, Cause> {
        let lines = LINES as u64;
        check(at, lines)?;
        let way = match fabric.slots(at, lines)? {
            Some(direct) => SlotAccess::Direct(direct),
            None => SlotAccess::Via(fabric.clone(), AtomicU64::new(at.bits())),
        };
        Ok(Slots { way })
    }

    /// From now on these are the slot lines at `at`, in the arena of the same rank. Whoever uses them at the time may
    /// still use the old ones: threads that are to use the new ones must be told of the move.
    pub fn move_to(&self, at: GlobalAddress) -> Result<(), Cause> {
        let lines = LINES as u64;
        match &self.way {
            SlotAccess::Direct(slots) => slots.move_to(at, lines),
            SlotAccess::Via(_, old) => {
                check(at, lines)?;
                old.store(at.bits(), Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Whether they lie in this process's reach.
    pub fn is_direct(&self) -> bool {
        matches!(self.way, SlotAccess::Direct(_))
    }

    /// Writes into a line of a peer's, and wakes the peer if it sleeps. Always taken on mapped memory.
    #[inline(always)]
    pub fn write(&self, line: usize, write: SlotWrite<'_>) -> Result<(), Refused> {
        assert!(line < LINES);
        match &self.way {
            SlotAccess::Direct(slots) => {
                slots.write(line, write);
                Ok(())
            }
            SlotAccess::Via(fabric, at) => via((&**fabric, at), line, write.word, write.value, write.payload),
        }
    }

    /// A word of an own line. What was written with it can be read once it is seen.
    #[inline(always)]
    pub fn read(&self, line: usize, word: SlotWord) -> u64 {
        assert!(line < LINES);
        match &self.way {
            SlotAccess::Direct(slots) => slots.line(line).read(word),
            SlotAccess::Via(fabric, at) => look(&**fabric, at, line, word as usize),
        }
    }

    /// An own line will be read and its main word changed in one step: on mapped memory the line is fetched for both at
    /// once.
    #[inline(always)]
    pub fn will_change(&self, line: usize) {
        assert!(line < LINES);
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if let SlotAccess::Direct(slots) = &self.way {
            let line: *const SlotLine = slots.line(line);
            // SAFETY: a prefetch changes nothing, whatever the address. The compiler's own function would fetch the
            // line for reading, since the least x86_64 lacks the other instruction: there it does nothing.
            unsafe { std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
    }

    /// An own line will be read soon, and nobody writes it before: on mapped memory it is fetched meanwhile.
    #[inline(always)]
    pub fn will_read(&self, line: usize) {
        assert!(line < LINES);
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        if let SlotAccess::Direct(slots) = &self.way {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line: *const SlotLine = slots.line(line);
            // SAFETY: a prefetch changes nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
    }

    /// Both sides will take turns on an own line, from 0 on.
    pub fn begin_turns(&self, line: usize) {
        assert!(line < LINES);
        if let SlotAccess::Direct(slots) = &self.way {
            slots.line(line).begin_turns();
        }
    }

    /// The next turn on a line, whosever it is: no other call gets it. Where the line is not in this process's reach
    /// nobody has a turn: the number is larger than any.
    pub fn take_turn(&self, line: usize) -> u32 {
        assert!(line < LINES);
        match &self.way {
            SlotAccess::Direct(slots) => u32::try_from(slots.line(line).take_turn()).unwrap_or(u32::MAX),
            SlotAccess::Via(..) => u32::MAX,
        }
    }

    /// A word of the payload of an own line, after its main word was seen.
    #[inline(always)]
    pub fn payload(&self, line: usize, index: usize) -> u64 {
        assert!(line < LINES && index < SLOT_PAYLOAD);
        match &self.way {
            SlotAccess::Direct(slots) => slots.line(line).payload(index),
            SlotAccess::Via(fabric, at) => look(&**fabric, at, line, 2 + index),
        }
    }
}

/// The parts of a write, one by one: whoever writes directly must not have put them together in memory before.
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
fn look(fabric: &dyn Fabric, at: &AtomicU64, line: usize, word: usize) -> u64 {
    fabric.read_slot(line_at(at, line), word)
}

fn line_at(first: &AtomicU64, line: usize) -> GlobalAddress {
    GlobalAddress::from_bits(first.load(Ordering::Relaxed)).add(line as u64 * SLOT_LINE)
}
