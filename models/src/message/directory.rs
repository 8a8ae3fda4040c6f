//! How two ranks find the slots that they share: a table in the arena of the lower of the two.
//!
//! Whoever comes first makes the entry: takes a unit at both ends, writes an entry of its own, and hangs it into the
//! list by exchanging the list's head. Who loses that exchange finds the other's entry and gives its own units back.
//! An entry is whole before anybody can see it and never changes after, so nobody ever waits for anybody here.

use super::arena::{self, at, word8};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Machine;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};

const HEADS: u64 = 64 << 10;
const HEADS_MAX: u64 = 8192;
const ENTRIES: u64 = 128 << 10;
const ENTRY: u64 = 32;
const ENTRIES_MAX: u64 = ((8 << 20) - ENTRIES) / ENTRY;
const ENTRIES_TAKEN: u64 = 16;

/// What an entry is found by, besides its lower rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    context: u64,
    higher: u32,
    page: u32,
}

/// The units of a pair's page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    key: Key,
    at_lower: u32,
    at_higher: u32,
    /// The entry made before it with the same head; 0 for none.
    next: u32,
}

/// The units of a page of the pair that this rank and `peer` are in that context: this rank's, and the peer's. Makes
/// them if need be. A few dependent accesses to the lower of the two.
pub(crate) fn find(machine: &Machine, peer: Rank, context: u64, page: u32) -> Result<(u32, u32)> {
    let me = machine.rank();
    let (lower, higher) = (me.min(peer), me.max(peer));
    let key = Key { context, higher: higher.0, page };
    let head = at(lower, HEADS + key.hash() % HEADS_MAX * 4);
    let mut first = machine.get_word(head, Width::W4)? as u32;
    let mut own = match search(machine, lower, first, 0, key)? {
        Some(entry) => return Ok(entry.units(me == lower)),
        None => make(machine, lower, higher, key)?,
    };
    loop {
        own.1.next = first;
        machine.put(place(lower, own.0), &own.1.bytes())?;
        let hang = AtomicKind::Cas { expected: u64::from(first) };
        let hang = Atomic { kind: hang, operand: u64::from(own.0), width: Width::W4 };
        let found = machine.atomic(head, hang)? as u32;
        if found == first {
            return Ok(own.1.units(me == lower));
        }
        if let Some(entry) = search(machine, lower, found, first, key)? {
            arena::give_back(machine, lower, own.1.at_lower)?;
            if higher != lower {
                arena::give_back(machine, higher, own.1.at_higher)?;
            }
            return Ok(entry.units(me == lower));
        }
        first = found;
    }
}

/// Looks through the entries from `from` to before `until`.
fn search(machine: &Machine, lower: Rank, from: u32, until: u32, key: Key) -> Result<Option<Entry>> {
    let mut number = from;
    while number != until {
        let mut bytes = [0; ENTRY as usize];
        machine.get(place(lower, number), &mut bytes)?;
        let entry = Entry::read(&bytes);
        if entry.key == key {
            return Ok(Some(entry));
        }
        number = entry.next;
    }
    Ok(None)
}

/// A new entry with units of its own, which nobody sees yet, and its number.
fn make(machine: &Machine, lower: Rank, higher: Rank, key: Key) -> Result<(u32, Entry)> {
    let number = machine.atomic(at(lower, ENTRIES_TAKEN), word8(AtomicKind::Add, 1))?;
    if number >= ENTRIES_MAX {
        let what = "the directory of messages (an entry for each pair, context and 64 slots)";
        return Err(Cause::Full { what, capacity: ENTRIES_MAX as usize }.into());
    }
    let at_lower = arena::take(machine, lower)?;
    // With itself a rank is both ends: what it writes it reads.
    let at_higher = if lower == higher { at_lower } else { arena::take(machine, higher)? };
    Ok((number as u32 + 1, Entry { key, at_lower, at_higher, next: 0 }))
}

fn place(lower: Rank, number: u32) -> tasuki_core::segment::GlobalAddress {
    at(lower, ENTRIES + u64::from(number - 1) * ENTRY)
}

impl Key {
    fn hash(self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        mix(mix(mix(0, self.context), u64::from(self.higher)), u64::from(self.page))
    }
}

impl Entry {
    fn units(self, lower: bool) -> (u32, u32) {
        if lower { (self.at_lower, self.at_higher) } else { (self.at_higher, self.at_lower) }
    }

    fn bytes(self) -> [u8; ENTRY as usize] {
        let mut bytes = [0; ENTRY as usize];
        bytes[..8].copy_from_slice(&self.key.context.to_ne_bytes());
        let rest = [self.key.higher, self.key.page, self.at_lower, self.at_higher, self.next];
        for (place, word) in bytes[8..].chunks_exact_mut(4).zip(rest) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8; ENTRY as usize]) -> Entry {
        let (context, rest) = bytes.split_at(8);
        let word = |index: usize| {
            let word = rest[index * 4..][..4].try_into().expect("four bytes");
            u32::from_ne_bytes(word)
        };
        let context = u64::from_ne_bytes(context.try_into().expect("eight bytes"));
        let key = Key { context, higher: word(0), page: word(1) };
        Entry { key, at_lower: word(2), at_higher: word(3), next: word(4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let key = Key { context: u64::MAX - 1, higher: 7, page: 16383 };
        let entry = Entry { key, at_lower: 1, at_higher: 65000, next: 12 };
        assert_eq!(Entry::read(&entry.bytes()), entry);
        assert_eq!((entry.units(true), entry.units(false)), ((1, 65000), (65000, 1)));
    }
}
