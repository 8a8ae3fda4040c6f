//! The copy limit: what the C library's memcpy reaches on the processor that would copy, or on two processors that copy
//! one half each.
#![allow(unsafe_code)]
//! Unsafe: raw copies, stores and loads in ranges of shared memory that are checked to lie in the mapping. The two
//! sides take turns; release stores and acquire loads pass the turn, so no side reads what the other is writing. All
//! accesses are volatile or made by memcpy, through raw pointers. No references to the bytes exist.

use super::Side;
use super::shared_memory::{COPY_START, Shared};
use crate::cases::Stopwatch;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Blocks of words: two that count the turns of the sides, one that contains the start time of both copiers, and one
/// that contains the time of the follower's copies.
const TURNS: [usize; 2] = [400, 416];
const START: usize = 432;
const TOOK: usize = 448;
/// Bytes of a line. A fresh buffer is written and read one word per line.
const LINE: usize = 64;
/// Two copiers start this many ns after the lead has set the start time.
const APPOINTMENT_NS: u64 = 3_000;

/// Buffers for both directions. Their size is the same for all measurements.
#[derive(Debug)]
pub(crate) struct Copies {
    shared: Arc<Shared>,
    side: Side,
    area: usize,
    clock_ns: u64,
    turns: CopyTurns,
}

/// How many turns this side has passed to the other side and received from it.
#[derive(Debug, Default)]
struct CopyTurns {
    passed: Cell<u64>,
    taken: Cell<u64>,
}

impl Copies {
    /// Returns the bytes that the shared file needs for areas of `area` bytes: a source and a destination for each
    /// direction.
    pub(crate) fn bytes(area: usize) -> usize {
        4 * area
    }

    /// Allocates the memory of all buffers and touches the part that this side will use.
    pub(crate) fn new(shared: Arc<Shared>, side: Side, area: usize) -> io::Result<Copies> {
        if side == Side::Lead {
            shared.reserve_copies()?;
        }
        let this = Copies { shared, side, area, clock_ns: Stopwatch::cost_ns(), turns: CopyTurns::default() };
        assert!(Copies::bytes(area) <= this.shared.copy_bytes(), "the file is too small for the buffers");
        for place in [this.source(side, 0), this.target(side, 0)] {
            write_lines(place, area, 0);
        }
        Ok(this)
    }

    fn source(&self, side: Side, offset: usize) -> *mut u8 {
        self.place(2 * side.index(), offset)
    }

    /// Returns the destination of the copies of that side.
    fn target(&self, side: Side, offset: usize) -> *mut u8 {
        self.place(2 * side.index() + 1, offset)
    }

    fn place(&self, area: usize, offset: usize) -> *mut u8 {
        assert!(offset < self.area);
        self.shared.range(COPY_START + area * self.area + offset, self.area - offset)
    }

    fn turn(&self, side: Side) -> &AtomicU64 {
        self.shared.word(TURNS[side.index()])
    }
}

/// Copies of one size in one state, as one side makes them.
#[derive(Debug)]
pub(crate) struct CopyLimit {
    copies: Rc<Copies>,
    bytes: usize,
    /// Number of buffers in rotation.
    slots: usize,
    /// True if the sources are written and the destinations read between copies.
    fresh: bool,
    /// True if both processors copy, one half each.
    pair: bool,
    iterations: u64,
    count: u64,
}

impl CopyLimit {
    /// Prepares `iterations` copies of `bytes` bytes in each direction; the copies rotate through `slots` buffers.
    pub(crate) fn new(
        copies: Rc<Copies>,
        (bytes, slots): (usize, usize),
        fresh: bool,
        pair: bool,
        iterations: u64,
    ) -> CopyLimit {
        assert!(bytes * slots <= copies.area);
        CopyLimit { copies, bytes, slots, fresh, pair, iterations, count: 0 }
    }

    /// Returns bytes per second; the result is valid only on the lead. Returns `None` if the data that arrived are not
    /// those that were written.
    pub(crate) fn measure(&mut self) -> Option<f64> {
        self.run(self.slots as u64)?;
        let ours = self.run(self.iterations)?;
        let took = self.copies.shared.word(TOOK);
        if self.copies.side == Side::Follow {
            took.store(ours, Ordering::Relaxed);
        }
        self.meet();
        // In a pair the lead's clock sees both halves; otherwise each side has timed its own copies.
        let total = if self.pair { ours } else { ours + took.load(Ordering::Relaxed) };
        let moved = 2 * self.iterations * self.bytes as u64;
        self.meet();
        Some(moved as f64 / (total as f64 / 1e9))
    }

    /// Makes this many copies in each direction. Returns the time of the copies that this side has timed.
    fn run(&mut self, iterations: u64) -> Option<u64> {
        let mut took = 0;
        for _ in 0..iterations {
            self.count += 1;
            let offset = (self.count as usize % self.slots) * self.bytes;
            let (mine, theirs) = (self.copies.side, other(self.copies.side));
            let source = self.copies.source(mine, offset);
            if self.fresh {
                write_lines(source, self.bytes, self.count);
                self.meet();
            } else {
                self.ends()
                    .for_each(|end| write_lines(source.wrapping_add(end), size_of::<u64>(), self.count));
            }
            took += if self.pair { self.both(offset) } else { self.by_turns(offset)? };
            let arrived = self.copies.target(theirs, offset);
            if self.fresh && !read_lines(arrived, self.bytes, self.count) {
                return None;
            }
        }
        Some(took)
    }

    /// First the lead copies, then the follower, with the same timing and the same buffers as a ping-pong. Each side
    /// checks the first and the last word of what it was sent, as the receiver of a reused buffer does.
    fn by_turns(&self, offset: usize) -> Option<u64> {
        let side = self.copies.side;
        if side == Side::Follow {
            self.await_copy(offset)?;
        }
        let (from, to) = (self.copies.source(side, offset), self.copies.target(side, offset));
        let watch = Stopwatch::start();
        copy(from, to, self.bytes);
        fence(Ordering::SeqCst); // a copy has ended when its bytes have left the processor's store buffer
        let took = watch.ns(self.copies.clock_ns);
        self.pass_turn();
        if side == Side::Lead {
            self.await_copy(offset)?;
        }
        Some(took)
    }

    fn await_copy(&self, offset: usize) -> Option<()> {
        self.await_turn();
        let arrived = self.copies.target(other(self.copies.side), offset);
        let mut ends = self.ends().filter(|_| !self.fresh);
        let right = ends.all(|end| read_lines(arrived.wrapping_add(end), size_of::<u64>(), self.count));
        right.then_some(())
    }

    /// Returns the offsets of the first and the last word of a buffer.
    fn ends(&self) -> impl Iterator<Item = usize> + use<> {
        [0, self.bytes - size_of::<u64>()].into_iter()
    }

    /// Each side copies one half of one direction, and then of the other. Both begin at a time that was set before, so
    /// that the exchange of that time is not measured. The measured time is that of the side that finishes later.
    fn both(&self, offset: usize) -> u64 {
        [Side::Lead, Side::Follow].into_iter().map(|direction| self.halves(direction, offset)).sum()
    }

    fn halves(&self, direction: Side, offset: usize) -> u64 {
        let side = self.copies.side;
        let half = self.bytes / 2;
        let (from, to) = (self.copies.source(direction, offset), self.copies.target(direction, offset));
        let (begin, length) = if side == Side::Lead { (0, half) } else { (half, self.bytes - half) };
        let start = self.appoint();
        while now_ns() < start {}
        copy(from.wrapping_add(begin), to.wrapping_add(begin), length);
        fence(Ordering::SeqCst);
        let took = now_ns() - start;
        if side == Side::Follow {
            self.copies.shared.word(TOOK).store(took, Ordering::Relaxed);
        }
        self.meet();
        took.max(self.copies.shared.word(TOOK).load(Ordering::Relaxed)).saturating_sub(self.copies.clock_ns)
    }

    /// Returns a time in the near future that both sides know.
    fn appoint(&self) -> u64 {
        let word = self.copies.shared.word(START);
        if self.copies.side == Side::Lead {
            word.store(now_ns() + APPOINTMENT_NS, Ordering::Relaxed);
        }
        self.meet();
        word.load(Ordering::Relaxed)
    }

    fn meet(&self) {
        self.pass_turn();
        self.await_turn();
    }

    fn pass_turn(&self) {
        let (turns, side) = (&self.copies.turns, self.copies.side);
        turns.passed.set(turns.passed.get() + 1);
        self.copies.turn(side).store(turns.passed.get(), Ordering::Release);
    }

    fn await_turn(&self) {
        let turns = &self.copies.turns;
        turns.taken.set(turns.taken.get() + 1);
        while self.copies.turn(other(self.copies.side)).load(Ordering::Acquire) < turns.taken.get() {
            std::hint::spin_loop();
        }
    }
}

fn other(side: Side) -> Side {
    if side == Side::Lead { Side::Follow } else { Side::Lead }
}

/// Calls the C library's memcpy.
#[inline(always)]
fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: both ranges were cut from the mapping by `Copies::place`, lie in different areas, and belong to the
    // side whose turn it is.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) }
}

/// Writes a word of every line.
fn write_lines(start: *mut u8, length: usize, value: u64) {
    for offset in (0..length).step_by(LINE) {
        // SAFETY: the word lies in the range that `Copies::place` cut, aligned to a line; the other side does not use
        // the range now.
        unsafe { start.wrapping_add(offset).cast::<u64>().write_volatile(value) }
    }
}

/// Reads the word that `write_lines` writes, of every line. Returns true if all are `value`.
fn read_lines(start: *const u8, length: usize, value: u64) -> bool {
    let mut wrong = 0;
    for offset in (0..length).step_by(LINE) {
        // SAFETY: the word lies in the range that `Copies::place` cut, aligned to a line; the other side does not use
        // the range now.
        wrong |= value ^ unsafe { start.wrapping_add(offset).cast::<u64>().read_volatile() };
    }
    wrong == 0
}

/// Returns the time of a clock that both processes share.
#[inline(always)]
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::super::shared_memory::SharedFile;
    use super::*;

    #[test]
    fn fresh_bytes_arrive_in_every_state() {
        let (bytes, slots) = (8192, 3);
        let file = SharedFile::create(Copies::bytes(bytes * slots)).unwrap();
        let path = file.path();
        let side = |side| {
            let shared = Arc::new(Shared::open(&path).unwrap());
            let copies = Rc::new(Copies::new(shared, side, bytes * slots).unwrap());
            for (fresh, pair) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut limit = CopyLimit::new(copies.clone(), (bytes, slots), fresh, pair, 4);
                assert!(limit.measure().is_some_and(|rate| rate > 0.0), "fresh {fresh}, pair {pair}");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| side(Side::Follow));
            side(Side::Lead);
        });
    }
}
