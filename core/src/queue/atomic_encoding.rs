//! The encoding of an atomic operation in a command.

use crate::fabric::{Atomic, AtomicKind, Width};

/// All atomic operations. The index is the number that encodes the operation.
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

/// Encodes the operation in bits 0-3. Bit 4 is set for a word of eight bytes.
pub(super) fn atomic_number(atomic: Atomic) -> u8 {
    let same = |kind: &AtomicKind| std::mem::discriminant(kind) == std::mem::discriminant(&atomic.kind);
    let kind = KINDS.iter().position(same).unwrap_or(0) as u8;
    kind | u8::from(atomic.width == Width::W8) << 4
}

/// Decodes such a number; `None` if it encodes no operation.
pub(super) fn atomic_of(number: u8, operand: u64, expected: u64) -> Option<Atomic> {
    let kind = match *KINDS.get(usize::from(number & 15))? {
        AtomicKind::Cas { .. } => AtomicKind::Cas { expected },
        kind => kind,
    };
    Some(Atomic { kind, operand, width: if number & 16 != 0 { Width::W8 } else { Width::W4 } })
}
