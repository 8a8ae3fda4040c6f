//! The arena: memory for the slots of a rank's messages. It consists of units of a fixed size. The first rank of a pair
//! that needs a bank allocates its units.
//!
//! The arena of a rank is registered memory that every rank may change by one-sided operations. So a rank that first
//! sends to a peer, or receives from it, allocates a unit at both ranks without the help of the peer, which may be
//! computing. A freed unit is zeroed before it is used again.
//!
//! | offset | holds |
//! |---|---|
//! | 0 | head of the free list: changes:32, unit:32 (0: none) |
//! | 8 | how many units were ever allocated from fresh memory |
//! | 16 | how many entries of the directory were ever allocated from fresh memory |
//! | 24 | head of the list of free entries: changes:32, entry:32 (0: none) |
//! | 64 Ki | list heads of the directory |
//! | 128 Ki | entries of the directory |
//! | 8 Mi | units, beginning with number 1 |
//! | the last 16 Mi | the [any-source queue](crate::receive_queue::any_source) |

use tasuki_core::base::error_hint::ARENA_OF_MESSAGES;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::{ARENA, ARENA_BYTES, SLOT_LINE};

/// Slots of a unit: 64, and one for receives of any slot.
pub(crate) const UNIT_SLOTS: usize = 65;
/// Slot lines of a unit: two for each slot.
pub(crate) const LINES: usize = 2 * UNIT_SLOTS;
/// Bytes of a unit.
pub(crate) const UNIT: u64 = LINES as u64 * SLOT_LINE;
const UNITS: u64 = 8 << 20;
/// Bytes for the any-source queue.
pub(crate) const ANY_SOURCE_BYTES: u64 = 16 << 20;
/// Offset of the any-source queue.
pub(crate) const ANY_SOURCE: u64 = ARENA_BYTES - ANY_SOURCE_BYTES;
/// Number of units of a rank.
const UNITS_MAX: u64 = (ANY_SOURCE - UNITS) / UNIT;
const _: () = assert!(UNITS_MAX <= u16::MAX as u64, "a unit's number has 16 bits in `ref_count.rs`");

const FREE: u64 = 0;
const FRESH: u64 = 8;

pub(crate) fn at(rank: Rank, offset: u64) -> GlobalAddress {
    GlobalAddress::new(rank, ARENA + offset)
}

pub(crate) fn atomic8(kind: AtomicKind, operand: u64) -> Atomic {
    Atomic { kind, operand, width: Width::W8 }
}

/// Returns the address of a unit.
pub(crate) fn unit_at(rank: Rank, unit: u32) -> GlobalAddress {
    at(rank, UNITS + u64::from(unit - 1) * UNIT)
}

/// Allocates a unit of a rank. All its bytes are zero.
pub(crate) fn take(worker: &Worker, rank: Rank) -> Result<u32> {
    let mut head = worker.get_word(at(rank, FREE), Width::W8)?;
    while head as u32 != 0 {
        let unit = unit_at(rank, head as u32);
        let next = worker.get_word(unit, Width::W8)?;
        let rest = next_head(head, next as u32);
        let found = worker.atomic(at(rank, FREE), atomic8(AtomicKind::Cas { expected: head }, rest))?;
        if found == head {
            worker.put(unit, &[0; 8])?;
            return Ok(head as u32);
        }
        head = found;
    }
    let taken = worker.atomic(at(rank, FRESH), atomic8(AtomicKind::Add, 1))?;
    if taken >= UNITS_MAX {
        return Err(Cause::Full { what: ARENA_OF_MESSAGES, capacity: UNITS_MAX as usize }.into());
    }
    Ok(taken as u32 + 1)
}

/// Frees a unit that no rank uses any more.
pub(crate) fn give_back(worker: &Worker, rank: Rank, unit: u32) -> Result<()> {
    worker.put(unit_at(rank, unit), &[0; UNIT as usize])?;
    let mut head = worker.get_word(at(rank, FREE), Width::W8)?;
    loop {
        worker.put(unit_at(rank, unit), &u64::from(head as u32).to_ne_bytes())?;
        let new = next_head(head, unit);
        let found = worker.atomic(at(rank, FREE), atomic8(AtomicKind::Cas { expected: head }, new))?;
        if found == head {
            return Ok(());
        }
        head = found;
    }
}

/// Returns a head that names `unit` and differs from all earlier heads, so that no rank mistakes an old list for this
/// one.
pub(crate) fn next_head(head: u64, unit: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(unit)
}
