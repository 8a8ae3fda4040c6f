//! Why a signal will never be raised as it should have been: the first failure of a command that was to raise it.

use crate::base::{Cause, Rank};
use std::time::Duration;

/// A failure in four words, as it travels from signal to signal.
///
/// Causes are told apart as far as numbers can: what a text said stays with the rank where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poison {
    kind: u32,
    /// Whether it came by a signal, from a command before.
    handed_on: bool,
    /// The rank on which it happened.
    origin: Rank,
    details: [u64; 2],
}

/// Kinds, from 1 on: 0 is a signal that is sound. The highest bit says whether it was handed on.
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
const HANDED_ON: u32 = 1 << 31;

impl Poison {
    /// The failure of something that `origin` carried out.
    pub fn of(cause: &Cause, origin: Rank) -> Poison {
        let (kind, details) = match *cause {
            Cause::Poisoned { origin, ref cause } => return Poison::of(cause, origin).handed_on(),
            Cause::Failed { rank, ref cause } => return Poison::of(cause, rank),
            Cause::NullAddress => (NULL, [0, 0]),
            Cause::NoSuchRank { rank, size } => (NO_RANK, [u64::from(rank.0), size as u64]),
            Cause::OutOfRange { address, bytes } => (RANGE, [address, bytes]),
            Cause::Stale { address } => (STALE, [address, 0]),
            Cause::Misaligned { address, align } => (MISALIGNED, [address, align as u64]),
            Cause::SignalMemory { address } => (SIGNAL_MEMORY, [address, 0]),
            Cause::PeerLeft { peer } => (LEFT, [u64::from(peer.0), 0]),
            Cause::PeerDied { peer, .. } => (DIED, [u64::from(peer.0), 0]),
            Cause::HandlerFailed { handler, .. } => (PANICKED, [u64::from(handler), 0]),
            Cause::QueueDropped => (DROPPED, [0, 0]),
            Cause::OperationPanicked { rank } => (OPERATION, [u64::from(rank.0), 0]),
            Cause::QueueUnwound { rank } => (UNWOUND, [u64::from(rank.0), 0]),
            _ => (OTHER, [0, 0]),
        };
        Poison { kind, handed_on: false, origin, details }
    }

    /// The same as what a signal brings to those who wait for it.
    pub fn handed_on(self) -> Poison {
        Poison { handed_on: true, ..self }
    }

    /// The same as the failure of a command itself, though a signal brought it to whoever tells.
    pub fn first_hand(self) -> Poison {
        Poison { handed_on: false, ..self }
    }

    /// The failure as a cause: where it happened, and what it was.
    pub fn cause(self) -> Cause {
        let [first, second] = self.details;
        let cause = match self.kind {
            NULL => Cause::NullAddress,
            NO_RANK => Cause::NoSuchRank { rank: Rank(first as u32), size: second as usize },
            RANGE => Cause::OutOfRange { address: first, bytes: second },
            STALE => Cause::Stale { address: first },
            MISALIGNED => Cause::Misaligned { address: first, align: second as usize },
            SIGNAL_MEMORY => Cause::SignalMemory { address: first },
            LEFT => Cause::PeerLeft { peer: Rank(first as u32) },
            DIED => {
                let how = "in the middle of a command".into();
                Cause::PeerDied { peer: Rank(first as u32), how, ago: Duration::ZERO }
            }
            PANICKED => Cause::HandlerFailed { handler: first as u8, name: String::new() },
            DROPPED => Cause::QueueDropped,
            OPERATION => Cause::OperationPanicked { rank: Rank(first as u32) },
            UNWOUND => Cause::QueueUnwound { rank: Rank(first as u32) },
            _ => {
                let log = format!("the log of rank {} says how (TASUKI_LOG=info)", self.origin);
                Cause::Unsupported(log)
            }
        };
        let (origin, cause) = (self.origin, Box::new(cause));
        if self.handed_on { Cause::Poisoned { origin, cause } } else { Cause::Failed { rank: origin, cause } }
    }

    /// As words, of which the first is not 0.
    pub fn words(self) -> [u64; 3] {
        let kind = self.kind | if self.handed_on { HANDED_ON } else { 0 };
        [u64::from(kind) << 32 | u64::from(self.origin.0), self.details[0], self.details[1]]
    }

    /// The failure that such words are; `None` if the first says that there is none.
    pub fn from_words([first, a, b]: [u64; 3]) -> Option<Poison> {
        let (head, origin) = ((first >> 32) as u32, Rank(first as u32));
        let (kind, handed_on) = (head & !HANDED_ON, head & HANDED_ON != 0);
        (kind != 0).then_some(Poison { kind, handed_on, origin, details: [a, b] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_keeps_its_numbers_and_its_origin_on_every_way() {
        let cause = Cause::OutOfRange { address: 77, bytes: 8 };
        let first = Poison::of(&cause, Rank(3));
        let again = Poison::of(&first.cause(), Rank(9));
        assert_eq!(again, first, "who only passes it on is not its origin");
        assert_eq!(Poison::from_words(first.words()), Some(first));
        assert_eq!(first.cause(), Cause::Failed { rank: Rank(3), cause: Box::new(cause.clone()) });
        let later = first.handed_on();
        assert_eq!(later.cause(), Cause::Poisoned { origin: Rank(3), cause: Box::new(cause) });
        assert_eq!(Poison::of(&later.cause(), Rank(9)), later);
        assert_eq!(Poison::from_words(later.words()), Some(later));
        assert_eq!(later.first_hand(), first);
        assert_eq!(Poison::from_words([0; 3]), None);
    }

    #[test]
    fn what_numbers_cannot_say_names_its_rank() {
        let text = format!("{:?}", Poison::of(&Cause::Bug("x".into()), Rank(5)).cause());
        assert!(text.contains("rank 5"), "{text}");
    }
}
