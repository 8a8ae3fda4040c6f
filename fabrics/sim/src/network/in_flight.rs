//! Operations under way, from acceptance until nothing of them is left.

use std::ops::Range;
use tasuki_core::base::Rank;
use tasuki_core::engine::Local;
use tasuki_core::fabric::{Atomic, CommandWrite, LinePayload, Poison, SLOT_PAYLOAD, SlotWord, Token};
use tasuki_core::segment::GlobalAddress;

/// Names an operation: who issued it, and the how many-th of that rank it was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct InFlightId {
    pub(crate) issuer: Rank,
    pub(crate) number: u64,
}

/// One end of a transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum End {
    /// A buffer of the issuer's, valid until the operation has ended.
    Here(Local),
    /// Registered memory of any rank.
    There(GlobalAddress),
}

impl End {
    /// Whose memory it is, for an operation of `issuer`.
    pub(crate) fn rank(&self, issuer: Rank) -> Rank {
        match self {
            End::Here(_) => issuer,
            End::There(at) => at.rank(),
        }
    }
}

/// EventKind an operation does.
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
    /// Writes a line. Nobody is told of its end.
    SignalLine { signal: GlobalAddress, payload: LinePayload, value: u64 },
    /// Writes into a slot line. Nobody is told of its end.
    Slot { line: GlobalAddress, word: SlotWord, value: u64, payload: [u64; SLOT_PAYLOAD], used: usize },
    /// Writes a command into a ring. Nobody is told of its end.
    Command(CommandWrite),
    /// Waits for what was accepted before it.
    Flush { peer: Rank },
}

impl Task {
    /// The rank for which it counts: whose memory it changes, or else reads.
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

    /// How many bytes it moves.
    pub(crate) fn bytes(&self) -> u64 {
        if let Task::Move { len, .. } = self { *len } else { 0 }
    }

    /// Whether it fetches bytes into a buffer of the issuer's.
    pub(crate) fn is_get(&self) -> bool {
        matches!(self, Task::Move { to: End::Here(_), .. })
    }
}

/// Some of the bytes of a transfer, which travel together.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Which of the transfer's bytes.
    pub(crate) range: Range<usize>,
    /// When it arrives, if it was read in time.
    pub(crate) lands_at: u64,
    /// EventKind was read.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// One operation under way.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) task: Task,
    /// EventKind the issuer is waiting to be told of; none after it was told, and for lines.
    pub(crate) token: Option<Token>,
    pub(crate) pieces: Vec<Piece>,
    /// Pieces that have not been read.
    pub(crate) unread: usize,
    /// Parts that have not taken effect: pieces, signal, word; what a flush waits for.
    pub(crate) open: usize,
    /// Nothing of it lands before all of it was read: source and destination may overlap.
    pub(crate) in_lockstep: bool,
    /// All of it has arrived, or it has failed and no more of it will.
    pub(crate) settled: bool,
    /// Flushes that wait for it.
    pub(crate) flushes: Vec<InFlightId>,
    /// The group of whose multicast it is a part, and the member that it is for. Nobody is told of its end.
    pub(crate) part_of: Option<(u64, usize)>,
    /// The first failure of those that a flush waits for, if their issuer was told that they had ended well.
    pub(crate) late: Option<tasuki_core::base::Cause>,
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
            late: None,
        }
    }

    /// Whether a local buffer is still in use.
    pub(crate) fn uses_buffer(&self) -> bool {
        match self.task {
            Task::Move { to: End::Here(_), .. } => !self.settled,
            Task::Move { from: End::Here(_), .. } => self.unread > 0,
            _ => false,
        }
    }
}
