//! Atomics as numbers, as lines of commands have them.

use crate::fabric::{Atomic, AtomicKind, Width};

/// All there are, by their number.
pub(super) const KINDS: [AtomicKind; 8] = [
    AtomicKind::Store,
    AtomicKind::Swap,
    AtomicKind::Add,
    AtomicKind::Xor,
    AtomicKind::Or,
    AtomicKind::And,
    AtomicKind::Cas { expected: 0 },
    AtomicKind::Load,
];

/// Kind in bits 0-3, bit 4 for words of eight bytes.
pub(super) fn atomic_number(atomic: Atomic) -> u8 {
    let same = |kind: &AtomicKind| std::mem::discriminant(kind) == std::mem::discriminant(&atomic.kind);
    let kind = KINDS.iter().position(same).unwrap_or(0) as u8;
    kind | u8::from(atomic.width == Width::W8) << 4
}

/// The atomic of such a number.
pub(super) fn atomic_of(number: u8, operand: u64, expected: u64) -> Option<Atomic> {
    let kind = match *KINDS.get(usize::from(number & 15))? {
        AtomicKind::Cas { .. } => AtomicKind::Cas { expected },
        kind => kind,
    };
    Some(Atomic { kind, operand, width: if number & 16 != 0 { Width::W8 } else { Width::W4 } })
}
