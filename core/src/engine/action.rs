//! An operation as it waits in the table: what it moves, and how far it has come.
#![allow(unsafe_code)]
//! Unsafe: carries addresses of local buffers between threads; whoever issued the operation promised that they
//! stay valid until it ends.

use crate::fabric::{Atomic, Limits, Poison};
use crate::segment::GlobalAddress;
use std::fmt;

/// A buffer of this process, valid until the operation that names it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local(pub *mut u8);

// SAFETY: an address; the issuer of the operation answers for the buffer.
unsafe impl Send for Local {}
// SAFETY: as above.
unsafe impl Sync for Local {}

impl Local {
    fn add(self, bytes: u64) -> Local {
        Local(self.0.wrapping_add(bytes as usize))
    }
}

/// What an operation does. Addresses are global; lengths in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// Local buffer to global address.
    Put {
        /// Where to.
        to: GlobalAddress,
        /// Where from.
        from: Local,
        /// How much.
        len: u64,
    },
    /// Global address to local buffer.
    Get {
        /// Where from.
        from: GlobalAddress,
        /// Where to.
        to: Local,
        /// How much.
        len: u64,
    },
    /// Global address to global address.
    Copy {
        /// Where from.
        from: GlobalAddress,
        /// Where to.
        to: GlobalAddress,
        /// How much.
        len: u64,
    },
    /// Put, then a signal of the same rank.
    PutSignal {
        /// Where to.
        to: GlobalAddress,
        /// Where from.
        from: Local,
        /// How much.
        len: u64,
        /// Which signal.
        signal: GlobalAddress,
        /// By how much it is raised.
        amount: u64,
    },
    /// A signal alone.
    Raise {
        /// Which signal.
        signal: GlobalAddress,
        /// By how much.
        amount: u64,
    },
    /// A signal that will never be raised.
    Poison {
        /// Which signal.
        signal: GlobalAddress,
        /// Why.
        poison: Poison,
    },
    /// One word; the old value goes to own memory if an address is given.
    Atomic {
        /// Which word.
        at: GlobalAddress,
        /// What happens to it.
        atomic: Atomic,
        /// Own memory that takes the old value, of the word's width; null for none.
        result: GlobalAddress,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Put { to, len, .. } => write!(f, "put({len} bytes to {to})"),
            Action::Get { from, len, .. } => write!(f, "get({len} bytes from {from})"),
            Action::Copy { from, to, len } => write!(f, "copy({len} bytes from {from} to {to})"),
            Action::PutSignal { to, len, .. } => write!(f, "put_signal({len} bytes to {to})"),
            Action::Raise { signal, amount } => write!(f, "raise(signal at {signal} by {amount})"),
            Action::Poison { signal, .. } => write!(f, "poison(signal at {signal})"),
            Action::Atomic { at, atomic, .. } => {
                let name = format!("{:?}", atomic.kind).to_lowercase();
                let name = name.split(' ').next().unwrap_or_default();
                write!(f, "atomic {name}({at}, {} bytes)", atomic.width.bytes())
            }
        }
    }
}

/// One call of the fabric on behalf of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    Put { to: GlobalAddress, from: Local, len: u64 },
    Get { from: GlobalAddress, to: Local, len: u64 },
    Copy { from: GlobalAddress, to: GlobalAddress, len: u64 },
    PutSignal { to: GlobalAddress, from: Local, len: u64, signal: GlobalAddress, amount: u64 },
    Raise { signal: GlobalAddress, amount: u64 },
    Poison { signal: GlobalAddress, poison: Poison },
    Atomic { at: GlobalAddress, atomic: Atomic },
    Flush { peer: crate::base::Rank },
    // Not a call that moves anything: looks at both ends of a transfer that will be moved in pieces.
    Check { ends: [GlobalAddress; 2], len: u64, signal: Option<GlobalAddress> },
}

/// Bytes of a bounce buffer for third-party copies over fabrics that know no third party.
const BOUNCE: u64 = 64 * 1024;

/// An operation under way: cut into steps that a fabric takes one after the other.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) action: Action,
    /// Bytes that have arrived at the destination (or its fabric).
    moved: u64,
    /// The next piece waits in the bounce buffer.
    bounced: bool,
    bounce: Option<Box<[u8]>>,
    flushed: bool,
    begun: bool,
    checked: bool,
    /// The fabric wants this copy carried out by get and put.
    pub(super) by_relay: bool,
}

impl Course {
    pub(super) fn new(action: Action) -> Course {
        Course {
            action,
            moved: 0,
            bounced: false,
            bounce: None,
            flushed: false,
            begun: false,
            checked: false,
            by_relay: false,
        }
    }

    /// The next step, or `None` when the operation has been carried out.
    ///
    /// `remote_completion`: a step that has ended is visible at its target; otherwise a flush comes last.
    pub(super) fn step(&mut self, limits: &Limits, remote_completion: bool) -> Option<Step> {
        if let Some(check) = self.check(limits) {
            return Some(check);
        }
        let piece = |len: u64| (len - self.moved).min(limits.transfer_bytes_max);
        let at = self.moved;
        match self.action {
            Action::Put { to, from, len } if at < len => {
                Some(Step::Put { to: to.add(at), from: from.add(at), len: piece(len) })
            }
            Action::Get { from, to, len } if at < len => {
                Some(Step::Get { from: from.add(at), to: to.add(at), len: piece(len) })
            }
            Action::Copy { from, to, len } if at < len => Some(self.copy(from, to, len, limits)),
            Action::PutSignal { to, from, len, signal, amount } if !self.begun || at < len => {
                let (to, from, last) = (to.add(at), from.add(at), len - at <= limits.transfer_bytes_max);
                Some(match self.flush(to, remote_completion) {
                    // The signal tells of the pieces before it, too.
                    Some(flush) if last => flush,
                    _ if last => Step::PutSignal { to, from, len: len - at, signal, amount },
                    _ => Step::Put { to, from, len: piece(len) },
                })
            }
            Action::Raise { signal, amount } if !self.begun => Some(Step::Raise { signal, amount }),
            Action::Poison { signal, poison } if !self.begun => Some(Step::Poison { signal, poison }),
            Action::Atomic { at, atomic, .. } if !self.begun => Some(Step::Atomic { at, atomic }),
            Action::Put { to, .. } | Action::Copy { to, .. } => self.flush(to, remote_completion),
            Action::Atomic { at, .. } => self.flush(at, remote_completion),
            Action::Get { .. } | Action::PutSignal { .. } => None,
            Action::Raise { .. } | Action::Poison { .. } => None,
        }
    }

    /// What comes before the first piece, if there will be several.
    fn check(&self, limits: &Limits) -> Option<Step> {
        let (ends, len, signal) = match self.action {
            Action::Put { to, len, .. } => ([to, to], len, None),
            Action::PutSignal { to, len, signal, .. } => ([to, to], len, Some(signal)),
            Action::Get { from, len, .. } => ([from, from], len, None),
            Action::Copy { from, to, len } => ([from, to], len, None),
            Action::Raise { .. } | Action::Poison { .. } | Action::Atomic { .. } => return None,
        };
        (len > self.piece_max(limits) && !self.checked && self.moved == 0).then_some(Step::Check {
            ends,
            len,
            signal,
        })
    }

    /// Bytes of the longest piece.
    fn piece_max(&self, limits: &Limits) -> u64 {
        if self.by_relay { limits.transfer_bytes_max.min(BOUNCE) } else { limits.transfer_bytes_max }
    }

    /// The next piece of a copy: by the fabric, or into the bounce buffer, or out of it.
    fn copy(&mut self, from: GlobalAddress, to: GlobalAddress, len: u64, limits: &Limits) -> Step {
        let left = len - self.moved;
        let size = left.min(self.piece_max(limits));
        let overlaps_upwards = from.rank() == to.rank() && from < to && to.bits() - from.bits() < len;
        // As memmove does: what the copy overwrites of its own source, it has read before.
        let at = if overlaps_upwards { left - size } else { self.moved };
        let (from, to) = (from.add(at), to.add(at));
        if !self.by_relay {
            return Step::Copy { from, to, len: size };
        }
        let bounce = self.bounce.get_or_insert_with(|| vec![0; BOUNCE as usize].into_boxed_slice());
        let buffer = Local(bounce.as_mut_ptr());
        if !self.bounced {
            Step::Get { from, to: buffer, len: size }
        } else {
            Step::Put { to, from: buffer, len: size }
        }
    }

    fn flush(&self, to: GlobalAddress, remote_completion: bool) -> Option<Step> {
        let needed = self.begun && !self.flushed && !remote_completion;
        needed.then(|| Step::Flush { peer: to.rank() })
    }

    /// A step has ended well.
    pub(super) fn advance(&mut self, step: &Step) {
        if matches!(step, Step::Check { .. }) {
            self.checked = true;
            return;
        }
        self.begun = true;
        match (*step, self.action) {
            (Step::Flush { .. }, _) => self.flushed = true,
            (Step::Get { .. }, Action::Copy { .. }) => self.bounced = true,
            (Step::Put { len, .. } | Step::Get { len, .. } | Step::Copy { len, .. }, _)
            | (Step::PutSignal { len, .. }, _) => {
                self.moved += len;
                self.bounced = false;
            }
            (Step::Raise { .. } | Step::Poison { .. } | Step::Atomic { .. } | Step::Check { .. }, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rank;

    const LIMITS: Limits = Limits { transfer_bytes_max: 100_000, outstanding_max: 1 };

    fn walk(action: Action) -> Vec<String> {
        let (mut course, mut names) = (Course::new(action), Vec::new());
        course.by_relay = true;
        while let Some(step) = course.step(&LIMITS, false) {
            course.advance(&step);
            names.push(match step {
                Step::Put { len, .. } => format!("put {len}"),
                Step::Get { len, .. } => format!("get {len}"),
                Step::Copy { len, .. } => format!("copy {len}"),
                Step::PutSignal { len, .. } => format!("put_signal {len}"),
                Step::Raise { .. } => "raise".into(),
                Step::Poison { .. } => "poison".into(),
                Step::Atomic { .. } => "atomic".into(),
                Step::Flush { peer } => format!("flush {peer}"),
                Step::Check { len, .. } => format!("check {len}"),
            });
        }
        names
    }

    fn address(rank: u32) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), 1 << 30)
    }

    #[test]
    fn long_transfers_are_cut_and_the_signal_comes_last() {
        let from = Local(std::ptr::null_mut());
        let put = Action::Put { to: address(1), from, len: 250_000 };
        assert_eq!(walk(put), ["check 250000", "put 100000", "put 100000", "put 50000", "flush 1"]);
        let signal = Action::PutSignal { to: address(1), from, len: 150_000, signal: address(1), amount: 1 };
        assert_eq!(walk(signal), ["check 150000", "put 100000", "flush 1", "put_signal 50000"]);
        let bare = Action::PutSignal { to: address(1), from, len: 0, signal: address(1), amount: 1 };
        assert_eq!(walk(bare), ["put_signal 0"]);
        assert_eq!(walk(Action::Put { to: address(1), from, len: 0 }), [""; 0]);
    }

    #[test]
    fn a_third_party_copy_goes_through_the_bounce_buffer() {
        let copy = Action::Copy { from: address(1), to: address(2), len: 70_000 };
        assert_eq!(walk(copy), ["check 70000", "get 65536", "put 65536", "get 4464", "put 4464", "flush 2"]);
    }

    #[test]
    fn a_copy_onto_itself_goes_down_where_its_target_is_above() {
        let from = address(1);
        for (to, expected) in [(from.add(100_000), [130_000_u64, 30_000, 0]), (from, [0, 100_000, 200_000])] {
            let mut course = Course::new(Action::Copy { from, to, len: 230_000 });
            let mut offsets = Vec::new();
            let check = course.step(&LIMITS, true).unwrap();
            assert_eq!(check, Step::Check { ends: [from, to], len: 230_000, signal: None });
            course.advance(&check);
            while let Some(step @ Step::Copy { from: at, to: into, .. }) = course.step(&LIMITS, true) {
                assert_eq!(into.bits() - at.bits(), to.bits() - from.bits());
                offsets.push(at.bits() - from.bits());
                course.advance(&step);
            }
            assert_eq!(offsets, expected);
        }
    }
}
