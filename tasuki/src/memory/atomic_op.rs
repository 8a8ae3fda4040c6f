//! The atomic operations on words.

use crate::memory::word::Word;
use tasuki_core::fabric::{Atomic, AtomicKind};

/// An atomic operation on a word that returns the word's previous value. Words may be signed or unsigned; additions
/// wrap.
///
/// ```
/// use tasuki::onesided::AtomicOp;
/// tasuki::local(1, |job| {
///     let word = job.alloc::<u64>(1)?;
///     assert_eq!(job.atomic(word.pointer(), AtomicOp::Add(5))?, 0);
///     assert_eq!(job.atomic(word.pointer(), AtomicOp::Or(8))?, 5);
///     assert_eq!(job.atomic(word.pointer(), AtomicOp::Swap(1))?, 13);
///     assert_eq!(word.get(0)?, 1);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp<W> {
    /// Replaces the word.
    Swap(W),
    /// Adds to the word.
    Add(W),
    /// Bitwise exclusive or.
    Xor(W),
    /// Bitwise or.
    Or(W),
    /// Bitwise and.
    And(W),
    /// Replaces the word by `new` if it equals `expected`.
    CompareSwap {
        /// The value that the word must have.
        expected: W,
        /// The value that the word gets in that case.
        new: W,
    },
}

impl<W: Word> AtomicOp<W> {
    pub(crate) fn atomic(self) -> Atomic {
        let (kind, operand) = match self {
            AtomicOp::Swap(value) => (AtomicKind::Swap, value),
            AtomicOp::Add(value) => (AtomicKind::Add, value),
            AtomicOp::Xor(value) => (AtomicKind::Xor, value),
            AtomicOp::Or(value) => (AtomicKind::Or, value),
            AtomicOp::And(value) => (AtomicKind::And, value),
            AtomicOp::CompareSwap { expected, new } => {
                (AtomicKind::Cas { expected: expected.to_bits() }, new)
            }
        };
        Atomic { kind, operand: operand.to_bits(), width: W::WIDTH }
    }
}
