//! How two ranks find the slots that they share: a table in the arena of the lower of the two.
//!
//! Whoever comes first makes the entry: takes a unit at both ends, writes an entry of its own, and hangs it into the
//! list by exchanging the list's head. Who loses that exchange finds the other's entry and gives its own units back.
//! An entry is whole before anybody can see it, and all of it but the word that `occupancy.rs` describes never changes
//! after, so nobody ever waits for anybody here.
//!
//! | bytes of an entry | are |
//! |---|---|
//! | 0-7 | the context |
//! | 8-15 | who has opened the page, and its units |
//! | 16-19 | the higher of the two ranks |
//! | 20-23 | which page |
//! | 24-27 | the entry made before it with the same head; 0 for none |
//! | 28-31 | nothing |

use super::arena::{self, at, word8};
use super::occupancy::{self, Ground, Occupancy, Side};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Launched, Machine};
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tasuki_core::segment::GlobalAddress;

const HEADS: u64 = 64 << 10;
const HEADS_MAX: u64 = 8192;
const ENTRIES: u64 = 128 << 10;
const ENTRY: u64 = 32;
const OCCUPANCY: u64 = 8;
const ENTRIES_MAX: u64 = ((8 << 20) - ENTRIES) / ENTRY;
const ENTRIES_TAKEN: u64 = 16;

/// What an entry is found by, besides its lower rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    context: u64,
    higher: u32,
    page: u32,
}

/// An entry as it was when it was hung in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    key: Key,
    occupancy: Occupancy,
    /// The entry made before it with the same head; 0 for none.
    next: u32,
}

/// A page that this rank has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    /// The number of its entry, for [`close`].
    pub(crate) entry: u32,
    /// Unlike that of any earlier opening after which both ranks have let go.
    pub(crate) generation: u32,
    /// Its units: this rank's, and the peer's.
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
}

/// A pair of which this rank is one.
#[derive(Clone, Copy, Debug)]
struct Pair<'m> {
    machine: &'m Machine,
    lower: Rank,
    higher: Rank,
}

/// An entry of a pair's.
#[derive(Clone, Copy, Debug)]
struct Place<'m> {
    pair: Pair<'m>,
    entry: u32,
}

/// Opens a page of the pair that this rank and `peer` are in that context. Makes it if need be. A few dependent
/// accesses to the lower of the two.
pub(crate) fn open(machine: &Machine, peer: Rank, context: u64, page: u32) -> Result<Opened> {
    let pair = Pair::with(machine, peer);
    let key = Key { context, higher: pair.higher.0, page };
    let head = at(pair.lower, HEADS + key.hash() % HEADS_MAX * 4);
    let mut first = machine.get_word(head, Width::W4)? as u32;
    let (number, mut own) = match search(pair, first, 0, key)? {
        Some(entry) => return pair.place(entry).open(),
        None => make(pair, key)?,
    };
    loop {
        own.next = first;
        machine.put(pair.place(number).address(), &own.bytes())?;
        let hang = AtomicKind::Cas { expected: u64::from(first) };
        let hang = Atomic { kind: hang, operand: u64::from(number), width: Width::W4 };
        let found = machine.atomic(head, hang)? as u32;
        if found == first {
            return Ok(pair.place(number).opened(own.occupancy));
        }
        if let Some(entry) = search(pair, found, first, key)? {
            occupancy::give_back(&pair.place(entry), own.occupancy.units())?;
            return pair.place(entry).open();
        }
        first = found;
    }
}

/// Lets go of a page that this rank and `peer` have that entry for. Frees its memory at both ends if the peer has let
/// go, too.
pub(crate) fn close(machine: &Machine, peer: Rank, entry: u32) -> Result<()> {
    let place = Pair::with(machine, peer).place(entry);
    occupancy::close(&place, place.pair.side())
}

/// Begins to ask for the generation of a page, which [`read_generation`] finds in the answer.
pub(crate) fn ask_generation(machine: &Machine, peer: Rank, entry: u32) -> Result<Launched, Cause> {
    let at = Pair::with(machine, peer).place(entry).address().add(OCCUPANCY);
    machine.launch_atomic(at, word8(AtomicKind::Add, 0))
}

/// The generation of a page, of the answer.
pub(crate) fn read_generation(word: u64) -> u32 {
    Occupancy::of(word).generation
}

/// Looks through the entries from `from` to before `until`: the number of the one with that key.
fn search(pair: Pair<'_>, from: u32, until: u32, key: Key) -> Result<Option<u32>> {
    let mut number = from;
    while number != until {
        let mut bytes = [0; ENTRY as usize];
        pair.machine.get(pair.place(number).address(), &mut bytes)?;
        let entry = Entry::read(&bytes);
        if entry.key == key {
            return Ok(Some(number));
        }
        number = entry.next;
    }
    Ok(None)
}

/// A new entry with units of its own, open for this rank, which nobody sees yet, and its number.
fn make(pair: Pair<'_>, key: Key) -> Result<(u32, Entry)> {
    let number = pair.machine.atomic(at(pair.lower, ENTRIES_TAKEN), word8(AtomicKind::Add, 1))?;
    if number >= ENTRIES_MAX {
        let what = "the directory of messages (an entry for each pair, context and 64 slots)";
        return Err(Cause::Full { what, capacity: ENTRIES_MAX as usize }.into());
    }
    let number = number as u32 + 1;
    let units = occupancy::take(&pair.place(number))?;
    let occupancy = Occupancy::default().opened(pair.side(), units);
    Ok((number, Entry { key, occupancy, next: 0 }))
}

impl<'m> Pair<'m> {
    fn with(machine: &'m Machine, peer: Rank) -> Pair<'m> {
        let me = machine.rank();
        Pair { machine, lower: me.min(peer), higher: me.max(peer) }
    }

    /// Which of the two this rank is.
    fn side(&self) -> Side {
        if self.machine.rank() == self.lower { Side::Lower } else { Side::Higher }
    }

    fn rank(&self, side: Side) -> Rank {
        match side {
            Side::Lower => self.lower,
            Side::Higher => self.higher,
        }
    }

    fn place(self, entry: u32) -> Place<'m> {
        Place { pair: self, entry }
    }
}

impl Place<'_> {
    fn address(&self) -> GlobalAddress {
        at(self.pair.lower, ENTRIES + u64::from(self.entry - 1) * ENTRY)
    }

    fn open(&self) -> Result<Opened> {
        Ok(self.opened(occupancy::open(self, self.pair.side())?))
    }

    fn opened(&self, occupancy: Occupancy) -> Opened {
        let (ours, theirs) = match self.pair.side() {
            // With itself a rank is both ends: what it writes it reads.
            Side::Lower if self.pair.higher == self.pair.lower => (Side::Lower, Side::Lower),
            Side::Lower => (Side::Lower, Side::Higher),
            Side::Higher => (Side::Higher, Side::Lower),
        };
        let (ours, theirs) = (occupancy.unit(ours), occupancy.unit(theirs));
        Opened { entry: self.entry, generation: occupancy.generation, ours, theirs }
    }
}

impl Ground for Place<'_> {
    type Error = Error;

    fn look(&self) -> Result<u64> {
        self.pair.machine.get_word(self.address().add(OCCUPANCY), Width::W8)
    }

    fn exchange(&self, expected: u64, new: u64) -> Result<u64> {
        let exchange = word8(AtomicKind::Cas { expected }, new);
        self.pair.machine.atomic(self.address().add(OCCUPANCY), exchange)
    }

    fn sides(&self) -> &'static [Side] {
        let both = &[Side::Lower, Side::Higher];
        if self.pair.lower == self.pair.higher { &both[..1] } else { both }
    }

    fn take(&self, side: Side) -> Result<u32> {
        arena::take(self.pair.machine, self.pair.rank(side))
    }

    fn give_back(&self, side: Side, unit: u32) -> Result<()> {
        arena::give_back(self.pair.machine, self.pair.rank(side), unit)
    }
}

impl Key {
    /// Peers of one context have neighbouring places: no two the same, and few pages are touched.
    fn hash(self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        mix(mix(0, self.context), u64::from(self.page)).wrapping_add(u64::from(self.higher))
    }
}

impl Entry {
    fn bytes(self) -> [u8; ENTRY as usize] {
        let mut bytes = [0; ENTRY as usize];
        bytes[..8].copy_from_slice(&self.key.context.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.occupancy.word().to_ne_bytes());
        let rest = [self.key.higher, self.key.page, self.next];
        for (place, word) in bytes[16..].chunks_exact_mut(4).zip(rest) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Of one that others see, the occupancy may have changed meanwhile.
    fn read(bytes: &[u8; ENTRY as usize]) -> Entry {
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let key = Key { context: long(0), higher: word(16), page: word(20) };
        Entry { key, occupancy: Occupancy::of(long(8)), next: word(24) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let key = Key { context: u64::MAX - 1, higher: 7, page: 16383 };
        let occupancy = Occupancy::default().opened(Side::Higher, [1, 65000]);
        let entry = Entry { key, occupancy, next: 12 };
        assert_eq!(Entry::read(&entry.bytes()), entry);
    }
}
