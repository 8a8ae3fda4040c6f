//! Why a signal will never be raised as it should have been: the first failure of a command that was to raise it.

use crate::base::{Cause, Rank};

/// A failure in four words, as it travels from signal to signal.
///
/// Causes are told apart as far as numbers can: what a text said stays with the rank where it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poison {
    kind: u32,
    /// The rank on which it happened.
    origin: Rank,
    details: [u64; 2],
}

/// Kinds, from 1 on: 0 is a signal that is sound.
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

impl Poison {
    /// The failure of something that `origin` carried out.
    pub fn of(cause: &Cause, origin: Rank) -> Poison {
        let (kind, details) = match *cause {
            Cause::Poisoned { origin, ref cause } => return Poison::of(cause, origin),
            Cause::NullAddress => (NULL, [0, 0]),
            Cause::NoSuchRank { rank, size } => (NO_RANK, [u64::from(rank.0), size as u64]),
            Cause::OutOfRange { address, bytes } => (RANGE, [address, bytes]),
            Cause::Stale { address } => (STALE, [address, 0]),
            Cause::Misaligned { address, align } => (MISALIGNED, [address, align as u64]),
            Cause::SignalMemory { address } => (SIGNAL_MEMORY, [address, 0]),
            Cause::PeerLeft { peer } => (LEFT, [u64::from(peer.0), 0]),
            Cause::PeerDied { peer, .. } => (DIED, [u64::from(peer.0), 0]),
            Cause::Program(_) => (PANICKED, [0, 0]),
            Cause::QueueDropped => (DROPPED, [0, 0]),
            _ => (OTHER, [0, 0]),
        };
        Poison { kind, origin, details }
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
                Cause::PeerDied { peer: Rank(first as u32), how, ago: std::time::Duration::ZERO }
            }
            PANICKED => Cause::Program(format!("a handler failed; rank {} says how", self.origin)),
            DROPPED => Cause::QueueDropped,
            _ => Cause::Unsupported(format!("a command failed; the log of rank {} says how", self.origin)),
        };
        Cause::Poisoned { origin: self.origin, cause: Box::new(cause) }
    }

    /// As words, of which the first is not 0.
    pub fn words(self) -> [u64; 3] {
        [u64::from(self.kind) << 32 | u64::from(self.origin.0), self.details[0], self.details[1]]
    }

    /// The failure that such words are; `None` if the first says that there is none.
    pub fn from_words([first, a, b]: [u64; 3]) -> Option<Poison> {
        let kind = (first >> 32) as u32;
        (kind != 0).then_some(Poison { kind, origin: Rank(first as u32), details: [a, b] })
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
        assert_eq!(first.cause(), Cause::Poisoned { origin: Rank(3), cause: Box::new(cause) });
        assert_eq!(Poison::from_words([0; 3]), None);
    }

    #[test]
    fn what_numbers_cannot_say_names_its_rank() {
        let text = format!("{:?}", Poison::of(&Cause::Bug("x".into()), Rank(5)).cause());
        assert!(text.contains("rank 5"), "{text}");
    }
}
