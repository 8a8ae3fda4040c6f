//! The directory: how two ranks find the bank that they share. It is a hash table in the arena of the lower of the
//! two.
//!
//! The rank that comes first creates the entry: it allocates a unit at both ranks, writes an entry, and prepends it
//! to a list by compare-and-swap on the list head. A rank whose compare-and-swap fails may find the other rank's
//! entry; it then frees its own units. An entry is complete before any rank can see it. Except for the word described
//! in `ref_count.rs` it never changes afterwards, so no rank ever waits for another here.
//!
//! | bytes of an entry | hold |
//! |---|---|
//! | 0-7 | the context |
//! | 8-15 | which ranks have the bank open, and its units |
//! | 16-19 | the higher of the two ranks |
//! | 20-23 | the number of the bank |
//! | 24-27 | the next older entry of the list; 0 for none |
//! | 28-31 | nothing |

use crate::slot::arena::{self, at, atomic8};
use crate::slot::ref_count::{self, RefCount, RefCountMemory, Side};
use tasuki_core::base::error_hint::DIRECTORY_OF_MESSAGES;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tasuki_core::segment::GlobalAddress;

const HEADS: u64 = 64 << 10;
const HEADS_MAX: u64 = 8192;
const ENTRIES: u64 = 128 << 10;
const ENTRY: u64 = 32;
const REF_COUNT: u64 = 8;
const ENTRIES_MAX: u64 = ((8 << 20) - ENTRIES) / ENTRY;
const ENTRIES_TAKEN: u64 = 16;

/// The key of an entry within the directory of its lower rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DirectoryKey {
    context: u64,
    higher: u32,
    bank: u32,
}

/// An entry as it was inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DirectoryEntry {
    key: DirectoryKey,
    ref_count: RefCount,
    /// The next older entry of the list; 0 for none.
    next: u32,
}

/// A bank that this rank has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenedBank {
    /// The number of its entry, for [`close`].
    pub(crate) entry: u32,
    /// Differs from that of every opening before both ranks last closed the bank.
    pub(crate) generation: u32,
    /// Its units: this rank's, and the peer's.
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
}

/// This rank and a peer, ordered.
#[derive(Clone, Copy, Debug)]
struct RankPair<'m> {
    worker: &'m Worker,
    lower: Rank,
    higher: Rank,
}

/// A directory entry of a pair.
#[derive(Clone, Copy, Debug)]
struct EntryRef<'m> {
    pair: RankPair<'m>,
    entry: u32,
}

/// Opens a bank that this rank shares with `peer` in that context. Creates it if necessary. Costs a few dependent
/// accesses to the lower of the two ranks.
pub(crate) fn open(worker: &Worker, peer: Rank, context: u64, bank: u32) -> Result<OpenedBank> {
    let pair = RankPair::with(worker, peer);
    let key = DirectoryKey { context, higher: pair.higher.0, bank };
    let head = at(pair.lower, HEADS + key.hash() % HEADS_MAX * 4);
    let mut first = worker.get_word(head, Width::W4)? as u32;
    let (number, mut own) = match search(pair, first, 0, key)? {
        Some(entry) => return pair.entry_ref(entry).open(),
        None => make(pair, key)?,
    };
    loop {
        own.next = first;
        worker.put(pair.entry_ref(number).address(), &own.bytes())?;
        let insert = AtomicKind::Cas { expected: u64::from(first) };
        let insert = Atomic { kind: insert, operand: u64::from(number), width: Width::W4 };
        let found = worker.atomic(head, insert)? as u32;
        if found == first {
            return Ok(pair.entry_ref(number).opened(own.ref_count));
        }
        if let Some(entry) = search(pair, found, first, key)? {
            ref_count::give_back(&pair.entry_ref(entry), own.ref_count.units())?;
            return pair.entry_ref(entry).open();
        }
        first = found;
    }
}

/// Closes the bank with that entry for this rank. Frees its memory at both ranks if the peer has closed it, too.
pub(crate) fn close(worker: &Worker, peer: Rank, entry: u32) -> Result<()> {
    let place = RankPair::with(worker, peer).entry_ref(entry);
    ref_count::close(&place, place.pair.side())
}

/// Starts to read the generation of a bank. [`read_generation`] decodes the result.
pub(crate) fn query_generation(worker: &Worker, peer: Rank, entry: u32) -> Result<Started, Cause> {
    let at = RankPair::with(worker, peer).entry_ref(entry).address().add(REF_COUNT);
    worker.start_atomic(at, atomic8(AtomicKind::Add, 0))
}

/// Decodes the generation of a bank.
pub(crate) fn read_generation(word: u64) -> u32 {
    RefCount::of(word).generation
}

/// Searches the list from entry `from` up to, but not including, `until`. Returns the number of the entry with that
/// key.
fn search(pair: RankPair<'_>, from: u32, until: u32, key: DirectoryKey) -> Result<Option<u32>> {
    let mut number = from;
    while number != until {
        let mut bytes = [0; ENTRY as usize];
        pair.worker.get(pair.entry_ref(number).address(), &mut bytes)?;
        let entry = DirectoryEntry::read(&bytes);
        if entry.key == key {
            return Ok(Some(number));
        }
        number = entry.next;
    }
    Ok(None)
}

/// Makes a new entry with units of its own, open for this rank and not visible to others. Returns it with its number.
fn make(pair: RankPair<'_>, key: DirectoryKey) -> Result<(u32, DirectoryEntry)> {
    let number = pair.worker.atomic(at(pair.lower, ENTRIES_TAKEN), atomic8(AtomicKind::Add, 1))?;
    if number >= ENTRIES_MAX {
        return Err(Cause::Full { what: DIRECTORY_OF_MESSAGES, capacity: ENTRIES_MAX as usize }.into());
    }
    let number = number as u32 + 1;
    let units = ref_count::take(&pair.entry_ref(number))?;
    let ref_count = RefCount::default().opened(pair.side(), units);
    Ok((number, DirectoryEntry { key, ref_count, next: 0 }))
}

impl<'m> RankPair<'m> {
    fn with(worker: &'m Worker, peer: Rank) -> RankPair<'m> {
        let me = worker.rank();
        RankPair { worker, lower: me.min(peer), higher: me.max(peer) }
    }

    /// Returns which of the two this rank is.
    fn side(&self) -> Side {
        if self.worker.rank() == self.lower { Side::Lower } else { Side::Higher }
    }

    fn rank(&self, side: Side) -> Rank {
        match side {
            Side::Lower => self.lower,
            Side::Higher => self.higher,
        }
    }

    fn entry_ref(self, entry: u32) -> EntryRef<'m> {
        EntryRef { pair: self, entry }
    }
}

impl EntryRef<'_> {
    fn address(&self) -> GlobalAddress {
        at(self.pair.lower, ENTRIES + u64::from(self.entry - 1) * ENTRY)
    }

    fn open(&self) -> Result<OpenedBank> {
        Ok(self.opened(ref_count::open(self, self.pair.side())?))
    }

    fn opened(&self, ref_count: RefCount) -> OpenedBank {
        let (ours, theirs) = match self.pair.side() {
            // A rank paired with itself is both ends: it reads what it writes.
            Side::Lower if self.pair.higher == self.pair.lower => (Side::Lower, Side::Lower),
            Side::Lower => (Side::Lower, Side::Higher),
            Side::Higher => (Side::Higher, Side::Lower),
        };
        let (ours, theirs) = (ref_count.unit(ours), ref_count.unit(theirs));
        OpenedBank { entry: self.entry, generation: ref_count.generation, ours, theirs }
    }
}

impl RefCountMemory for EntryRef<'_> {
    type Error = Error;

    fn read(&self) -> Result<u64> {
        self.pair.worker.get_word(self.address().add(REF_COUNT), Width::W8)
    }

    fn exchange(&self, expected: u64, new: u64) -> Result<u64> {
        let exchange = atomic8(AtomicKind::Cas { expected }, new);
        self.pair.worker.atomic(self.address().add(REF_COUNT), exchange)
    }

    fn sides(&self) -> &'static [Side] {
        let both = &[Side::Lower, Side::Higher];
        if self.pair.lower == self.pair.higher { &both[..1] } else { both }
    }

    fn take(&self, side: Side) -> Result<u32> {
        arena::take(self.pair.worker, self.pair.rank(side))
    }

    fn give_back(&self, side: Side, unit: u32) -> Result<()> {
        arena::give_back(self.pair.worker, self.pair.rank(side), unit)
    }
}

impl DirectoryKey {
    /// Peers of one context get neighbouring list heads: they do not collide, and few memory pages are touched.
    fn hash(self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        mix(mix(0, self.context), u64::from(self.bank)).wrapping_add(u64::from(self.higher))
    }
}

impl DirectoryEntry {
    fn bytes(self) -> [u8; ENTRY as usize] {
        let mut bytes = [0; ENTRY as usize];
        bytes[..8].copy_from_slice(&self.key.context.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.ref_count.word().to_ne_bytes());
        let rest = [self.key.higher, self.key.bank, self.next];
        for (place, word) in bytes[16..].chunks_exact_mut(4).zip(rest) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes an entry. If other ranks can see it, its reference count may have changed since.
    fn read(bytes: &[u8; ENTRY as usize]) -> DirectoryEntry {
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let key = DirectoryKey { context: long(0), higher: word(16), bank: word(20) };
        DirectoryEntry { key, ref_count: RefCount::of(long(8)), next: word(24) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip() {
        let key = DirectoryKey { context: u64::MAX - 1, higher: 7, bank: 16383 };
        let ref_count = RefCount::default().opened(Side::Higher, [1, 65000]);
        let entry = DirectoryEntry { key, ref_count, next: 12 };
        assert_eq!(DirectoryEntry::read(&entry.bytes()), entry);
    }
}
