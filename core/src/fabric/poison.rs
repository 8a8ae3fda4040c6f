//! Poison: why a signal will never reach its value. It holds the first failure of a command that was to raise the
//! signal.

use crate::base::{Cause, Rank};
use std::time::Duration;

/// A failure, encoded in three words that are passed from signal to signal.
///
/// Only the kind and the numbers of a cause are kept. Its text stays in the log of the rank where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poison {
    kind: u32,
    /// True if the failure reached this signal through another signal, from an earlier command.
    forwarded: bool,
    /// The rank on which the failure happened.
    origin: Rank,
    details: [u64; 2],
}

/// Kinds, from 1 on: 0 means a sound signal. The highest bit is set if the failure was forwarded.
const NULL: u32 = 1;
const NO_RANK: u32 = 2;
const RANGE: u32 = 3;
const STALE: u32 = 4;
const MISALIGNED: u32 = 5;
const SIGNAL_MEMORY: u32 = 6;
const LEFT: u32 = 7;
const DIED: u32 = 8;
const PANICKED: u32 = 9;
const DROPPED: u32 = 10;
const OTHER: u32 = 11;
const UNWOUND: u32 = 12;
const OPERATION: u32 = 13;
const CLOSED_MEMORY: u32 = 14;
const FORWARDED: u32 = 1 << 31;

impl Poison {
    /// Encodes the failure of something that `origin` executed.
    pub fn of(cause: &Cause, origin: Rank) -> Poison {
        let (kind, details) = match *cause {
            Cause::Poisoned { origin, ref cause } => return Poison::of(cause, origin).forwarded(),
            Cause::Failed { rank, ref cause } => return Poison::of(cause, rank),
            Cause::NullAddress => (NULL, [0, 0]),
            Cause::NoSuchRank { rank, size } => (NO_RANK, [rank.0 as u64, size as u64]),
            Cause::OutOfRange { address, bytes, .. } => (RANGE, [address, bytes]),
            Cause::Stale { address } => (STALE, [address, 0]),
            Cause::Misaligned { address, align } => (MISALIGNED, [address, align as u64]),
            Cause::SignalMemory { address } => (SIGNAL_MEMORY, [address, 0]),
            Cause::ClosedMemory { address } => (CLOSED_MEMORY, [address, 0]),
            Cause::PeerLeft { peer } => (LEFT, [peer.0 as u64, 0]),
            Cause::PeerDied { peer, .. } => (DIED, [peer.0 as u64, 0]),
            Cause::HandlerFailed { handler, .. } => (PANICKED, [u64::from(handler), 0]),
            Cause::QueueDropped => (DROPPED, [0, 0]),
            Cause::OperationPanicked { rank } => (OPERATION, [rank.0 as u64, 0]),
            Cause::QueueUnwound { rank } => (UNWOUND, [rank.0 as u64, 0]),
            _ => (OTHER, [0, 0]),
        };
        Poison { kind, forwarded: false, origin, details }
    }

    /// Returns this failure as one that a signal forwards to commands that wait for it.
    pub fn forwarded(self) -> Poison {
        Poison { forwarded: true, ..self }
    }

    /// Returns this failure as a command's own, even if it came through a signal.
    pub fn as_own_failure(self) -> Poison {
        Poison { forwarded: false, ..self }
    }

    /// Decodes the failure into a cause that names the origin rank.
    pub fn cause(self) -> Cause {
        let [first, second] = self.details;
        let cause = match self.kind {
            NULL => Cause::NullAddress,
            NO_RANK => Cause::NoSuchRank { rank: Rank(first as usize), size: second as usize },
            RANGE => Cause::OutOfRange { address: first, bytes: second, registration: None },
            STALE => Cause::Stale { address: first },
            MISALIGNED => Cause::Misaligned { address: first, align: second as usize },
            SIGNAL_MEMORY => Cause::SignalMemory { address: first },
            CLOSED_MEMORY => Cause::ClosedMemory { address: first },
            LEFT => Cause::PeerLeft { peer: Rank(first as usize) },
            DIED => {
                let how = "in the middle of a command".into();
                Cause::PeerDied { peer: Rank(first as usize), how, ago: Duration::ZERO }
            }
            PANICKED => {
                Cause::HandlerFailed { handler: first as u8, name: String::new(), text: String::new() }
            }
            DROPPED => Cause::QueueDropped,
            OPERATION => Cause::OperationPanicked { rank: Rank(first as usize) },
            UNWOUND => Cause::QueueUnwound { rank: Rank(first as usize) },
            _ => {
                let log = format!("see the log of rank {} (TASUKI_LOG=info)", self.origin);
                Cause::Unsupported(log)
            }
        };
        let (origin, cause) = (self.origin, Box::new(cause));
        if self.forwarded { Cause::Poisoned { origin, cause } } else { Cause::Failed { rank: origin, cause } }
    }

    /// Encodes the poison. The first word is never 0.
    pub fn words(self) -> [u64; 3] {
        let kind = self.kind | if self.forwarded { FORWARDED } else { 0 };
        [u64::from(kind) << 32 | u64::from(self.origin.to_word()), self.details[0], self.details[1]]
    }

    /// Decodes the words; `None` if the first one says that the signal is sound.
    pub fn from_words([first, a, b]: [u64; 3]) -> Option<Poison> {
        let (head, origin) = ((first >> 32) as u32, Rank::from_word(first as u32));
        let (kind, forwarded) = (head & !FORWARDED, head & FORWARDED != 0);
        (kind != 0).then_some(Poison { kind, forwarded, origin, details: [a, b] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_keeps_cause_and_origin_when_forwarded() {
        let cause = Cause::OutOfRange { address: 77, bytes: 8, registration: None };
        let first = Poison::of(&cause, Rank(3));
        let again = Poison::of(&first.cause(), Rank(9));
        assert_eq!(again, first, "a rank that only forwards the failure is not its origin");
        assert_eq!(Poison::from_words(first.words()), Some(first));
        assert_eq!(first.cause(), Cause::Failed { rank: Rank(3), cause: Box::new(cause.clone()) });
        let later = first.forwarded();
        assert_eq!(later.cause(), Cause::Poisoned { origin: Rank(3), cause: Box::new(cause) });
        assert_eq!(Poison::of(&later.cause(), Rank(9)), later);
        assert_eq!(Poison::from_words(later.words()), Some(later));
        assert_eq!(later.as_own_failure(), first);
        assert_eq!(Poison::from_words([0; 3]), None);
    }

    #[test]
    fn other_causes_name_the_origin_rank() {
        let text = format!("{:?}", Poison::of(&Cause::Bug("x".into()), Rank(5)).cause());
        assert!(text.contains("rank 5"), "{text}");
    }
}
