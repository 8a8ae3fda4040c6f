//! What an operation is made of, and how it is answered.
#![allow(unsafe_code)]
//! Unsafe: words at places that the caller has found; they are atomics for everybody.

use crate::base::Cause;
use crate::segment::GlobalAddress;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Names an operation to its issuer.
pub type Token = u64;

/// Gives the token under which an operation will end. A fabric calls it once, before anybody can see the operation
/// end, and only if it then answers [`Posted::Started`]: an operation that ends at once costs no book-keeping.
pub type Accept<'a> = &'a dyn Fn() -> Token;

/// An operation that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// It has ended: local and remote completion, with what it fetched (0 if nothing).
    Done(u64),
    /// It is under way and ends through `poll`.
    Started,
}

/// An operation that was not taken and has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Refused {
    /// No room just now: poll and try again.
    Again,
    /// It can never be done. Boxed, so that the answer of every operation is three words.
    Never(Box<Cause>),
    /// Only `copy` answers so: these two places need a get and a put, through memory of the issuer.
    Relay,
}

const _: () = assert!(size_of::<Result<Posted, Refused>>() <= 24);

impl From<Cause> for Refused {
    #[cold]
    fn from(cause: Cause) -> Refused {
        Refused::Never(Box::new(cause))
    }
}

/// A command that is written into a ring of another rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandWrite {
    /// Where its lines are.
    pub places: [GlobalAddress; 2],
    /// The position of the first.
    pub position: u64,
    /// What they say.
    pub words: [[u64; 7]; 2],
    /// How many there are.
    pub lines: u64,
}

/// Size of the word that an atomic operation changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Four bytes.
    W4,
    /// Eight bytes.
    W8,
}

impl Width {
    /// In bytes, which is also the alignment needed.
    #[inline]
    pub const fn bytes(self) -> u64 {
        match self {
            Width::W4 => 4,
            Width::W8 => 8,
        }
    }

    /// The value of the word at `place`.
    ///
    /// # Safety
    /// `place` is an aligned word of that width, in memory that lives during the call.
    #[inline]
    pub unsafe fn load(self, place: NonNull<u8>) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Width::W4 => u64::from(place.cast::<AtomicU32>().as_ref().load(Relaxed)),
                Width::W8 => place.cast::<AtomicU64>().as_ref().load(Relaxed),
            }
        }
    }
}

/// What happens to the word. Unsigned, wrapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicKind {
    /// Becomes the operand.
    Store,
    /// Becomes the operand; the old value is wanted.
    Swap,
    /// Grows by the operand.
    Add,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Becomes the operand if it is `expected`.
    Cas {
        /// The value that must be there.
        expected: u64,
    },
    /// Stays; its value is wanted.
    Load,
}

/// One change of one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// What happens.
    pub kind: AtomicKind,
    /// With which value.
    pub operand: u64,
    /// To how large a word.
    pub width: Width,
}

impl Atomic {
    /// Applies the change to the word at `place`; what it was.
    ///
    /// # Safety
    /// `place` is an aligned word of that width, in memory that lives during the call.
    #[inline]
    pub unsafe fn apply(self, place: NonNull<u8>) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self.width {
                Width::W4 => self.apply4(place.cast::<AtomicU32>().as_ref()),
                Width::W8 => self.apply8(place.cast::<AtomicU64>().as_ref()),
            }
        }
    }

    /// Applies the change to a word of eight bytes with the processor's own atomics; what it was.
    #[inline]
    pub fn apply8(self, word: &AtomicU64) -> u64 {
        let value = self.operand;
        match self.kind {
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
                word.compare_exchange(expected, value, SeqCst, SeqCst).unwrap_or_else(|found| found)
            }
        }
    }

    /// Applies the change to a word of four bytes; what it was.
    #[inline]
    pub fn apply4(self, word: &AtomicU32) -> u64 {
        let value = self.operand as u32;
        let before = match self.kind {
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
                word.compare_exchange(expected as u32, value, SeqCst, SeqCst).unwrap_or_else(|found| found)
            }
        };
        u64::from(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_changes_the_word_and_tells_what_it_was() {
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
    fn words_wrap() {
        let word = AtomicU32::new(u32::MAX);
        Atomic { kind: AtomicKind::Add, operand: 2, width: Width::W4 }.apply4(&word);
        assert_eq!(word.into_inner(), 1);
    }
}
