//! A model of the reference count of a bank: the units are a rank's while it has the bank open, and are freed once.
#![cfg(loom)]

use loom::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use ref_count::{RefCount, RefCountMemory, Side};
use std::convert::Infallible;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};

#[allow(dead_code)] // no model creates or retires a directory entry
#[path = "../src/slot/ref_count.rs"]
mod ref_count;

/// The word of a bank, and two units of each rank.
#[derive(Default)]
struct Memory {
    word: AtomicU64,
    /// For each rank a bit for each unit that is allocated.
    taken: [AtomicU64; 2],
    /// The lines of each unit, in which the other rank of the pair counts its messages. Loom reports any two accesses
    /// that are not ordered.
    lines: [[Cell<u32>; 2]; 2],
}

impl Memory {
    fn lines(&self, side: Side, unit: u32) -> &Cell<u32> {
        &self.lines[side as usize][unit as usize - 1]
    }
}

impl RefCountMemory for Memory {
    type Error = Infallible;

    fn read(&self) -> Result<u64, Infallible> {
        Ok(self.word.load(Ordering::Relaxed))
    }

    fn exchange(&self, expected: u64, new: u64) -> Result<u64, Infallible> {
        let exchange = Atomic { kind: AtomicKind::Cas { expected }, operand: new, width: Width::W8 };
        Ok(exchange.apply8(&self.word))
    }

    fn sides(&self) -> &'static [Side] {
        &[Side::Lower, Side::Higher]
    }

    fn take(&self, side: Side) -> Result<u32, Infallible> {
        let is_free = |unit: &u32| {
            let bit = 1 << unit;
            self.taken[side as usize].fetch_or(bit, Ordering::AcqRel) & bit == 0
        };
        let unit = [1, 2].into_iter().find(is_free).expect("each rank takes one");
        self.lines(side, unit).set(0);
        Ok(unit)
    }

    fn give_back(&self, side: Side, unit: u32) -> Result<(), Infallible> {
        self.lines(side, unit).set(u32::MAX);
        let bit = 1 << unit;
        let taken = self.taken[side as usize].fetch_and(!bit, Ordering::AcqRel);
        assert!(taken & bit != 0, "the unit was freed twice");
        Ok(())
    }
}

/// Opens the bank, sends a message and closes the bank, `times` times.
fn use_bank(memory: &Memory, (own, other): (Side, Side), times: u32) {
    let mut known: Option<(RefCount, u32)> = None;
    for _ in 0..times {
        let Ok(opened) = ref_count::open(memory, own);
        let kept = known.filter(|(before, _)| before.generation == opened.generation);
        let sent = kept.map_or(0, |(_, sent)| sent);
        let messages = memory.lines(other, opened.unit(other));
        assert_eq!(messages.get(), sent, "the generation does not tell whether the lines are new");
        messages.set(sent + 1);
        known = Some((opened, sent + 1));
        let Ok(()) = ref_count::close(memory, own);
    }
}

#[test]
fn a_rank_has_the_units_until_it_closes_the_bank() {
    loom::model(|| {
        let memory = Arc::new(Memory::default());
        let lower = {
            let memory = memory.clone();
            thread::spawn(move || use_bank(&memory, (Side::Lower, Side::Higher), 2))
        };
        use_bank(&memory, (Side::Higher, Side::Lower), 2);
        lower.join().unwrap();
        let taken = memory.taken.each_ref().map(|taken| taken.load(Ordering::Relaxed));
        assert_eq!(taken, [0, 0], "a unit was not freed");
    });
}
