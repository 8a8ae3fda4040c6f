//! Operations, and the progress of an operation in the table.
#![allow(unsafe_code)]
//! Unsafe: passes addresses of local buffers between threads. The issuer of the operation promised that the buffer
//! stays valid until it ends.

use crate::engine::operation::fabric_step::FabricStep;
use crate::fabric::{Atomic, Limits, Poison};
use crate::segment::GlobalAddress;
use std::fmt;

/// A buffer of this process, valid until the operation that names it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local(pub *mut u8);

// SAFETY: a mere address; the issuer of the operation keeps the buffer valid for every thread that uses it.
unsafe impl Send for Local {}
// SAFETY: a mere address; the issuer of the operation keeps the buffer valid for every thread that uses it.
unsafe impl Sync for Local {}

impl Local {
    fn add(self, bytes: u64) -> Local {
        Local(self.0.wrapping_add(bytes as usize))
    }
}

/// What an operation does. Addresses are global; lengths in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operation {
    /// Local buffer to global address.
    Put {
        /// Destination.
        to: GlobalAddress,
        /// Source.
        from: Local,
        /// Length in bytes.
        len: u64,
    },
    /// Global address to local buffer.
    Get {
        /// Source.
        from: GlobalAddress,
        /// Destination.
        to: Local,
        /// Length in bytes.
        len: u64,
    },
    /// Global address to global address.
    Copy {
        /// Source.
        from: GlobalAddress,
        /// Destination.
        to: GlobalAddress,
        /// Length in bytes.
        len: u64,
    },
    /// Put, then a signal of the same rank.
    PutSignal {
        /// Destination.
        to: GlobalAddress,
        /// Source.
        from: Local,
        /// Length in bytes.
        len: u64,
        /// The signal, of the destination's rank.
        signal: GlobalAddress,
        /// What is added to the signal.
        amount: u64,
    },
    /// Raise of a signal.
    Raise {
        /// The signal.
        signal: GlobalAddress,
        /// What is added to the signal.
        amount: u64,
    },
    /// Poisons a signal: it will never be raised again, and waits for it fail.
    Poison {
        /// The signal.
        signal: GlobalAddress,
        /// The reason.
        poison: Poison,
    },
    /// Atomic operation on one word; the old value goes to own memory if an address is given.
    Atomic {
        /// The word.
        at: GlobalAddress,
        /// Kind, operand and width.
        atomic: Atomic,
        /// Own memory for the old value, of the word's width; null if it is not wanted.
        result: GlobalAddress,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Put { to, len, .. } => write!(f, "put({len} bytes to {to})"),
            Operation::Get { from, len, .. } => write!(f, "get({len} bytes from {from})"),
            Operation::Copy { from, to, len } => write!(f, "copy({len} bytes from {from} to {to})"),
            Operation::PutSignal { to, len, .. } => write!(f, "put_signal({len} bytes to {to})"),
            Operation::Raise { signal, amount } => write!(f, "raise(signal at {signal} by {amount})"),
            Operation::Poison { signal, .. } => write!(f, "poison(signal at {signal})"),
            Operation::Atomic { at, atomic, .. } => {
                let name = format!("{:?}", atomic.kind).to_lowercase();
                let name = name.split(' ').next().unwrap_or_default();
                write!(f, "atomic {name}({at}, {} bytes)", atomic.width.bytes())
            }
        }
    }
}

/// Bytes of the bounce buffer for copies between two other ranks, on fabrics that cannot do such copies.
const BOUNCE: u64 = 64 * 1024;

/// An operation in progress, split into steps that a fabric takes one after the other.
#[derive(Debug)]
pub(in crate::engine) struct OperationProgress {
    pub(in crate::engine) action: Operation,
    /// Bytes that have arrived at the destination (or at its fabric).
    moved: u64,
    /// The next piece is in the bounce buffer.
    bounced: bool,
    bounce: Option<Box<[u8]>>,
    flushed: bool,
    begun: bool,
    checked: bool,
    /// The fabric needs this copy as a get and a put.
    pub(in crate::engine) by_relay: bool,
}

impl OperationProgress {
    pub(in crate::engine) fn new(action: Operation) -> OperationProgress {
        OperationProgress {
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

    /// Returns the next step, or `None` when the operation has been carried out.
    ///
    /// `remote_completion`: a step that has ended is visible at its target; otherwise a flush comes last.
    pub(in crate::engine) fn step(&mut self, limits: &Limits, remote_completion: bool) -> Option<FabricStep> {
        if let Some(check) = self.check(limits) {
            return Some(check);
        }
        let piece = |len: u64| (len - self.moved).min(limits.transfer_bytes_max);
        let at = self.moved;
        match self.action {
            Operation::Put { to, from, len } if at < len => {
                Some(FabricStep::Put { to: to.add(at), from: from.add(at), len: piece(len) })
            }
            Operation::Get { from, to, len } if at < len => {
                Some(FabricStep::Get { from: from.add(at), to: to.add(at), len: piece(len) })
            }
            Operation::Copy { from, to, len } if at < len => Some(self.copy(from, to, len, limits)),
            Operation::PutSignal { to, from, len, signal, amount } if !self.begun || at < len => {
                let (to, from, last) = (to.add(at), from.add(at), len - at <= limits.transfer_bytes_max);
                Some(match self.flush(to, remote_completion) {
                    // The signal must come after the earlier pieces, too.
                    Some(flush) if last => flush,
                    _ if last => FabricStep::PutSignal { to, from, len: len - at, signal, amount },
                    _ => FabricStep::Put { to, from, len: piece(len) },
                })
            }
            Operation::Raise { signal, amount } if !self.begun => Some(FabricStep::Raise { signal, amount }),
            Operation::Poison { signal, poison } if !self.begun => {
                Some(FabricStep::Poison { signal, poison })
            }
            Operation::Atomic { at, atomic, .. } if !self.begun => Some(FabricStep::Atomic { at, atomic }),
            Operation::Put { to, .. } | Operation::Copy { to, .. } => self.flush(to, remote_completion),
            Operation::Atomic { at, .. } => self.flush(at, remote_completion),
            Operation::Get { .. } | Operation::PutSignal { .. } => None,
            Operation::Raise { .. } | Operation::Poison { .. } => None,
        }
    }

    /// Returns the check that comes before the first piece, if there will be several.
    fn check(&self, limits: &Limits) -> Option<FabricStep> {
        let (ends, len, signal) = match self.action {
            Operation::Put { to, len, .. } => ([to, to], len, None),
            Operation::PutSignal { to, len, signal, .. } => ([to, to], len, Some(signal)),
            Operation::Get { from, len, .. } => ([from, from], len, None),
            Operation::Copy { from, to, len } => ([from, to], len, None),
            Operation::Raise { .. } | Operation::Poison { .. } | Operation::Atomic { .. } => return None,
        };
        (len > self.piece_max(limits) && !self.checked && self.moved == 0).then_some(FabricStep::Check {
            ends,
            len,
            signal,
        })
    }

    /// Returns the bytes of the longest piece.
    fn piece_max(&self, limits: &Limits) -> u64 {
        if self.by_relay { limits.transfer_bytes_max.min(BOUNCE) } else { limits.transfer_bytes_max }
    }

    /// Returns the next piece of a copy: by the fabric, or into the bounce buffer, or out of it.
    fn copy(&mut self, from: GlobalAddress, to: GlobalAddress, len: u64, limits: &Limits) -> FabricStep {
        let left = len - self.moved;
        let size = left.min(self.piece_max(limits));
        let overlaps_upwards = from.rank() == to.rank() && from < to && to.bits() - from.bits() < len;
        // As memmove does: bytes of the source that the copy overwrites have been read before.
        let at = if overlaps_upwards { left - size } else { self.moved };
        let (from, to) = (from.add(at), to.add(at));
        if !self.by_relay {
            return FabricStep::Copy { from, to, len: size };
        }
        let bounce = self.bounce.get_or_insert_with(|| vec![0; BOUNCE as usize].into_boxed_slice());
        let buffer = Local(bounce.as_mut_ptr());
        if !self.bounced {
            FabricStep::Get { from, to: buffer, len: size }
        } else {
            FabricStep::Put { to, from: buffer, len: size }
        }
    }

    fn flush(&self, to: GlobalAddress, remote_completion: bool) -> Option<FabricStep> {
        let needed = self.begun && !self.flushed && !remote_completion;
        needed.then(|| FabricStep::Flush { peer: to.rank() })
    }

    /// Records that a step has succeeded.
    pub(in crate::engine) fn advance(&mut self, step: &FabricStep) {
        if matches!(step, FabricStep::Check { .. }) {
            self.checked = true;
            return;
        }
        self.begun = true;
        match (*step, self.action) {
            (FabricStep::Flush { .. }, _) => self.flushed = true,
            (FabricStep::Get { .. }, Operation::Copy { .. }) => self.bounced = true,
            (FabricStep::Put { len, .. } | FabricStep::Get { len, .. } | FabricStep::Copy { len, .. }, _)
            | (FabricStep::PutSignal { len, .. }, _) => {
                self.moved += len;
                self.bounced = false;
            }
            (
                FabricStep::Raise { .. }
                | FabricStep::Poison { .. }
                | FabricStep::Atomic { .. }
                | FabricStep::Check { .. },
                _,
            ) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rank;

    const LIMITS: Limits = Limits { transfer_bytes_max: 100_000, outstanding_max: 1 };

    fn steps_of(action: Operation) -> Vec<String> {
        let (mut progress, mut names) = (OperationProgress::new(action), Vec::new());
        progress.by_relay = true;
        while let Some(step) = progress.step(&LIMITS, false) {
            progress.advance(&step);
            names.push(match step {
                FabricStep::Put { len, .. } => format!("put {len}"),
                FabricStep::Get { len, .. } => format!("get {len}"),
                FabricStep::Copy { len, .. } => format!("copy {len}"),
                FabricStep::PutSignal { len, .. } => format!("put_signal {len}"),
                FabricStep::Raise { .. } => "raise".into(),
                FabricStep::Poison { .. } => "poison".into(),
                FabricStep::Atomic { .. } => "atomic".into(),
                FabricStep::Flush { peer } => format!("flush {peer}"),
                FabricStep::Check { len, .. } => format!("check {len}"),
            });
        }
        names
    }

    fn address(rank: usize) -> GlobalAddress {
        GlobalAddress::new(Rank(rank), 1 << 30)
    }

    #[test]
    fn long_transfers_are_cut_and_the_signal_comes_last() {
        let from = Local(std::ptr::null_mut());
        let put = Operation::Put { to: address(1), from, len: 250_000 };
        assert_eq!(steps_of(put), ["check 250000", "put 100000", "put 100000", "put 50000", "flush 1"]);
        let signal =
            Operation::PutSignal { to: address(1), from, len: 150_000, signal: address(1), amount: 1 };
        assert_eq!(steps_of(signal), ["check 150000", "put 100000", "flush 1", "put_signal 50000"]);
        let bare = Operation::PutSignal { to: address(1), from, len: 0, signal: address(1), amount: 1 };
        assert_eq!(steps_of(bare), ["put_signal 0"]);
        assert_eq!(steps_of(Operation::Put { to: address(1), from, len: 0 }), [""; 0]);
    }

    #[test]
    fn a_third_party_copy_goes_through_the_bounce_buffer() {
        let copy = Operation::Copy { from: address(1), to: address(2), len: 70_000 };
        assert_eq!(
            steps_of(copy),
            ["check 70000", "get 65536", "put 65536", "get 4464", "put 4464", "flush 2"]
        );
    }

    #[test]
    fn a_copy_onto_itself_goes_down_where_its_target_is_above() {
        let from = address(1);
        for (to, expected) in [(from.add(100_000), [130_000_u64, 30_000, 0]), (from, [0, 100_000, 200_000])] {
            let mut progress = OperationProgress::new(Operation::Copy { from, to, len: 230_000 });
            let mut offsets = Vec::new();
            let check = progress.step(&LIMITS, true).unwrap();
            assert_eq!(check, FabricStep::Check { ends: [from, to], len: 230_000, signal: None });
            progress.advance(&check);
            while let Some(step @ FabricStep::Copy { from: at, to: into, .. }) = progress.step(&LIMITS, true)
            {
                assert_eq!(into.bits() - at.bits(), to.bits() - from.bits());
                offsets.push(at.bits() - from.bits());
                progress.advance(&step);
            }
            assert_eq!(offsets, expected);
        }
    }
}
