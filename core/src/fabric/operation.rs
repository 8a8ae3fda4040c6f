//! Operations of a fabric: their tokens, their results, and atomic operations on a word.
#![allow(unsafe_code)]
//! Unsafe: atomic access to words whose addresses the caller has checked. Everybody accesses these words as atomics.

use crate::base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use crate::base::{Cause, relaxed_if_planted};
use crate::segment::GlobalAddress;
use std::ptr::NonNull;

/// Identifies an operation to its issuer.
pub type Token = u64;

/// Returns the token of an operation that will end later. A fabric calls it once, before anybody can see the
/// operation end, and only if it then returns [`Accepted::Started`]. So an operation that ends at once costs no
/// bookkeeping.
pub type Accept<'a> = &'a dyn Fn() -> Token;

/// The result of an operation that the fabric accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// The operation has ended, locally and remotely. Holds the value that it fetched; after a raise or a
    /// poisoning, the *mark* of the signal, which says which queues wait for it (`signal_control.rs`); otherwise 0.
    Done(u64),
    /// The operation is in flight and ends through `poll`.
    Started,
}

/// The fabric did not accept the operation; it has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Refused {
    /// Resources are exhausted for the moment: poll and try again.
    Again,
    /// The operation can never succeed. Boxed, so that every result takes three words.
    Never(Box<Cause>),
    /// Returned by `copy` only: copying between these two addresses takes a get and a put through the issuer's
    /// memory.
    Relay,
}

const _: () = assert!(size_of::<Result<Accepted, Refused>>() <= 24);

impl From<Cause> for Refused {
    #[cold]
    fn from(cause: Cause) -> Refused {
        Refused::Never(Box::new(cause))
    }
}

/// A command to be written into another rank's ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandWrite {
    /// The global addresses of its lines.
    pub places: [GlobalAddress; 2],
    /// The ring position of the first line.
    pub position: u64,
    /// The contents of the lines.
    pub words: [[u64; 7]; 2],
    /// How many lines there are: 1 or 2.
    pub lines: u64,
}

/// Size of the word that an atomic operation accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Four bytes.
    W4,
    /// Eight bytes.
    W8,
}

impl Width {
    /// Size in bytes. The word must be aligned to it.
    #[inline]
    pub const fn bytes(self) -> u64 {
        match self {
            Width::W4 => 4,
            Width::W8 => 8,
        }
    }

    /// Loads the word at `place`.
    ///
    /// # Safety
    /// `place` points to an aligned word of this width, in memory that lives during the call.
    #[inline]
    pub unsafe fn load(self, place: NonNull<u8>) -> u64 {
        // SAFETY: the caller promises an aligned word of this width that lives during the call; all access it as an
        // atomic.
        unsafe {
            match self {
                Width::W4 => u64::from(place.cast::<AtomicU32>().as_ref().load(Relaxed)),
                Width::W8 => place.cast::<AtomicU64>().as_ref().load(Relaxed),
            }
        }
    }
}

/// What an atomic operation does to the word. Arithmetic is unsigned and wraps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicKind {
    /// Stores the operand. The result is 0.
    Store,
    /// Stores the operand and returns the old value.
    Swap,
    /// Adds the operand.
    Add,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Stores the operand if the word equals `expected`.
    Cas {
        /// The value to compare with.
        expected: u64,
    },
    /// Returns the value and changes nothing.
    Load,
}

/// An atomic operation on one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// What the operation does.
    pub kind: AtomicKind,
    /// Its operand.
    pub operand: u64,
    /// The size of the word.
    pub width: Width,
}

/// Applies an operation to a word of that type.
macro_rules! apply {
    ($atomic:expr, $word:expr, $value:ty) => {{
        let (word, value) = ($word, $atomic.operand as $value);
        match $atomic.kind {
            AtomicKind::Store => {
                word.store(value, SeqCst);
                0
            }
            AtomicKind::Swap => word.swap(value, SeqCst),
            AtomicKind::Add => word.fetch_add(value, SeqCst),
            AtomicKind::Xor => word.fetch_xor(value, SeqCst),
            AtomicKind::Or => word.fetch_or(value, SeqCst),
            AtomicKind::And => word.fetch_and(value, SeqCst),
            AtomicKind::Load => word.load(SeqCst),
            AtomicKind::Cas { expected } => {
                let order = relaxed_if_planted("ref_count_exchange_relaxed", SeqCst); // SYNC bank-units
                word.compare_exchange(expected as $value, value, order, order).unwrap_or_else(|found| found)
            }
        }
    }};
}

impl Atomic {
    /// Applies the operation to the word at `place` and returns the old value.
    ///
    /// # Safety
    /// `place` points to an aligned word of this width, in memory that lives during the call.
    #[inline]
    pub unsafe fn apply(self, place: NonNull<u8>) -> u64 {
        // SAFETY: the caller promises an aligned word of this width that lives during the call; all access it as an
        // atomic.
        unsafe {
            match self.width {
                Width::W4 => self.apply4(place.cast::<AtomicU32>().as_ref()),
                Width::W8 => self.apply8(place.cast::<AtomicU64>().as_ref()),
            }
        }
    }

    /// Applies the operation to an eight-byte word with the processor's atomics and returns the old value.
    #[inline]
    pub fn apply8(self, word: &AtomicU64) -> u64 {
        apply!(self, word, u64)
    }

    /// Applies the operation to a four-byte word and returns the old value.
    #[inline]
    pub fn apply4(self, word: &AtomicU32) -> u64 {
        u64::from(apply!(self, word, u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_changes_the_word_and_returns_the_old_value() {
        let expect = [
            (AtomicKind::Store, 0b0101, 0, 0b0101),
            (AtomicKind::Swap, 0b0101, 0b1111, 0b0101),
            (AtomicKind::Add, 1, 0b1111, 0b10000),
            (AtomicKind::Xor, 0b0101, 0b1111, 0b1010),
            (AtomicKind::Or, 0b10000, 0b1111, 0b11111),
            (AtomicKind::And, 0b0101, 0b1111, 0b0101),
            (AtomicKind::Cas { expected: 0b1111 }, 7, 0b1111, 7),
            (AtomicKind::Cas { expected: 1 }, 7, 0b1111, 0b1111),
            (AtomicKind::Load, 7, 0b1111, 0b1111),
        ];
        for (kind, operand, before, after) in expect {
            let (long, short) = (AtomicU64::new(0b1111), AtomicU32::new(0b1111));
            assert_eq!(Atomic { kind, operand, width: Width::W8 }.apply8(&long), before, "{kind:?}");
            assert_eq!(Atomic { kind, operand, width: Width::W4 }.apply4(&short), before, "{kind:?}");
            assert_eq!((long.into_inner(), short.into_inner() as u64), (after, after), "{kind:?}");
        }
    }

    #[test]
    fn add_wraps() {
        let word = AtomicU32::new(u32::MAX);
        Atomic { kind: AtomicKind::Add, operand: 2, width: Width::W4 }.apply4(&word);
        assert_eq!(word.into_inner(), 1);
    }
}
