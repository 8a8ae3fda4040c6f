//! The reference count of a bank: which ranks of the pair have the bank open, and which units it has. It is one word in
//! the bank's directory entry, which both ranks change by compare-and-swap.
//!
//! ```text
//! generation:30 | open_lower:1 | open_higher:1 | unit_at_lower:16 | unit_at_higher:16
//! ```
//!
//! The units belong to the pair while an open bit is set. The rank that clears the last open bit also clears the units
//! and increments the generation, in one compare-and-swap. Then this rank alone frees the units. So a rank that opens
//! the bank later cannot find units that may belong to another pair. Nor can it mistake new units for the old ones,
//! unless there are 2^30 generations between its close and its open.
//!
//! The compare-and-swap also orders the uses of the units (`SYNC bank-units`): a rank that opens the bank sees its
//! units zeroed, and the rank that frees them sees that the other rank no longer uses them.

use tasuki_core::base::planted;

/// One of the two ranks of a pair. If a rank is paired with itself, it is the lower one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Side {
    Lower = 0,
    Higher = 1,
}

/// The decoded word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct RefCount {
    pub(crate) generation: u32,
    open: [bool; 2],
    units: [u16; 2],
}

const GENERATIONS: u32 = 1 << 30;

impl RefCount {
    pub(crate) fn of(word: u64) -> RefCount {
        let bit = |place: u32| word >> place & 1 == 1;
        let units = [(word >> 16) as u16, word as u16];
        RefCount { generation: (word >> 34) as u32, open: [bit(33), bit(32)], units }
    }

    /// Returns the word of a bank that no side has open.
    pub(crate) fn unopened(generation: u32) -> RefCount {
        RefCount { generation, ..RefCount::default() }
    }

    pub(crate) fn word(self) -> u64 {
        let RefCount { generation, open, units } = self;
        let high = generation << 2 | u32::from(open[0]) << 1 | u32::from(open[1]);
        u64::from(high) << 32 | u64::from(units[0]) << 16 | u64::from(units[1])
    }

    /// Returns the unit at that side's rank.
    pub(crate) fn unit(self, side: Side) -> u32 {
        u32::from(self.units[side as usize])
    }

    /// Returns the units at both sides; 0 for none.
    pub(crate) fn units(self) -> [u16; 2] {
        self.units
    }

    /// Returns true if a side has the bank open.
    pub(crate) fn is_open(self) -> bool {
        self.open != [false; 2]
    }

    /// Returns the word after that side has opened the bank. Takes `units` if no side had it open.
    pub(crate) fn opened(self, side: Side, units: [u16; 2]) -> RefCount {
        let mut new = RefCount { units: if self.is_open() { self.units } else { units }, ..self };
        new.open[side as usize] = true;
        new
    }

    /// Returns the word after that side has closed the bank, and true if no side has the bank open any more.
    fn closed(self, side: Side) -> (RefCount, bool) {
        let mut new = self;
        new.open[side as usize] = false;
        if new.is_open() && !planted("ref_count_freed_early") {
            return (new, false);
        }
        let step = if planted("ref_count_generation_kept") { 0 } else { 1 };
        let generation = (self.generation + step) % GENERATIONS;
        (RefCount { generation, ..RefCount::default() }, true)
    }
}

/// Access to the word and to the units that it may name.
pub(crate) trait RefCountMemory {
    type Error;

    /// Reads the word.
    fn read(&self) -> Result<u64, Self::Error>;

    /// Replaces the word by `new` if it is `expected`. Returns the value found.
    fn exchange(&self, expected: u64, new: u64) -> Result<u64, Self::Error>;

    /// Returns the sides that need a unit: both, or one for a rank paired with itself.
    fn sides(&self) -> &'static [Side];

    /// Allocates a unit at a side's rank.
    fn take(&self, side: Side) -> Result<u32, Self::Error>;

    /// Frees a unit.
    fn give_back(&self, side: Side, unit: u32) -> Result<(), Self::Error>;
}

/// Opens the bank for a side. Does nothing if that side has opened it already.
pub(crate) fn open<G: RefCountMemory>(memory: &G, side: Side) -> Result<RefCount, G::Error> {
    let mut found = memory.read()?;
    let mut own = None;
    let (before, after) = loop {
        let before = RefCount::of(found);
        let units = match own {
            _ if before.is_open() => [0; 2],
            Some(units) => units,
            None => *own.insert(take(memory)?),
        };
        let after = before.opened(side, units);
        if exchange(memory, &mut found, after)? {
            break (before, after);
        }
    };
    match own {
        // The other side has opened the bank first, so free the units that this side has allocated.
        Some(units) if before.is_open() && !planted("ref_count_units_lost") => give_back(memory, units)?,
        _ => {}
    }
    Ok(after)
}

/// Closes the bank for a side. Does nothing if that side has not opened it.
pub(crate) fn close<G: RefCountMemory>(memory: &G, side: Side) -> Result<(), G::Error> {
    let mut found = memory.read()?;
    loop {
        let before = RefCount::of(found);
        if !before.open[side as usize] {
            return Ok(());
        }
        let (after, last) = before.closed(side);
        if exchange(memory, &mut found, after)? {
            return if last { give_back(memory, before.units) } else { Ok(()) };
        }
    }
}

/// Replaces the word by `new` if it is `found`. Otherwise returns false, and `found` is then the present word.
fn exchange<G: RefCountMemory>(memory: &G, found: &mut u64, new: RefCount) -> Result<bool, G::Error> {
    let expected = *found;
    *found = memory.exchange(expected, new.word())?;
    Ok(*found == expected || planted("ref_count_exchange_ignored"))
}

/// Allocates a unit at each side that needs one. If one allocation fails, frees the others.
pub(crate) fn take<G: RefCountMemory>(memory: &G) -> Result<[u16; 2], G::Error> {
    let mut units = [0; 2];
    for &side in memory.sides() {
        match memory.take(side) {
            Ok(unit) => units[side as usize] = unit as u16,
            Err(error) => {
                give_back(memory, units)?;
                return Err(error);
            }
        }
    }
    Ok(units)
}

/// Frees units, if there are any.
pub(crate) fn give_back<G: RefCountMemory>(memory: &G, units: [u16; 2]) -> Result<(), G::Error> {
    for &side in memory.sides() {
        match units[side as usize] {
            0 => {}
            unit => memory.give_back(side, u32::from(unit))?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(not(loom))] // a model includes this file
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::{BTreeMap, HashSet};
    use std::hash::{BuildHasher, RandomState};

    const BOTH: &[Side] = &[Side::Lower, Side::Higher];

    #[test]
    fn words_round_trip() {
        let far = RefCount { generation: GENERATIONS - 1, open: [true, false], units: [u16::MAX, 1] };
        let near = RefCount { generation: 1, open: [false, true], units: [1, u16::MAX] };
        for ref_count in [far, near, RefCount::default()] {
            assert_eq!(RefCount::of(ref_count.word()), ref_count);
        }
        assert_eq!((far.word() >> 32, near.word() & 0xffff_ffff), (u64::from(u32::MAX) - 1, 0x1_ffff));
        assert_eq!(RefCount::default().word(), 0);
    }

    #[test]
    fn the_last_close_frees_the_units() {
        let both = RefCount::default().opened(Side::Lower, [3, 4]).opened(Side::Higher, [0; 2]);
        assert_eq!((both.unit(Side::Lower), both.unit(Side::Higher)), (3, 4));
        let (one, freed) = both.closed(Side::Lower);
        assert_eq!((one.generation, one.units, freed), (0, [3, 4], false));
        assert_eq!(one.opened(Side::Lower, [9; 2]), both, "reopening keeps the units");
        let (none, freed) = one.closed(Side::Higher);
        assert_eq!((none, freed), (RefCount { generation: 1, ..RefCount::default() }, true));
        assert_eq!(none.opened(Side::Higher, [5, 6]).units, [5, 6]);
        let last = RefCount { generation: GENERATIONS - 1, ..one };
        assert_eq!(last.closed(Side::Higher).0.word(), 0, "generations wrap");
    }

    /// A memory access of a rank in the model.
    #[derive(Clone, Copy, Debug)]
    enum Access {
        Read,
        Exchange(u64, u64),
        Take(Side),
        GiveBack(Side, u32),
    }

    /// A rank that runs up to its first access without a result. It is run again from the start for each further
    /// result.
    struct Rank<'a> {
        results: Cell<&'a [u64]>,
        pending: Cell<Option<Access>>,
        sides: &'static [Side],
    }

    struct Stopped;

    impl Rank<'_> {
        fn access(&self, access: Access) -> Result<u64, Stopped> {
            if let Some((&first, rest)) = self.results.get().split_first() {
                self.results.set(rest);
                return Ok(first);
            }
            self.pending.set(self.pending.get().or(Some(access)));
            Err(Stopped)
        }

        /// Opens and closes the bank `times` times. Returns the last completed opening with its number, and whether
        /// it is still open.
        fn run(&self, side: Side, times: usize) -> (Option<(usize, RefCount)>, bool) {
            let mut last = None;
            for time in 0..times {
                let Ok(opened) = open(self, side) else { return (last, false) };
                last = Some((time, opened));
                let before = self.results.get().len();
                if close(self, side).is_err() {
                    return (last, before == 0); // the bank is open at least until close has begun
                }
            }
            (last, false)
        }
    }

    impl RefCountMemory for Rank<'_> {
        type Error = Stopped;

        fn read(&self) -> Result<u64, Stopped> {
            self.access(Access::Read)
        }

        fn exchange(&self, expected: u64, new: u64) -> Result<u64, Stopped> {
            self.access(Access::Exchange(expected, new))
        }

        fn sides(&self) -> &'static [Side] {
            self.sides
        }

        fn take(&self, side: Side) -> Result<u32, Stopped> {
            self.access(Access::Take(side)).map(|unit| unit as u32)
        }

        fn give_back(&self, side: Side, unit: u32) -> Result<(), Stopped> {
            self.access(Access::GiveBack(side, unit)).map(drop)
        }
    }

    /// The shared memory, and the results given to each rank.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct Model {
        word: u64,
        /// For each side: the allocated units, and the serial number of each allocation.
        taken: [BTreeMap<u16, u32>; 2],
        takings: u32,
        results: [Vec<u64>; 2],
        /// For each rank's last opening: its number, its generation, and the allocation of its unit.
        known: [Option<(usize, u32, u32)>; 2],
    }

    impl Model {
        fn result(&mut self, access: Access) -> u64 {
            match access {
                Access::Read => self.word,
                Access::Exchange(expected, new) => {
                    let found = self.word;
                    self.word = if found == expected { new } else { found };
                    found
                }
                Access::Take(side) => {
                    let taken = &mut self.taken[side as usize];
                    let unit = (1..).find(|unit| !taken.contains_key(unit)).unwrap();
                    self.takings += 1;
                    taken.insert(unit, self.takings);
                    u64::from(unit)
                }
                Access::GiveBack(side, unit) => {
                    let taken = self.taken[side as usize].remove(&(unit as u16));
                    assert!(taken.is_some(), "unit {unit} was freed twice");
                    0
                }
            }
        }

        /// Lets a rank do one access, if it can, and checks what it has open afterwards.
        fn step(&mut self, rank: usize, times: usize, sides: &'static [Side]) -> bool {
            let run = |model: &Model| {
                let results = Cell::new(&model.results[rank][..]);
                let this = Rank { results, pending: Cell::new(None), sides };
                let (last, is_open) = this.run(sides[rank], times);
                (this.pending.get(), last, is_open)
            };
            let Some(access) = run(self).0 else { return false };
            let result = self.result(access);
            self.results[rank].push(result);
            let (_, last, is_open) = run(self);
            if let Some((time, ref_count)) = last.filter(|_| is_open) {
                self.check(rank, time, ref_count, sides);
            }
            true
        }

        fn check(&mut self, rank: usize, time: usize, ref_count: RefCount, sides: &[Side]) {
            for &side in sides {
                let unit = &ref_count.units[side as usize];
                assert!(self.taken[side as usize].contains_key(unit), "unit {unit} is free while it is open");
            }
            let consumer = self.taken[0][&ref_count.units[0]];
            let known = self.known[rank].replace((time, ref_count.generation, consumer));
            if let Some((_, generation, before)) = known {
                let same = (generation == ref_count.generation, before == consumer);
                assert_eq!(same.0, same.1, "the generation changes exactly when the units do");
            }
        }
    }

    /// Explores all orders of the steps of all ranks. Returns the number of states.
    fn explore(sides: &'static [Side], times: usize) -> usize {
        let (mut seen, mut open) = (HashSet::new(), vec![Model::default()]);
        let hash = RandomState::new();
        while let Some(model) = open.pop() {
            let mut is_over = true;
            for rank in 0..sides.len() {
                let mut next = model.clone();
                if next.step(rank, times, sides) {
                    is_over = false;
                    // The units that the other ranks have open must still be theirs.
                    let others = (0..sides.len()).filter(|&other| other != rank);
                    others.for_each(|other| next.look_at(other, times, sides));
                    if seen.insert(hash.hash_one(&next)) {
                        open.push(next);
                    }
                }
            }
            let is_free = model.taken.iter().all(BTreeMap::is_empty);
            assert!(!is_over || is_free && !RefCount::of(model.word).is_open(), "a unit was not freed");
        }
        seen.len()
    }

    impl Model {
        fn look_at(&mut self, rank: usize, times: usize, sides: &'static [Side]) {
            let results = self.results[rank].clone();
            let this = Rank { results: Cell::new(&results), pending: Cell::new(None), sides };
            if let (Some((time, ref_count)), true) = this.run(sides[rank], times) {
                self.check(rank, time, ref_count, sides);
            }
        }
    }

    #[test]
    fn no_order_of_steps_loses_or_shares_a_unit() {
        assert!(explore(BOTH, 2) > 1000);
        assert!(explore(&BOTH[..1], 3) > 10, "a rank paired with itself");
    }
}
