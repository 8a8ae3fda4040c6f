//! Who of a pair has opened a bank, and where it lies: one word in the bank's entry, which both ranks change by
//! compare-and-swap.
//!
//! ```text
//! generation:30 | open_lower:1 | open_higher:1 | unit_at_lower:16 | unit_at_higher:16
//! ```
//!
//! While a bit stands the units are the pair's. Who takes the last bit away takes the units out of the word, in the
//! same step, and counts the generation; then, and nobody else does, it gives them back. So whoever comes later can
//! neither find units that somebody else may have got, nor mistake new ones for those that it knew: that would take
//! 2^30 generations between its close and its open.

/// One of the two ranks of a pair. A rank with itself is the lower.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Side {
    Lower = 0,
    Higher = 1,
}

/// What the word says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct RefCount {
    pub(crate) generation: u32,
    open: [bool; 2],
    units: [u16; 2],
}

const GENERATIONS: u32 = 1 << 30;
const _: () = assert!(crate::slot::arena::UNITS_MAX <= u16::MAX as u64, "a unit's number has 16 bits");

impl RefCount {
    pub(crate) fn of(word: u64) -> RefCount {
        let bit = |place: u32| word >> place & 1 == 1;
        let units = [(word >> 16) as u16, word as u16];
        RefCount { generation: (word >> 34) as u32, open: [bit(33), bit(32)], units }
    }

    pub(crate) fn word(self) -> u64 {
        let RefCount { generation, open, units } = self;
        let high = generation << 2 | u32::from(open[0]) << 1 | u32::from(open[1]);
        u64::from(high) << 32 | u64::from(units[0]) << 16 | u64::from(units[1])
    }

    /// The unit at that side's rank.
    pub(crate) fn unit(self, side: Side) -> u32 {
        u32::from(self.units[side as usize])
    }

    /// The units at both sides; 0 for none.
    pub(crate) fn units(self) -> [u16; 2] {
        self.units
    }

    fn is_open(self) -> bool {
        self.open != [false; 2]
    }

    /// After that side has opened it: with `units`, if nobody else has.
    pub(crate) fn opened(self, side: Side, units: [u16; 2]) -> RefCount {
        let mut new = RefCount { units: if self.is_open() { self.units } else { units }, ..self };
        new.open[side as usize] = true;
        new
    }

    /// After that side has let go, and whether it was the last.
    fn closed(self, side: Side) -> (RefCount, bool) {
        let mut new = self;
        new.open[side as usize] = false;
        if new.is_open() {
            return (new, false);
        }
        let generation = (self.generation + 1) % GENERATIONS;
        (RefCount { generation, ..RefCount::default() }, true)
    }
}

/// Where the word lies, and the units that it may name.
pub(crate) trait RefCountMemory {
    type Error;

    /// The word.
    fn look(&self) -> Result<u64, Self::Error>;

    /// Exchanges the word, if it is `expected`. What was found.
    fn exchange(&self, expected: u64, new: u64) -> Result<u64, Self::Error>;

    /// The sides at which units are needed: both, or one for a rank with itself.
    fn sides(&self) -> &'static [Side];

    /// Takes a unit at a side's rank.
    fn take(&self, side: Side) -> Result<u32, Self::Error>;

    /// Gives it back.
    fn give_back(&self, side: Side, unit: u32) -> Result<(), Self::Error>;
}

/// Opens the bank for a side. Nothing happens to one that it has open.
pub(crate) fn open<G: RefCountMemory>(ground: &G, side: Side) -> Result<RefCount, G::Error> {
    let mut found = ground.look()?;
    let mut own = None;
    let (before, after) = loop {
        let before = RefCount::of(found);
        let units = match own {
            _ if before.is_open() => [0; 2],
            Some(units) => units,
            None => *own.insert(take(ground)?),
        };
        let after = before.opened(side, units);
        match ground.exchange(found, after.word())? {
            same if same == found => break (before, after),
            other => found = other,
        }
    };
    match own {
        // They were taken for nothing: the other side was quicker.
        Some(units) if before.is_open() => give_back(ground, units)?,
        _ => {}
    }
    Ok(after)
}

/// Lets go of it for a side. Nothing happens to one that it has not open.
pub(crate) fn close<G: RefCountMemory>(ground: &G, side: Side) -> Result<(), G::Error> {
    let mut found = ground.look()?;
    loop {
        let before = RefCount::of(found);
        if !before.open[side as usize] {
            return Ok(());
        }
        let (after, last) = before.closed(side);
        match ground.exchange(found, after.word())? {
            same if same == found && last => return give_back(ground, before.units),
            same if same == found => return Ok(()),
            other => found = other,
        }
    }
}

/// Takes a unit at each side; none, if one side has none.
pub(crate) fn take<G: RefCountMemory>(ground: &G) -> Result<[u16; 2], G::Error> {
    let mut units = [0; 2];
    for &side in ground.sides() {
        match ground.take(side) {
            Ok(unit) => units[side as usize] = unit as u16,
            Err(error) => {
                give_back(ground, units)?;
                return Err(error);
            }
        }
    }
    Ok(units)
}

/// Gives them back, as far as there are any.
pub(crate) fn give_back<G: RefCountMemory>(ground: &G, units: [u16; 2]) -> Result<(), G::Error> {
    for &side in ground.sides() {
        match units[side as usize] {
            0 => {}
            unit => ground.give_back(side, u32::from(unit))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::{BTreeMap, HashSet};
    use std::hash::{BuildHasher, RandomState};

    const BOTH: &[Side] = &[Side::Lower, Side::Higher];

    #[test]
    fn a_word_is_read_as_it_was_written() {
        let far = RefCount { generation: GENERATIONS - 1, open: [true, false], units: [u16::MAX, 1] };
        let near = RefCount { generation: 1, open: [false, true], units: [1, u16::MAX] };
        for ref_count in [far, near, RefCount::default()] {
            assert_eq!(RefCount::of(ref_count.word()), ref_count);
        }
        assert_eq!((far.word() >> 32, near.word() & 0xffff_ffff), (u64::from(u32::MAX) - 1, 0x1_ffff));
        assert_eq!(RefCount::default().word(), 0);
    }

    #[test]
    fn who_closes_last_frees() {
        let both = RefCount::default().opened(Side::Lower, [3, 4]).opened(Side::Higher, [0; 2]);
        assert_eq!((both.unit(Side::Lower), both.unit(Side::Higher)), (3, 4));
        let (one, freed) = both.closed(Side::Lower);
        assert_eq!((one.generation, one.units, freed), (0, [3, 4], false));
        assert_eq!(one.opened(Side::Lower, [9; 2]), both, "it goes on where it was");
        let (none, freed) = one.closed(Side::Higher);
        assert_eq!((none, freed), (RefCount { generation: 1, ..RefCount::default() }, true));
        assert_eq!(none.opened(Side::Higher, [5, 6]).units, [5, 6]);
        let last = RefCount { generation: GENERATIONS - 1, ..one };
        assert_eq!(last.closed(Side::Higher).0.word(), 0, "generations wrap");
    }

    /// What a rank asks of the world.
    #[derive(Clone, Copy, Debug)]
    enum Ask {
        Look,
        Exchange(u64, u64),
        Take(Side),
        GiveBack(Side, u32),
    }

    /// A rank up to its first question that has no answer yet: it is run again from the start for each further answer.
    struct Rank<'a> {
        answers: Cell<&'a [u64]>,
        asked: Cell<Option<Ask>>,
        sides: &'static [Side],
    }

    struct Stopped;

    impl Rank<'_> {
        fn ask(&self, ask: Ask) -> Result<u64, Stopped> {
            if let Some((&first, rest)) = self.answers.get().split_first() {
                self.answers.set(rest);
                return Ok(first);
            }
            self.asked.set(self.asked.get().or(Some(ask)));
            Err(Stopped)
        }

        /// Opens and closes so many times. The last opening that is over, which one it was, and whether it stands.
        fn run(&self, side: Side, times: usize) -> (Option<(usize, RefCount)>, bool) {
            let mut last = None;
            for time in 0..times {
                let Ok(opened) = open(self, side) else { return (last, false) };
                last = Some((time, opened));
                let before = self.answers.get().len();
                if close(self, side).is_err() {
                    return (last, before == 0); // it stands at least until close has begun
                }
            }
            (last, false)
        }
    }

    impl RefCountMemory for Rank<'_> {
        type Error = Stopped;

        fn look(&self) -> Result<u64, Stopped> {
            self.ask(Ask::Look)
        }

        fn exchange(&self, expected: u64, new: u64) -> Result<u64, Stopped> {
            self.ask(Ask::Exchange(expected, new))
        }

        fn sides(&self) -> &'static [Side] {
            self.sides
        }

        fn take(&self, side: Side) -> Result<u32, Stopped> {
            self.ask(Ask::Take(side)).map(|unit| unit as u32)
        }

        fn give_back(&self, side: Side, unit: u32) -> Result<(), Stopped> {
            self.ask(Ask::GiveBack(side, unit)).map(drop)
        }
    }

    /// All that ranks share, and what was answered to each.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct Model {
        word: u64,
        /// At each side: the units that are taken, and the how manieth taking each was.
        taken: [BTreeMap<u16, u32>; 2],
        takings: u32,
        answers: [Vec<u64>; 2],
        /// Of each rank's last opening: which one it was, its generation, and the taking of its unit.
        known: [Option<(usize, u32, u32)>; 2],
    }

    impl Model {
        fn answer(&mut self, ask: Ask) -> u64 {
            match ask {
                Ask::Look => self.word,
                Ask::Exchange(expected, new) => {
                    let found = self.word;
                    self.word = if found == expected { new } else { found };
                    found
                }
                Ask::Take(side) => {
                    let taken = &mut self.taken[side as usize];
                    let unit = (1..).find(|unit| !taken.contains_key(unit)).unwrap();
                    self.takings += 1;
                    taken.insert(unit, self.takings);
                    u64::from(unit)
                }
                Ask::GiveBack(side, unit) => {
                    let taken = self.taken[side as usize].remove(&(unit as u16));
                    assert!(taken.is_some(), "unit {unit} was given back twice");
                    0
                }
            }
        }

        /// Lets a rank go on by one step, if it can, and looks at what it has open then.
        fn step(&mut self, rank: usize, times: usize, sides: &'static [Side]) -> bool {
            let run = |world: &Model| {
                let answers = Cell::new(&world.answers[rank][..]);
                let this = Rank { answers, asked: Cell::new(None), sides };
                let (last, stands) = this.run(sides[rank], times);
                (this.asked.get(), last, stands)
            };
            let Some(ask) = run(self).0 else { return false };
            let answer = self.answer(ask);
            self.answers[rank].push(answer);
            let (_, last, stands) = run(self);
            if let Some((time, ref_count)) = last.filter(|_| stands) {
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
                assert_eq!(same.0, same.1, "the generation tells whether the units are the ones of before");
            }
        }
    }

    /// All orders of the steps of all ranks; how many states there were.
    fn explore(sides: &'static [Side], times: usize) -> usize {
        let (mut seen, mut open) = (HashSet::new(), vec![Model::default()]);
        let hash = RandomState::new();
        while let Some(world) = open.pop() {
            let mut is_over = true;
            for rank in 0..sides.len() {
                let mut next = world.clone();
                if next.step(rank, times, sides) {
                    is_over = false;
                    // What others have open must still be theirs, too.
                    let others = (0..sides.len()).filter(|&other| other != rank);
                    others.for_each(|other| next.look_at(other, times, sides));
                    if seen.insert(hash.hash_one(&next)) {
                        open.push(next);
                    }
                }
            }
            let is_free = world.taken.iter().all(BTreeMap::is_empty);
            assert!(
                !is_over || is_free && !RefCount::of(world.word).is_open(),
                "something was not given back"
            );
        }
        seen.len()
    }

    impl Model {
        fn look_at(&mut self, rank: usize, times: usize, sides: &'static [Side]) {
            let answers = self.answers[rank].clone();
            let this = Rank { answers: Cell::new(&answers), asked: Cell::new(None), sides };
            if let (Some((time, ref_count)), true) = this.run(sides[rank], times) {
                self.check(rank, time, ref_count, sides);
            }
        }
    }

    #[test]
    fn no_order_of_steps_loses_a_unit_or_gives_it_away() {
        assert!(explore(BOTH, 2) > 1000);
        assert!(explore(&BOTH[..1], 3) > 10, "a rank with itself");
    }
}
