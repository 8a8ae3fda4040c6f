//! The error type of the whole library.
//!
//! The code that detects a failure makes the error once. It names the rank that made the call, the call with its peer
//! and object, the cause, and a hint how to avoid it. It prints as
//!
//! ```text
//! rank 3: wait(signal 7 >= 4): rank 0 died (signal 9) 12 ms ago
//!   hint: this call failed because that rank died: see its own error, or what `tasuki run` reports about it
//! ```

use crate::base::Rank;
use crate::base::value_kind::{OBJECT, OF_PROGRAM};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The result of every call of Tasuki that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the program.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// The error of a call. It is one pointer in size: the report is boxed.
pub struct Error(Box<Report>);

struct Report {
    rank: Option<Rank>,
    call: String,
    cause: Cause,
    /// The rank at the other end of the call, or whose message or signal it has waited for, if the cause does not name
    /// it.
    peer: Option<Rank>,
    notes: Vec<String>,
    /// The program's own error, if it is one.
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// True if the error has been printed already.
    is_printed: bool,
}

/// What kind of error it is, to match on. [`Error::cause`] tells more.
///
/// | kind | its causes |
/// |---|---|
/// | `Misuse` | `Argument`, `NullAddress`, `NoSuchRank`, `NoSuchMember`, `NotAMember`, `NoSuchSlot`, `Busy`, `InUse`, `StartActive`, `AnotherCall`, `AlreadyReturned`, `OutOfRange`, `Stale`, `Misaligned`, `SignalMemory`, `ClosedMemory`, `QueueDropped`, `QueueRepeats`, `Forked`, `JobOver` |
/// | `Disagreement` | `Disagree`, `Mismatch`, `Truncated`, `TypeMismatch`, `PartialValue`, `Undecodable`, `Overwritten`, `Unreceived` |
/// | `PeerFailed` | `PeerDied`, `PeerLeft`, `QueueClosed`, `ChannelDropped`, `NotSent`, `Untaken`, `Predecessor` |
/// | `TimedOut` | `TimedOut` |
/// | `Full` | `Full`, `SendBufferFull` |
/// | `NoMemory` | `NoMemory`, `NoRoomAtPeer` |
/// | `Program` | `Program`, `HandlerFailed`, `OperationPanicked`, `QueueUnwound` |
/// | `System` | `System`, `Unsupported`, `Join` |
/// | `Bug` | `Bug` |
/// | that of the first failure | `CommunicatorFailed`, `Poisoned`, `Failed` |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This rank made a call with wrong arguments or at a wrong time.
    Misuse,
    /// Ranks made different calls, or gave different lengths, types, schedules or handlers.
    Disagreement,
    /// Another rank died, left the job, or failed while it took part in the call.
    PeerFailed,
    /// The call reached its time limit.
    TimedOut,
    /// A bounded structure has no room now.
    Full,
    /// The machine, the container or the address range has too little memory, on this rank or on another member.
    NoMemory,
    /// A function of the program failed or panicked; Tasuki only passes the error on.
    Program,
    /// The system refused something, or this system or network cannot do it.
    System,
    /// Tasuki has a bug.
    Bug,
}

/// The cause of an error. [`ErrorKind`] groups the causes.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// An argument is wrong. The text says which, and what would be right.
    Argument(String),
    /// The global address is null.
    NullAddress,
    /// The job or communicator has no such rank.
    NoSuchRank {
        /// The number that the call named.
        rank: Rank,
        /// The number of ranks.
        size: usize,
    },
    /// The communicator has no such member.
    NoSuchMember {
        /// The number that the call named.
        member: usize,
        /// The number of members.
        size: usize,
    },
    /// The rank of the job is no member of the communicator.
    NotAMember {
        /// The rank that the call named.
        rank: Rank,
    },
    /// A start of the plan is active.
    StartActive,
    /// Another thread of this rank is in a collective call of the communicator.
    AnotherCall,
    /// The value of a request was returned already, or the request was cancelled.
    AlreadyReturned {
        /// What was waited for.
        what: &'static str,
    },
    /// The bytes of an access are not all inside one registration.
    OutOfRange {
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        bytes: u64,
        /// Address and bytes of the registration in which the access begins, or behind whose end it is, if it is known.
        registration: Option<(u64, u64)>,
    },
    /// The registration that the address belonged to was freed.
    Stale {
        /// The address that the call named.
        address: u64,
    },
    /// The address is not aligned as the operation requires.
    Misaligned {
        /// The address that the call named.
        address: u64,
        /// The required alignment in bytes.
        align: usize,
    },
    /// The address is in signal memory, which only calls that raise signals may change.
    SignalMemory {
        /// The address that the call named.
        address: u64,
    },
    /// The address is in the ring of a channel, whose two ends read and write it in place: no operation may access it.
    ClosedMemory {
        /// The address that the call named.
        address: u64,
    },
    /// The ranks of a collective call gave different values for an argument (mismatched arguments).
    Disagree {
        /// The number of a member that differs from this one, if one is known. [`Error::peer`] tells its rank.
        member: Option<usize>,
        /// The argument.
        what: &'static str,
        /// The smallest value that a rank gave.
        least: u64,
        /// The largest value that a rank gave.
        most: u64,
    },
    /// Ranks made different calls, or calls with different arguments.
    Mismatch {
        /// The number of the member that differs from this one, if it is known. [`Error::peer`] tells its rank.
        member: Option<usize>,
        /// The difference, in words.
        text: String,
    },
    /// Another rank has no room for its part, so no rank has one.
    NoRoomAtPeer {
        /// The number of the member that has none, if it is known. [`Error::peer`] tells its rank.
        member: Option<usize>,
        /// What there is no room for, in words.
        text: String,
    },
    /// The machine, the container or the address range has too little memory.
    NoMemory {
        /// Bytes that the call needs.
        wanted: u64,
        /// Bytes that are available.
        available: u64,
        /// The limit, in words.
        limit: String,
    },
    /// A bounded structure is full.
    Full {
        /// The structure.
        what: &'static str,
        /// Its capacity.
        capacity: usize,
    },
    /// The communicator has no such slot.
    NoSuchSlot {
        /// The number that the call named.
        slot: usize,
        /// The number of slots.
        slots: usize,
    },
    /// The program has not waited for an earlier send or receive of this rank on the slot.
    Busy {
        /// `send` or `receive`.
        what: &'static str,
    },
    /// The communicator cannot be closed: some of its slots are in use.
    InUse {
        /// What still uses them, in words.
        what: &'static str,
        /// The first slot in use; none for a receive from any slot.
        slot: Option<usize>,
    },
    /// A message is larger than the buffer of the receive that it matched.
    Truncated {
        /// Bytes of the message.
        len: u64,
        /// Bytes of the receive's buffer.
        room: u64,
    },
    /// A message has values of another type than the receive that it matched. Each side names its own type.
    TypeMismatch {
        /// The type of the message's values: its name, or `a type of the program` where the rank does not know it.
        sent: &'static str,
        /// The type of the receive's values, likewise.
        wanted: &'static str,
    },
    /// The bytes of a message are no whole number of the receive's values.
    PartialValue {
        /// Bytes of the message.
        len: u64,
        /// Bytes of a value.
        size: u64,
        /// True if the message waits for the next receive; false if the buffer of this one holds it.
        is_kept: bool,
    },
    /// A peer has sent an object whose bytes do not decode. The text says why.
    Undecodable(String),
    /// The peer has written a payload signal again before this value was read.
    Overwritten,
    /// A collective call on this communicator has failed before, on any member.
    CommunicatorFailed {
        /// The first failure.
        first: String,
        /// The kind of that failure.
        kind: ErrorKind,
        /// The rank of the job on which it happened, or which had left, if it is known.
        peer: Option<Rank>,
    },
    /// The buffer for buffered sends (FMPL: spool) has too little space for a message.
    SendBufferFull {
        /// Bytes of the message.
        bytes: u64,
        /// Bytes that each buffered message takes beside its own.
        overhead: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes of the whole buffer.
        capacity: u64,
    },
    /// Peers left the job without receiving some messages.
    Untaken {
        /// The number of messages.
        messages: usize,
        /// The receiver of the first one.
        peer: Rank,
        /// The slot of the first one.
        slot: usize,
    },
    /// This rank left the job without receiving some messages that others had sent to it by `send_any`.
    Unreceived {
        /// The number of messages.
        messages: usize,
        /// The sender of the first one.
        peer: Rank,
        /// The slot of the first one.
        slot: usize,
    },
    /// A peer began to send a message to this receive, and its send failed.
    NotSent {
        /// The sender.
        peer: Rank,
    },
    /// The call reached its timeout.
    TimedOut {
        /// The time that the call waited.
        after: Duration,
    },
    /// A rank died; the job ends.
    PeerDied {
        /// The rank that died.
        peer: Rank,
        /// How it died, in words: `signal 9`, `exit code 3`, `panicked: ...`.
        how: String,
        /// The time since its death.
        ago: Duration,
    },
    /// The receive queue that a call sends to was dropped.
    QueueClosed {
        /// The rank that received from it.
        peer: Rank,
    },
    /// The receiving end of the channel was dropped.
    ChannelDropped {
        /// The rank that received from it.
        peer: Rank,
    },
    /// A rank left the job while this call still needed it.
    PeerLeft {
        /// The rank that left.
        peer: Rank,
    },
    /// The operation was not started: an operation that it was ordered after failed.
    Predecessor {
        /// The report of the operation that failed.
        report: String,
    },
    /// The signal will never reach its target: a command that was to raise it, or an earlier command, failed.
    Poisoned {
        /// The rank on which the first failure happened.
        origin: Rank,
        /// The first failure.
        cause: Box<Cause>,
    },
    /// A command or a call failed when a rank, possibly another one, ran it.
    Failed {
        /// The rank that ran it.
        rank: Rank,
        /// The failure.
        cause: Box<Cause>,
    },
    /// A handler panicked or returned an error.
    HandlerFailed {
        /// The handler's number.
        handler: u8,
        /// The handler's name; empty if it is not known.
        name: String,
        /// What the handler said; empty if only the output of its rank says why.
        text: String,
    },
    /// A reduction operation of the program panicked. The output of its rank says why.
    OperationPanicked {
        /// The rank on which it panicked.
        rank: Rank,
    },
    /// A command queue was dropped before one of its commands had fired.
    QueueDropped,
    /// A command queue was dropped before one of its commands had fired, because a thread of its rank panicked.
    QueueUnwound {
        /// The rank that owned the queue.
        rank: Rank,
    },
    /// A session queue that repeats its commands accepts no more.
    QueueRepeats,
    /// The calling process was forked from a rank, and is not a rank itself.
    Forked,
    /// The job has ended, or this rank has left it.
    JobOver,
    /// A system call failed.
    System {
        /// The call, e.g. `mmap`.
        call: &'static str,
        /// The text of its error number.
        why: String,
    },
    /// This system or this fabric cannot do what the call asks for.
    Unsupported(String),
    /// The process could not join the job. The text says why.
    Join(String),
    /// A function of the program failed or panicked on a rank.
    Program(String),
    /// Tasuki violated one of its own invariants.
    Bug(String),
}

/// The slot that an error names for all slots from there on: messages number their slots in 32 bits, and the largest
/// number means any slot.
const SLOT_MAX: usize = u32::MAX as usize - 1;

impl Cause {
    /// Ranks made different calls, or calls with different arguments. `member`: the one that differs from this one.
    pub fn mismatch(member: Option<usize>, text: impl Into<String>) -> Cause {
        Cause::Mismatch { member, text: text.into() }
    }

    /// This member and another one gave different numbers of bytes.
    pub fn bytes_differ(member: usize, one: u64, other: u64) -> Cause {
        let (least, most) = (one.min(other), one.max(other));
        Cause::Disagree { member: Some(member), what: "bytes", least, most }
    }

    /// A member has no room for its part.
    pub fn no_room_at(member: Option<usize>, text: impl Into<String>) -> Cause {
        Cause::NoRoomAtPeer { member, text: text.into() }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        use Cause::*;
        match self {
            Argument(_) | NullAddress | NoSuchRank { .. } | OutOfRange { .. } | Stale { .. } => {
                ErrorKind::Misuse
            }
            Misaligned { .. } | SignalMemory { .. } | ClosedMemory { .. } | Forked | JobOver => {
                ErrorKind::Misuse
            }
            NoSuchSlot { .. } | Busy { .. } | InUse { .. } | QueueDropped | QueueRepeats => ErrorKind::Misuse,
            NoSuchMember { .. } | NotAMember { .. } => ErrorKind::Misuse,
            StartActive | AnotherCall | AlreadyReturned { .. } => ErrorKind::Misuse,
            Disagree { .. } | Mismatch { .. } | Truncated { .. } | TypeMismatch { .. } => {
                ErrorKind::Disagreement
            }
            PartialValue { .. } | Undecodable(_) | Overwritten => ErrorKind::Disagreement,
            Unreceived { .. } => ErrorKind::Disagreement,
            Program(_) | HandlerFailed { .. } | OperationPanicked { .. } | QueueUnwound { .. } => {
                ErrorKind::Program
            }
            Poisoned { cause, .. } | Failed { cause, .. } => cause.kind(),
            CommunicatorFailed { kind, .. } => *kind,
            TimedOut { .. } => ErrorKind::TimedOut,
            PeerDied { .. }
            | PeerLeft { .. }
            | QueueClosed { .. }
            | ChannelDropped { .. }
            | Predecessor { .. }
            | Untaken { .. }
            | NotSent { .. } => ErrorKind::PeerFailed,
            NoMemory { .. } | NoRoomAtPeer { .. } => ErrorKind::NoMemory,
            Full { .. } | SendBufferFull { .. } => ErrorKind::Full,
            System { .. } | Unsupported(_) | Join(_) => ErrorKind::System,
            Bug(_) => ErrorKind::Bug,
        }
    }

    /// Returns the rank that failed or left, if it is known.
    pub fn peer(&self) -> Option<Rank> {
        use Cause::*;
        match self {
            PeerDied { peer, .. }
            | PeerLeft { peer }
            | QueueClosed { peer }
            | ChannelDropped { peer }
            | NotSent { peer }
            | Untaken { peer, .. }
            | Unreceived { peer, .. } => Some(*peer),
            CommunicatorFailed { peer, .. } => *peer,
            OperationPanicked { rank } | QueueUnwound { rank } | Failed { rank, .. } => Some(*rank),
            Poisoned { origin, .. } => Some(*origin),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Cause::*;
        match self {
            Argument(text) | Unsupported(text) | Join(text) | Program(text) => f.write_str(text),
            NullAddress => write!(f, "the global address is null"),
            NoSuchRank { rank, size } => {
                let above = if *rank == Rank::MAX { " or above" } else { "" };
                match size {
                    1 => write!(f, "there is no rank {rank}{above}: the only rank is 0"),
                    _ => write!(f, "there is no rank {rank}{above}: the ranks are 0 to {}", size - 1),
                }
            }
            NoSuchMember { member, size: 1 } => {
                write!(f, "there is no member {member}: the only member is 0")
            }
            NoSuchMember { member, size } => {
                write!(f, "there is no member {member}: the members are 0 to {}", size - 1)
            }
            NotAMember { rank } => write!(f, "rank {rank} is not a member of this communicator"),
            StartActive => write!(f, "a start is active, which has not ended"),
            AnotherCall => write!(f, "another thread of this rank is in a collective call"),
            AlreadyReturned { what } => write!(f, "{what} was waited for already, or cancelled"),
            OutOfRange { address, bytes, registration } => {
                write!(f, "{bytes} bytes at {} are not inside one registration ", Address(*address))?;
                match registration {
                    Some((start, len)) => {
                        write!(f, "(the array or other memory there has {len} bytes at {})", Address(*start))
                    }
                    None => f.write_str("(one array, or other memory that a rank has registered)"),
                }
            }
            Stale { address } => write!(f, "the memory at {} was freed", Address(*address)),
            Misaligned { address, align } => {
                write!(f, "{} is not a multiple of {align}", Address(*address))
            }
            SignalMemory { address } => write!(f, "{} is in signal memory", Address(*address)),
            ClosedMemory { address } => write!(f, "{} is in the ring of a channel", Address(*address)),
            Disagree { member, what, least, most } => {
                write!(f, "the ranks disagree about {what}: the smallest is {least}, the largest {most}")?;
                member.map_or(Ok(()), |member| write!(f, "; member {member} differs from this one"))
            }
            Mismatch { text, .. } | NoRoomAtPeer { text, .. } => f.write_str(text),
            NoMemory { wanted, available, limit } => {
                write!(f, "not enough memory for {wanted} bytes: {limit} leaves {available}")
            }
            Full { what, capacity } => write!(f, "{what} is full (capacity {capacity})"),
            NoSuchSlot { slot, slots } => {
                let above = if *slot == SLOT_MAX { " or above" } else { "" };
                write!(f, "there is no slot {slot}{above}: the communicator has {slots}")
            }
            Busy { what } => write!(f, "the program has not waited for an earlier {what} on this slot"),
            InUse { what, slot: Some(slot) } => write!(f, "slot {slot} is in use: {what}"),
            InUse { what, slot: None } => write!(f, "slots are in use: {what}"),
            Truncated { len, room } => {
                write!(f, "the message has {len} bytes, but the receive's buffer only {room}")
            }
            TypeMismatch { sent, wanted } if sent == wanted && *sent == OBJECT => {
                write!(f, "the message has an object of another type than the receive wants")
            }
            TypeMismatch { sent, wanted } if sent == wanted => {
                write!(f, "the message has values of another type of the program than the receive")
            }
            TypeMismatch { sent, wanted } => {
                let values = match *sent {
                    OF_PROGRAM | ANOTHER => format!("values of {sent}"),
                    OBJECT | ANOTHER_OBJECT => (*sent).into(),
                    named => object_of(named).unwrap_or_else(|| format!("values of type {named}")),
                };
                let wanted = object_of(wanted).unwrap_or_else(|| (*wanted).into());
                write!(f, "the message has {values}, but the receive wants {wanted}")
            }
            PartialValue { len, size, is_kept } => {
                let place = if *is_kept {
                    "the message waits for the next receive"
                } else {
                    "the buffer holds the data"
                };
                write!(f, "the message has {len} bytes, no multiple of the {size} bytes of a value; {place}")
            }
            Undecodable(text) => f.write_str(text),
            Overwritten => f.write_str("the writer wrote again before this value was read"),
            CommunicatorFailed { first, .. } => write!(f, "this communicator has failed: {first}"),
            SendBufferFull { bytes, overhead, free, capacity } => {
                write!(
                    f,
                    "the message takes {bytes} + {overhead} bytes, but the send buffer has only {free} of {capacity} \
                     bytes free"
                )
            }
            Untaken { messages, peer, slot } => {
                let were = if *messages == 1 { "message was" } else { "messages were" };
                write!(f, "{messages} {were} never received; the first was for rank {peer} on slot {slot}")
            }
            Unreceived { messages, peer, slot } => {
                let were = if *messages == 1 { "message was" } else { "messages were" };
                write!(
                    f,
                    "{messages} {were} sent to this rank by send_any and never received; the first was from rank {peer} \
                     on slot {slot}"
                )
            }
            NotSent { peer } => write!(f, "rank {peer} failed while it sent its message"),
            TimedOut { after } => write!(f, "timed out after {after:.1?}"),
            PeerDied { peer, how, ago } => write!(f, "rank {peer} died ({how}) {ago:.0?} ago"),
            PeerLeft { peer } => write!(f, "rank {peer} has left the job"),
            QueueClosed { peer } => write!(f, "rank {peer} has dropped the receive queue or message limit"),
            ChannelDropped { peer } => write!(f, "rank {peer} has dropped the receiving end of the channel"),
            Predecessor { report } => {
                write!(f, "not started, because an operation that it was ordered after failed ({report})")
            }
            Poisoned { origin, cause } => write!(f, "an earlier command failed on rank {origin}: {cause}"),
            Failed { rank, cause } => write!(f, "failed on rank {rank}: {cause}"),
            HandlerFailed { handler, name, text } => {
                if name.is_empty() {
                    write!(f, "handler {handler} failed")
                } else {
                    write!(f, "handler {name:?} failed")
                }?;
                if text.is_empty() { Ok(()) } else { write!(f, ": {text}") }
            }
            OperationPanicked { rank } => {
                write!(f, "a reduction operation of the program panicked on rank {rank}")
            }
            QueueDropped => write!(f, "the queue was dropped before the command had fired"),
            QueueUnwound { rank } => {
                write!(f, "the queue was dropped before the command had fired, by a panic on rank {rank}")
            }
            QueueRepeats => {
                write!(f, "the queue repeats the commands that it has, and accepts no more")
            }
            Forked => write!(f, "this process was forked from a rank, and is not a rank itself"),
            JobOver => write!(f, "the job is over"),
            System { call, why } => write!(f, "{call}: {why}"),
            Bug(text) => write!(f, "internal error: {text}"),
        }
    }
}

/// What the other side's type is called where neither is a number type, and this side's type is named.
const ANOTHER: &str = "another type of the program";
/// What the other side's object is called where this side's one is named.
const ANOTHER_OBJECT: &str = "an object of another type";

/// Returns what an encoded object is called of which this is the name of the type. None: it is none.
fn object_of(name: &str) -> Option<String> {
    let of = name.strip_prefix("tasuki::message::object::Object<")?.strip_suffix('>')?;
    Some(format!("an object of type {of}"))
}

/// Prints an address as rank and offset.
struct Address(u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.0 >> 40, self.0 & ((1 << 40) - 1))
    }
}

impl Error {
    /// Makes an error of `cause` that names neither rank nor call yet.
    pub fn new(cause: Cause) -> Error {
        Error(Box::new(Report {
            rank: None,
            call: String::new(),
            cause,
            peer: None,
            notes: Vec::new(),
            source: None,
            is_printed: false,
        }))
    }

    /// Makes the error of a system call that just failed, from `errno`.
    pub fn last_os(call: &'static str) -> Error {
        Error::from_io(call, &std::io::Error::last_os_error())
    }

    /// Makes the error of a system call from the standard library's error.
    pub fn from_io(call: &'static str, error: &std::io::Error) -> Error {
        Error::new(Cause::System { call, why: error.to_string() })
    }

    /// Makes the error of a wrong argument.
    pub fn argument(text: impl Into<String>) -> Error {
        Error::new(Cause::Argument(text.into()))
    }

    /// Makes an error from one of the program's own, which becomes its source:
    /// `parse(line).map_err(Error::program)`. The usual errors of the standard library need no call: `?` converts them.
    ///
    /// An error that is, or that wraps, an error of Tasuki stays that error.
    pub fn program(error: impl Into<ProgramError>) -> Error {
        match error.into().downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => {
                let causes = std::iter::successors(source.source(), |cause| cause.source());
                if let Some(wrapped) = causes.filter_map(|cause| cause.downcast_ref::<Error>()).next() {
                    return wrapped.clone().note(format!("in {source}"));
                }
                let mut error = Error::new(Cause::Program(in_words(&*source)));
                error.0.source = Some(source.into());
                error
            }
        }
    }

    /// Returns `hidden`, if this is an error of the program whose text is that of `hidden`, of whatever call: rank, call
    /// and cause, and nothing before or behind them but notes. An error that quotes `hidden` is the program's own.
    pub(crate) fn reveal(&self, hidden: &Error) -> Option<Error> {
        let Cause::Program(text) = self.cause() else { return None };
        let cause = format!(": {}", hidden.cause());
        let (call, notes) = text.strip_prefix(&*format!("rank {}: ", hidden.rank()?))?.split_once(&cause)?;
        if call.contains('\n') || !(notes.is_empty() || notes.starts_with("\n  ")) {
            return None;
        }
        let mut error = hidden.clone();
        error.0.source = self.0.source.clone();
        Some(if call == hidden.call() { error } else { error.in_outer_call(call.into()) })
    }

    /// Adds the call, unless the error names one already: the innermost call is kept.
    pub fn in_call(mut self, call: impl FnOnce() -> String) -> Error {
        if self.0.call.is_empty() {
            self.0.call = call();
        }
        self
    }

    /// Makes the program's call the call of the error. The step of it that has failed becomes a line of context, if the
    /// error names one.
    pub fn in_outer_call(mut self, call: String) -> Error {
        let step = std::mem::replace(&mut self.0.call, call);
        if step.is_empty() || step == self.0.call {
            return self;
        }
        self.note(format!("in its step {step}"))
    }

    /// Adds the rank that made the call, unless the error names one already.
    pub fn on_rank(mut self, rank: Rank) -> Error {
        self.0.rank.get_or_insert(rank);
        self
    }

    /// Adds the rank at the other end of the call, or whose message or signal it has waited for.
    #[doc(hidden)]
    pub fn with_peer(mut self, peer: Option<Rank>) -> Error {
        self.0.peer = self.0.peer.or(peer);
        self
    }

    /// Adds the rank of the member that the cause names.
    #[doc(hidden)]
    pub fn of_members(self, rank_of: impl FnOnce(usize) -> Option<Rank>) -> Error {
        let member = match self.0.cause {
            Cause::Mismatch { member, .. } | Cause::NoRoomAtPeer { member, .. } => member,
            Cause::Disagree { member, .. } => member,
            _ => None,
        };
        self.with_peer(member.and_then(rank_of))
    }

    /// Names the type of this side's values in an error about types of messages. `is_send`: this side has sent.
    #[doc(hidden)]
    pub fn name_type(mut self, name: &'static str, is_send: bool) -> Error {
        if let Cause::TypeMismatch { sent, wanted } = &mut self.0.cause {
            let (own, other) = if is_send { (sent, wanted) } else { (wanted, sent) };
            let another = if *own == OBJECT { ANOTHER_OBJECT } else { ANOTHER };
            if [OF_PROGRAM, OBJECT].contains(own) {
                *other = if own == other { another } else { other };
                *own = name;
            }
        }
        self
    }

    /// Names the type of this member's values in an error about different calls, which has no room for its name.
    #[doc(hidden)]
    pub fn of_values(self, name: &str) -> Error {
        match self.0.cause {
            Cause::Mismatch { .. } => self.note(format!("this member's values are of type {name}")),
            _ => self,
        }
    }

    /// Names the program's call in place of the operation in it, whose arguments are those of the call.
    #[doc(hidden)]
    pub fn called(mut self, name: &str) -> Error {
        if let Some(arguments) = self.0.call.find('(') {
            self.0.call.replace_range(..arguments, name);
        }
        self
    }

    /// Speaks of members instead of ranks, if there is no such rank: the call has named a member.
    #[doc(hidden)]
    pub fn of_member(mut self) -> Error {
        if let Cause::NoSuchRank { rank, size } = self.0.cause {
            self.0.cause = Cause::NoSuchMember { member: rank.index(), size };
            self.0.call = self.0.call.replace(&format!("rank {rank})"), &format!("member {rank})"));
        }
        self
    }

    /// Adds a line of context below the first line.
    pub fn note(mut self, text: impl Into<String>) -> Error {
        self.0.notes.push(text.into());
        self
    }

    /// Marks that the error has been printed, so that it is not printed again.
    #[doc(hidden)]
    pub fn mark_printed(mut self) -> Error {
        self.0.is_printed = true;
        self
    }

    /// Returns true if the error has been printed.
    #[doc(hidden)]
    pub fn is_printed(&self) -> bool {
        self.0.is_printed
    }

    /// Returns the cause.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// Returns the rank that made the call, if a rank made it.
    pub fn rank(&self) -> Option<Rank> {
        self.0.rank
    }

    /// Returns the call with its arguments. It is empty for errors from before the job was joined.
    pub fn call(&self) -> &str {
        &self.0.call
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.cause.kind()
    }

    /// Returns the rank of the job that failed, left, has no room, or differs from this one, if it is known. The text of
    /// an error of a communicator names members; `Members::member_of` tells the member of a rank.
    ///
    /// For a message that was too long or had another type it is the rank at the other end, and for a call that reached
    /// its time limit the rank whose message or signal it waited for.
    pub fn peer(&self) -> Option<Rank> {
        self.0.cause.peer().or(self.0.peer)
    }

    /// Returns true if the call reached its time limit.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::TimedOut
    }

    /// Returns true if a bounded structure has no room now: the call can be made again later.
    pub fn is_full(&self) -> bool {
        self.kind() == ErrorKind::Full
    }

    /// Returns true if ranks made different calls, or gave different lengths, types, schedules or handlers.
    pub fn is_disagreement(&self) -> bool {
        self.kind() == ErrorKind::Disagreement
    }

    /// Returns the first line: rank, call and cause, without notes and hint.
    pub fn headline(&self) -> String {
        let mut who = self.0.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        // An error of the program that hides one of Tasuki has the text of that.
        if matches!(&self.0.cause, Cause::Program(text) if text.starts_with(&who)) {
            who.clear();
        }
        let call = if self.0.call.is_empty() { String::new() } else { format!("{}: ", self.0.call) };
        format!("{who}{call}{}", self.0.cause)
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        Error::new(cause)
    }
}

impl Clone for Error {
    fn clone(&self) -> Error {
        let Report { rank, call, cause, peer, notes, source, is_printed } = &*self.0;
        Error(Box::new(Report {
            rank: *rank,
            call: call.clone(),
            cause: cause.clone(),
            peer: *peer,
            notes: notes.clone(),
            source: source.clone(),
            is_printed: *is_printed,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for note in &self.0.notes {
            write!(f, "\n  {note}")?;
        }
        match self.0.cause.hint(&self.0.call) {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

/// Returns an error and those that caused it, unless its text contains theirs: anyhow prints only the outermost.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Converts the errors that programs most often return with `?`.
macro_rules! errors_of_programs {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::program(error)
            }
        })*
    };
}

errors_of_programs!(
    std::io::Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::num::TryFromIntError,
    std::str::ParseBoolError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    fmt::Error,
    std::env::VarError,
    std::time::SystemTimeError,
    String,
    &str,
    ProgramError,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_rank_call_cause_and_hint() {
        let died = Cause::PeerDied { peer: Rank(0), how: "signal 9".into(), ago: Duration::from_millis(12) };
        let error =
            Error::new(died).in_call(|| "wait(signal 7 >= 4)".into()).on_rank(Rank(3)).note("waited 4.1 s");
        assert_eq!(
            error.to_string(),
            "rank 3: wait(signal 7 >= 4): rank 0 died (signal 9) 12ms ago\n  waited 4.1 s\n  \
             hint: this call failed because that rank died: see its own error, or what `tasuki run` reports about it"
        );
        assert_eq!((error.kind(), error.peer()), (ErrorKind::PeerFailed, Some(Rank(0))));
    }

    #[test]
    fn errors_of_addresses_and_system_limits_have_hints() {
        let files = std::io::Error::from_raw_os_error(24);
        assert!(Error::from_io("memfd_create", &files).to_string().contains("`ulimit -n`"));
        let memory = std::io::Error::from_raw_os_error(12);
        assert!(Error::from_io("mmap", &memory).to_string().contains("`ulimit -v`"));
        assert!(!Error::from_io("fallocate", &memory).to_string().contains("hint:"));
        let misaligned = Error::new(Cause::Misaligned { address: 1 << 40 | 4, align: 8 }).to_string();
        assert!(misaligned.starts_with("1:0x4 is not a multiple of 8\n  hint: "), "{misaligned}");
        let rank = |rank| Error::new(Cause::NoSuchRank { rank, size: 4 }).to_string();
        assert!(rank(Rank(4)).starts_with("there is no rank 4: the ranks are 0 to 3\n  hint: "));
        assert!(rank(Rank::MAX).starts_with("there is no rank 16777215 or above: the ranks are 0 to 3\n"));
    }

    #[test]
    fn errors_of_programs_are_converted_and_kept() {
        let parse = || -> Result<u32> { Ok("seven".parse::<u32>()?) };
        let error = parse().expect_err("no number");
        assert_eq!(error.kind(), ErrorKind::Program);
        let source = std::error::Error::source(&error).expect("the program's own error");
        assert!(source.is::<std::num::ParseIntError>() && error.to_string() == source.to_string());
        // One that hides an error of Tasuki names the rank already.
        let hidden = Error::program("rank 3: put: the global address is null").on_rank(Rank(3));
        assert_eq!(hidden.headline(), "rank 3: put: the global address is null");
        // An error of Tasuki that comes back in a box is the same error.
        let boxed: ProgramError = Box::new(Error::new(Cause::NullAddress).on_rank(Rank(3)));
        let error = Error::program(boxed);
        assert_eq!((error.kind(), error.rank()), (ErrorKind::Misuse, Some(Rank(3))));
    }

    #[test]
    fn each_kind_has_its_questions() {
        let full = Error::new(Cause::Full { what: "a queue", capacity: 3 });
        let other = Error::new(Cause::mismatch(Some(2), "it is in another call"));
        assert!(full.is_full() && !full.is_disagreement() && full.peer().is_none());
        assert!(other.is_disagreement() && !other.is_full() && other.peer().is_none());
        assert_eq!(other.of_members(|member| Some(Rank(member + 3))).peer(), Some(Rank(5)));
    }

    /// The table in the documentation of [`ErrorKind`] has each cause in the row of its kind.
    #[test]
    fn the_table_of_kinds_is_right() {
        let row_of = |name: &str| {
            let rows = include_str!("error.rs").lines().filter_map(|line| line.strip_prefix("/// | "));
            let mut rows = rows.filter(|row| row.contains(&format!("`{name}`")) && row.starts_with('`'));
            rows.find(|row| row.split('|').nth(1).is_some_and(|causes| causes.contains(&format!("`{name}`"))))
        };
        let all = [
            Cause::Argument(String::new()),
            Cause::NoSuchMember { member: 1, size: 1 },
            Cause::QueueDropped,
            Cause::JobOver,
            Cause::bytes_differ(0, 1, 2),
            Cause::Truncated { len: 1, room: 0 },
            Cause::PartialValue { len: 1, size: 2, is_kept: true },
            Cause::Undecodable(String::new()),
            Cause::Overwritten,
            Cause::PeerLeft { peer: Rank(0) },
            Cause::ChannelDropped { peer: Rank(0) },
            Cause::Untaken { messages: 1, peer: Rank(0), slot: 0 },
            Cause::Unreceived { messages: 1, peer: Rank(0), slot: 0 },
            Cause::TimedOut { after: Duration::ZERO },
            Cause::SendBufferFull { bytes: 1, overhead: 1, free: 0, capacity: 0 },
            Cause::no_room_at(None, ""),
            Cause::OperationPanicked { rank: Rank(0) },
            Cause::QueueUnwound { rank: Rank(0) },
            Cause::Unsupported(String::new()),
            Cause::Join(String::new()),
            Cause::Bug(String::new()),
        ];
        for cause in all {
            let name = format!("{cause:?}");
            let name = name.split([' ', '(']).next().unwrap_or_default();
            let row = row_of(name).unwrap_or_else(|| panic!("{name} is in no row"));
            assert!(row.starts_with(&format!("`{:?}` |", cause.kind())), "{name}: {row}");
        }
    }

    #[test]
    fn each_side_of_a_message_names_its_own_type() {
        let mismatch = |sent, wanted| Error::new(Cause::TypeMismatch { sent, wanted });
        let text = |error: Error| error.headline();
        let both = || mismatch(OF_PROGRAM, OF_PROGRAM);
        assert!(text(both()).ends_with("another type of the program than the receive"));
        assert_eq!(
            text(both().name_type("app::Point", true)),
            "the message has values of type app::Point, but the receive wants another type of the program"
        );
        assert_eq!(
            text(both().name_type("app::Point", false)),
            "the message has values of another type of the program, but the receive wants app::Point"
        );
        let number = mismatch("f64", OF_PROGRAM).name_type("f64", true);
        assert_eq!(
            text(number),
            "the message has values of type f64, but the receive wants a type of the program"
        );
        let objects = || mismatch(OBJECT, OBJECT);
        assert_eq!(text(objects()), "the message has an object of another type than the receive wants");
        assert_eq!(
            text(objects().name_type("tasuki::message::object::Object<app::Point>", false)),
            "the message has an object of another type, but the receive wants an object of type app::Point"
        );
        assert_eq!(
            text(mismatch(OBJECT, "u8").name_type("u8", false)),
            "the message has an object, but the receive wants u8"
        );
    }

    #[test]
    fn an_error_names_the_peer_that_only_its_call_knows() {
        let late = || Error::new(Cause::TimedOut { after: Duration::from_secs(1) });
        assert_eq!((late().peer(), late().with_peer(Some(Rank(3))).peer()), (None, Some(Rank(3))));
        let died = Cause::PeerDied { peer: Rank(1), how: "signal 9".into(), ago: Duration::ZERO };
        assert_eq!(Error::new(died).with_peer(Some(Rank(3))).clone().peer(), Some(Rank(1)));
        assert_eq!(late().with_peer(Some(Rank(3))).with_peer(Some(Rank(4))).peer(), Some(Rank(3)));
        let no_such = Error::new(Cause::NoSuchRank { rank: Rank(9), size: 4 });
        let member = no_such.in_call(|| "send(slot 0 to rank 9)".into()).of_member();
        assert_eq!(
            member.headline(),
            "send(slot 0 to member 9): there is no member 9: the members are 0 to 3"
        );
    }

    #[test]
    fn the_innermost_call_is_kept() {
        let error = Error::new(Cause::NullAddress).in_call(|| "put".into()).in_call(|| "outer".into());
        assert_eq!(error.call(), "put");
        let error = error.in_outer_call("accumulate".into()).in_outer_call("accumulate".into());
        assert_eq!(error.to_string().lines().nth(1), Some("  in its step put"));
        assert_eq!(error.call(), "accumulate");
    }
}
