//! The directory: how two ranks find the bank that they share. It is a hash table in the arena of the lower of the two
//! ranks.
//!
//! The rank that comes first creates the entry: it allocates a unit at both ranks, writes an entry, and prepends the
//! entry to a list by a compare-and-swap on the list head. If the compare-and-swap fails, the rank searches the list
//! again. If it finds the other rank's entry, it frees its own units. An entry is complete before any rank can see it.
//! While an entry is in a list, only two of its words change: the word described in `ref_count.rs`, and the number of
//! the next entry. No rank ever waits for another rank here.
//!
//! When a context has ended on both ranks, the lower rank takes the entry out of its list ([`EndedEntry`]), and any rank
//! can use the entry for another bank. `entry_list.rs` explains why a rank that is searching meanwhile still gets a
//! correct result.
//!
//! | bytes of a head | hold |
//! |---|---|
//! | 0-3 | the first entry of the list; 0 for none |
//! | 4-7 | a count of the changes of the list |
//!
//! | bytes of an entry | hold |
//! |---|---|
//! | 0-7 | the context |
//! | 8-15 | which ranks have the bank open, and its units |
//! | 16-19 | the higher of the two ranks |
//! | 20-23 | the number of the bank |
//! | 24-27 | the next older entry of the list, or the next free entry; 0 for none |
//! | 28-31 | nothing |

use crate::deferred_free::Deferred;
use crate::slot::arena::{self, at, atomic8};
use crate::slot::entry_list::{self, Head, ListMemory};
use crate::slot::ref_count::{self, RefCount, RefCountMemory, Side};
use tasuki_core::base::error_hint::DIRECTORY_OF_MESSAGES;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Started, Worker};
use tasuki_core::fabric::{AtomicKind, Width};
use tasuki_core::segment::GlobalAddress;

const HEADS: u64 = 64 << 10;
const HEADS_MAX: u64 = 8192;
const ENTRIES: u64 = 128 << 10;
const HEAD: u64 = 8;
const ENTRY: u64 = 32;
const REF_COUNT: u64 = 8;
const _: () = assert!(HEADS + HEADS_MAX * HEAD <= ENTRIES);
const ENTRIES_MAX: u64 = ((8 << 20) - ENTRIES) / ENTRY;
const ENTRIES_TAKEN: u64 = 16;
/// The head of the list of free entries.
const ENTRIES_FREE: u64 = 24;
/// The offset in an entry at which the number of the next entry lies.
const NEXT: u64 = 24;

/// The key of an entry within the directory of its lower rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DirectoryKey {
    pub(crate) context: u64,
    pub(crate) higher: u32,
    pub(crate) bank: u32,
}

/// An entry as it was inserted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DirectoryEntry {
    pub(crate) key: DirectoryKey,
    pub(crate) ref_count: RefCount,
    /// The next older entry of the list; 0 for none.
    pub(crate) next: u32,
}

/// A bank that this rank has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenedBank {
    /// The number of the bank's directory entry, for [`close`].
    pub(crate) entry: u32,
    /// The generation of the bank, which changes whenever both ranks have closed it.
    pub(crate) generation: u32,
    /// The units of the bank: this rank's, and the peer's.
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
}

/// This rank and a peer, the lower rank first.
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
    let key = DirectoryKey { context, higher: pair.higher.to_word(), bank };
    let units = |entry, generation| {
        let units = ref_count::take(&pair.entry_ref(entry))?;
        Ok(RefCount::unopened(generation).opened(pair.side(), units))
    };
    let found = entry_list::find_or_insert(&pair.list_of(key), key, units)?;
    if let Some((entry, unused)) = found.unused {
        ref_count::give_back(&pair.entry_ref(entry), unused.units())?;
    }
    match found.inserted {
        Some(ref_count) => Ok(pair.entry_ref(found.entry).opened(ref_count)),
        None => pair.entry_ref(found.entry).open(),
    }
}

/// Closes the bank of that entry for this rank. If the peer has closed the bank, too, frees its memory at both ranks.
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

/// The entry of a bank that this rank, the lower one of its pair, needs no more because the context has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedEntry {
    pub(crate) peer: Rank,
    pub(crate) entry: u32,
}

impl Deferred for EndedEntry {
    /// Takes it out of its list, if the peer has closed the bank, too.
    fn try_free(&self, worker: &Worker) -> Result<bool> {
        let pair = RankPair::with(worker, self.peer);
        let place = pair.entry_ref(self.entry);
        if RefCount::of(place.read()?).is_open() {
            return Ok(false);
        }
        let key = place.contents()?.key;
        entry_list::remove(&pair.list_of(key), self.entry).map(|()| true)
    }
}

/// A list of the directory of a pair's lower rank.
#[derive(Clone, Copy, Debug)]
struct ArenaList<'m> {
    pair: RankPair<'m>,
    head: GlobalAddress,
}

impl ArenaList<'_> {
    fn address_of(&self, which: Head) -> GlobalAddress {
        match which {
            Head::Used => self.head,
            Head::Free => at(self.pair.lower, ENTRIES_FREE),
        }
    }
}

impl ListMemory for ArenaList<'_> {
    type Error = Error;

    fn head(&self, which: Head) -> Result<u64> {
        self.pair.worker.get_word(self.address_of(which), Width::W8)
    }

    fn exchange_head(&self, which: Head, expected: u64, new: u64) -> Result<u64> {
        let exchange = atomic8(AtomicKind::Cas { expected }, new);
        self.pair.worker.atomic(self.address_of(which), exchange) // SYNC directory-head
    }

    fn contents(&self, entry: u32) -> Result<DirectoryEntry> {
        self.pair.entry_ref(entry).contents()
    }

    fn write(&self, entry: u32, contents: DirectoryEntry) -> Result<()> {
        self.pair.worker.put(self.pair.entry_ref(entry).address(), &contents.bytes())
    }

    fn set_next(&self, entry: u32, next: u32) -> Result<()> {
        self.pair.worker.put(self.pair.entry_ref(entry).address().add(NEXT), &next.to_ne_bytes())
    }

    fn fresh(&self) -> Result<u32> {
        let place = at(self.pair.lower, ENTRIES_TAKEN);
        let number = self.pair.worker.atomic(place, atomic8(AtomicKind::Add, 1))?;
        if number >= ENTRIES_MAX {
            return Err(Cause::Full { what: DIRECTORY_OF_MESSAGES, capacity: ENTRIES_MAX as usize }.into());
        }
        Ok(number as u32 + 1)
    }
}

impl<'m> RankPair<'m> {
    fn with(worker: &'m Worker, peer: Rank) -> RankPair<'m> {
        let me = worker.rank();
        RankPair { worker, lower: me.min(peer), higher: me.max(peer) }
    }

    /// Returns the side of the pair that this rank is on.
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

    fn list_of(self, key: DirectoryKey) -> ArenaList<'m> {
        ArenaList { pair: self, head: at(self.lower, HEADS + key.hash() % HEADS_MAX * HEAD) }
    }
}

impl EntryRef<'_> {
    fn contents(&self) -> Result<DirectoryEntry> {
        let mut bytes = [0; ENTRY as usize];
        self.pair.worker.get(self.address(), &mut bytes)?;
        Ok(DirectoryEntry::read(&bytes))
    }

    fn address(&self) -> GlobalAddress {
        at(self.pair.lower, ENTRIES + u64::from(self.entry - 1) * ENTRY)
    }

    fn open(&self) -> Result<OpenedBank> {
        Ok(self.opened(ref_count::open(self, self.pair.side())?))
    }

    fn opened(&self, ref_count: RefCount) -> OpenedBank {
        let (ours, theirs) = match self.pair.side() {
            // A rank that is paired with itself has both ends: it reads what it writes.
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
        self.pair.worker.atomic(self.address().add(REF_COUNT), exchange) // SYNC bank-units
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
    /// The peers of one context get neighbouring list heads, so they do not collide, and use few memory pages.
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

    /// Decodes an entry. If other ranks can see the entry, its reference count may have changed since it was read.
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
