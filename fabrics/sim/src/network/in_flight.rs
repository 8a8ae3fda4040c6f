//! Operations in flight, from acceptance to the removal of their state.

use std::ops::Range;
use tasuki_core::base::Rank;
use tasuki_core::engine::Local;
use tasuki_core::fabric::{Atomic, CommandWrite, LinePayload, Poison, SLOT_PAYLOAD, SlotWord, Token};
use tasuki_core::segment::GlobalAddress;

/// Identifies an operation: its issuer, and its number among the operations of that rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct InFlightId {
    pub(crate) issuer: Rank,
    pub(crate) number: u64,
}

/// One end of a transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum End {
    /// A buffer of the issuer, valid until the operation has ended.
    Here(Local),
    /// Registered memory of any rank.
    There(GlobalAddress),
}

impl End {
    /// Returns the owner of the memory, for an operation of `issuer`.
    pub(crate) fn rank(&self, issuer: Rank) -> Rank {
        match self {
            End::Here(_) => issuer,
            End::There(at) => at.rank(),
        }
    }
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Task {
    /// Moves at least one byte, and then raises a signal of the destination's rank.
    Move { from: End, to: End, len: u64, then: Option<(GlobalAddress, u64)> },
    /// Changes a word.
    Atomic { at: GlobalAddress, atomic: Atomic },
    /// Raises a signal.
    Raise { signal: GlobalAddress, amount: u64 },
    /// Poisons a signal.
    Poison { signal: GlobalAddress, poison: Poison },
    /// Writes a signal line. Its end is not reported.
    SignalLine { signal: GlobalAddress, payload: LinePayload, value: u64 },
    /// Writes into a slot line. Its end is not reported.
    Slot { line: GlobalAddress, word: SlotWord, value: u64, payload: [u64; SLOT_PAYLOAD], used: usize },
    /// Writes a command into a ring. Its end is not reported.
    Command(CommandWrite),
    /// Waits for the operations that were accepted before it.
    Flush { peer: Rank },
}

impl Task {
    /// Returns the peer of the operation: the owner of the memory that it changes, or else reads.
    pub(crate) fn peer(&self) -> Rank {
        match self {
            Task::Move { to: End::There(at), .. } | Task::Move { from: End::There(at), .. } => at.rank(),
            Task::Move { .. } => unreachable!("one end of a transfer is global"),
            Task::Atomic { at, .. } => at.rank(),
            Task::Raise { signal, .. } | Task::Poison { signal, .. } | Task::SignalLine { signal, .. } => {
                signal.rank()
            }
            Task::Slot { line, .. } => line.rank(),
            Task::Command(write) => write.places[0].rank(),
            Task::Flush { peer } => *peer,
        }
    }

    /// Returns how many bytes it moves.
    pub(crate) fn bytes(&self) -> u64 {
        if let Task::Move { len, .. } = self { *len } else { 0 }
    }

    /// Returns true if it reads bytes into a buffer of the issuer.
    pub(crate) fn is_get(&self) -> bool {
        matches!(self, Task::Move { to: End::Here(_), .. })
    }
}

/// A range of the bytes of a transfer. They travel together.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The range within the transfer.
    pub(crate) range: Range<usize>,
    /// When the piece arrives if it is read in time, in ns.
    pub(crate) lands_at: u64,
    /// The bytes, once they were read.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// An operation in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) task: Task,
    /// The token to report the end with; none after the report, and for operations without one.
    pub(crate) token: Option<Token>,
    pub(crate) pieces: Vec<Piece>,
    /// Number of pieces that have not been read.
    pub(crate) unread: usize,
    /// Number of parts that have not taken effect: pieces, signal, word; for a flush, the operations that it waits for.
    pub(crate) open: usize,
    /// No piece is written before all were read, because source and destination may overlap.
    pub(crate) in_lockstep: bool,
    /// All of it has arrived, or it has failed and no more of it will take effect.
    pub(crate) settled: bool,
    /// Flushes that wait for it.
    pub(crate) flushes: Vec<InFlightId>,
    /// For a part of a multicast: the key of the group and the member that receives it. Its end is not reported.
    pub(crate) part_of: Option<(u64, usize)>,
    /// For a flush: the first failure of an operation whose issuer already got a successful end.
    pub(crate) late_failure: Option<tasuki_core::base::Cause>,
}

impl InFlight {
    pub(crate) fn new(task: Task, token: Option<Token>) -> InFlight {
        InFlight {
            task,
            token,
            pieces: Vec::new(),
            unread: 0,
            open: 0,
            in_lockstep: false,
            settled: false,
            flushes: Vec::new(),
            part_of: None,
            late_failure: None,
        }
    }

    /// Returns true if a local buffer is still in use.
    pub(crate) fn uses_buffer(&self) -> bool {
        match self.task {
            Task::Move { to: End::Here(_), .. } => !self.settled,
            Task::Move { from: End::Here(_), .. } => self.unread > 0,
            _ => false,
        }
    }
}
