//! Errors: who, in which call, what happened, and the way out.
//!
//! One type for the whole library. An error is found once, where it is first understood, and names the rank
//! that made the call, the call with its peer and object, the cause, and a hint. It prints as
//!
//! ```text
//! rank 3: wait(signal 7 >= 4): rank 0 died (signal 9) 12 ms ago
//!   hint: this call ended because that rank did; its own error, or what `tasuki run` says of it, is the reason
//! ```

use crate::base::Rank;
use std::fmt;
use std::time::Duration;

/// What every fallible call of Tasuki returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a call: thin to pass, since its report lies in a box.
pub struct Error(Box<Report>);

struct Report {
    rank: Option<Rank>,
    call: String,
    cause: Cause,
    notes: Vec<String>,
    /// The user has been told already.
    is_said: bool,
}

/// Whose doing an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The program made a call with wrong arguments or in a wrong state.
    Misuse,
    /// The program's own function failed; Tasuki only carries the error.
    Program,
    /// Another rank died, left, or did not come.
    Peer,
    /// The system refused something (memory, files, permissions), cannot do it, or a bounded place is full.
    System,
    /// Tasuki itself is wrong.
    Bug,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// An argument is wrong; the text says which and what would be right.
    Argument(String),
    /// The global address is null.
    NullAddress,
    /// No rank of this job has that number.
    NoSuchRank {
        /// The number asked for.
        rank: Rank,
        /// How many ranks there are.
        size: usize,
    },
    /// The bytes named do not all lie inside one registration.
    OutOfRange {
        /// The first byte's address.
        address: u64,
        /// How many bytes from there.
        bytes: u64,
    },
    /// The registration that the address belonged to was freed.
    Stale {
        /// The address used.
        address: u64,
    },
    /// The address is not a multiple of what the operation needs.
    Misaligned {
        /// The address used.
        address: u64,
        /// The alignment in bytes that it lacks.
        align: usize,
    },
    /// The address lies in signal memory, which only signals may change.
    SignalMemory {
        /// The address used.
        address: u64,
    },
    /// The ranks of a collective call disagree about an argument.
    Disagree {
        /// Which argument.
        what: &'static str,
        /// The smallest value given.
        least: u64,
        /// The largest value given.
        most: u64,
    },
    /// Worker, container or address range has no room for a request.
    NoMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes there are.
        available: u64,
        /// Which limit it is.
        limit: String,
    },
    /// A bounded place is full.
    Full {
        /// Which.
        what: &'static str,
        /// Its capacity.
        capacity: usize,
    },
    /// No slot of this communicator has that number.
    NoSuchSlot {
        /// The number asked for.
        slot: u32,
        /// How many slots there are.
        slots: u32,
    },
    /// An earlier message of the rank's own on that slot has not been waited for.
    Busy {
        /// `send` or `receive`.
        what: &'static str,
    },
    /// What was to be closed is still in use.
    InUse {
        /// By what, in words.
        what: &'static str,
        /// On which slot; none for a receive of any slot.
        slot: Option<u32>,
    },
    /// A message is larger than the receive that it met.
    Truncated {
        /// Bytes of the message.
        len: u64,
        /// Bytes that the receive has room for.
        room: u64,
    },
    /// The spool has no room for a message.
    SpoolFull {
        /// Bytes of the message.
        bytes: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes that the spool has.
        capacity: u64,
    },
    /// Messages that peers left without taking.
    Untaken {
        /// How many.
        messages: usize,
        /// For whom the first was.
        peer: Rank,
        /// On which slot.
        slot: u32,
    },
    /// A peer had taken the receive for a message of its own, and could not send that.
    NotSent {
        /// Who.
        peer: Rank,
    },
    /// The time given ran out.
    TimedOut {
        /// How long the call waited.
        after: Duration,
    },
    /// A rank died; the job ends.
    PeerDied {
        /// Who.
        peer: Rank,
        /// How, in words: `signal 9`, `exit code 3`, `panicked: ...`.
        how: String,
        /// How long ago.
        ago: Duration,
    },
    /// A rank left the job while this call still needed it.
    PeerLeft {
        /// Who.
        peer: Rank,
    },
    /// An operation that this one was ordered after failed, so this one was not started.
    Predecessor {
        /// The failed predecessor's report.
        report: String,
    },
    /// A command that was to raise the signal failed, or what it waited for did.
    Poisoned {
        /// The rank on which the first failure happened.
        origin: Rank,
        /// That failure.
        cause: Box<Cause>,
    },
    /// A command or a call failed when it was run, elsewhere perhaps.
    Failed {
        /// The rank that ran it.
        rank: Rank,
        /// Why.
        cause: Box<Cause>,
    },
    /// A handler failed; its rank's output says how.
    HandlerFailed {
        /// Its number.
        handler: u8,
        /// Its name; empty where that is not known.
        name: String,
    },
    /// An operation of the program's own panicked where it combined values; its rank's output says how.
    OperationPanicked {
        /// Which rank.
        rank: Rank,
    },
    /// A command queue was dropped with a command in it that had not fired.
    QueueDropped,
    /// The same, when a thread of its rank panicked.
    QueueUnwound {
        /// Which rank.
        rank: Rank,
    },
    /// A session queue that begins anew takes no more commands.
    QueueRepeats,
    /// A process that was forked from a rank is not the rank.
    Forked,
    /// The job has ended or was left.
    JobOver,
    /// The system refused a call.
    System {
        /// The call, e.g. `mmap`.
        call: &'static str,
        /// Its error number's text.
        why: String,
    },
    /// Something that this system, or this fabric, cannot do.
    Unsupported(String),
    /// The job could not be joined; the text says why.
    Join(String),
    /// A function of the program failed or panicked on a rank.
    Program(String),
    /// Tasuki broke a promise of its own.
    Bug(String),
}

impl Cause {
    /// Whose doing it is.
    pub fn blame(&self) -> Blame {
        use Cause::*;
        match self {
            Argument(_) | NullAddress | NoSuchRank { .. } | OutOfRange { .. } | Stale { .. } => Blame::Misuse,
            Misaligned { .. } | SignalMemory { .. } | Disagree { .. } | Forked | JobOver => Blame::Misuse,
            NoSuchSlot { .. } | Busy { .. } | InUse { .. } | Truncated { .. } => Blame::Misuse,
            Program(_) | HandlerFailed { .. } | OperationPanicked { .. } | QueueUnwound { .. } => {
                Blame::Program
            }
            Poisoned { cause, .. } | Failed { cause, .. } => cause.blame(),
            QueueDropped | QueueRepeats => Blame::Misuse,
            TimedOut { .. } | PeerDied { .. } | PeerLeft { .. } | Predecessor { .. } => Blame::Peer,
            Untaken { .. } | NotSent { .. } => Blame::Peer,
            NoMemory { .. } | Full { .. } | SpoolFull { .. } | System { .. } | Unsupported(_) | Join(_) => {
                Blame::System
            }
            Bug(_) => Blame::Bug,
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
                write!(f, "there is no rank {rank}{above}: there are {size} (0 to {})", size - 1)
            }
            OutOfRange { address, bytes } => {
                write!(f, "{bytes} bytes at {} do not lie in one registration", Address(*address))
            }
            Stale { address } => write!(f, "the memory at {} was freed", Address(*address)),
            Misaligned { address, align } => {
                write!(f, "{} is not a multiple of {align}", Address(*address))
            }
            SignalMemory { address } => write!(f, "{} is signal memory", Address(*address)),
            Disagree { what, least, most } => {
                write!(f, "the ranks disagree about {what}: the least is {least}, the most {most}")
            }
            NoMemory { wanted, available, limit } => {
                write!(f, "no room for {wanted} bytes: {limit} leaves {available}")
            }
            Full { what, capacity } => write!(f, "{what} is full (capacity {capacity})"),
            NoSuchSlot { slot, slots } => write!(f, "there is no slot {slot}: the communicator has {slots}"),
            Busy { what } => write!(f, "an earlier {what} on this slot has not been waited for"),
            InUse { what, slot: Some(slot) } => write!(f, "slot {slot} is in use: {what}"),
            InUse { what, slot: None } => write!(f, "slots are in use: {what}"),
            Truncated { len, room } => {
                write!(f, "the message has {len} bytes, the receive has room for {room}")
            }
            SpoolFull { bytes, free, capacity } => {
                write!(f, "the spool has {free} of {capacity} bytes free, the message {bytes}")
            }
            Untaken { messages, peer, slot } => {
                write!(f, "{messages} messages were not taken, the first on slot {slot} by rank {peer}")
            }
            NotSent { peer } => write!(f, "rank {peer} could not send its message to the end"),
            TimedOut { after } => write!(f, "timed out after {after:.1?}"),
            PeerDied { peer, how, ago } => write!(f, "rank {peer} died ({how}) {ago:.0?} ago"),
            PeerLeft { peer } => write!(f, "rank {peer} has left the job"),
            Predecessor { report } => {
                write!(f, "not started: it was ordered after a call that failed ({report})")
            }
            Poisoned { origin, cause } => write!(f, "a command before it failed on rank {origin}: {cause}"),
            Failed { rank, cause } => write!(f, "it failed on rank {rank}: {cause}"),
            HandlerFailed { handler, name } if name.is_empty() => write!(f, "handler {handler} failed"),
            HandlerFailed { name, .. } => write!(f, "handler {name:?} failed"),
            OperationPanicked { rank } => {
                write!(f, "an operation of the program's own panicked on rank {rank}")
            }
            QueueDropped => write!(f, "its queue was dropped before it had fired"),
            QueueUnwound { rank } => {
                write!(f, "its queue was dropped before it had fired, by a panic on rank {rank}")
            }
            QueueRepeats => {
                write!(f, "the queue begins anew with the commands that it has, and takes no more")
            }
            Forked => write!(f, "this process was forked from a rank and is not one itself"),
            JobOver => write!(f, "the job is over"),
            System { call, why } => write!(f, "{call}: {why}"),
            Bug(text) => write!(f, "internal error: {text}"),
        }
    }
}

/// An address as people read it: rank and offset.
struct Address(u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.0 >> 40, self.0 & ((1 << 40) - 1))
    }
}

impl Error {
    /// An error of `cause`, with neither rank nor call yet.
    pub fn new(cause: Cause) -> Error {
        Error(Box::new(Report { rank: None, call: String::new(), cause, notes: Vec::new(), is_said: false }))
    }

    /// A system call's error, from `errno`.
    pub fn last_os(call: &'static str) -> Error {
        Error::from_io(call, &std::io::Error::last_os_error())
    }

    /// A system call's error, from the standard library's.
    pub fn from_io(call: &'static str, error: &std::io::Error) -> Error {
        Error::new(Cause::System { call, why: error.to_string() })
    }

    /// A wrong argument.
    pub fn argument(text: impl Into<String>) -> Error {
        Error::new(Cause::Argument(text.into()))
    }

    /// An error of the program's own, to be returned through Tasuki's calls: `file.read(..).map_err(Error::program)`.
    pub fn program(error: impl fmt::Display) -> Error {
        Error::new(Cause::Program(error.to_string()))
    }

    /// Names the call, unless a place nearer to the cause has named one.
    pub fn in_call(mut self, call: impl FnOnce() -> String) -> Error {
        if self.0.call.is_empty() {
            self.0.call = call();
        }
        self
    }

    /// Names the rank that made the call, unless that is known already.
    pub fn on_rank(mut self, rank: Rank) -> Error {
        self.0.rank.get_or_insert(rank);
        self
    }

    /// Adds a line of context below the first.
    pub fn note(mut self, text: impl Into<String>) -> Error {
        self.0.notes.push(text.into());
        self
    }

    /// Marks that the user has been told of it: nobody needs to print it once more.
    #[doc(hidden)]
    pub fn said(mut self) -> Error {
        self.0.is_said = true;
        self
    }

    /// Returns true if the user has been told of it.
    #[doc(hidden)]
    pub fn is_said(&self) -> bool {
        self.0.is_said
    }

    /// What happened.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The rank that made the call, where one did.
    pub fn rank(&self) -> Option<Rank> {
        self.0.rank
    }

    /// The call with its arguments, empty before a job was joined.
    pub fn call(&self) -> &str {
        &self.0.call
    }

    /// Whose doing it is.
    pub fn blame(&self) -> Blame {
        self.0.cause.blame()
    }

    /// Whether the time given to the call ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.cause, Cause::TimedOut { .. })
    }

    /// The first line without the hint.
    pub fn headline(&self) -> String {
        let who = self.0.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
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
        let Report { rank, call, cause, notes, is_said } = &*self.0;
        Error(Box::new(Report {
            rank: *rank,
            call: call.clone(),
            cause: cause.clone(),
            notes: notes.clone(),
            is_said: *is_said,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for note in &self.0.notes {
            write!(f, "\n  {note}")?;
        }
        match self.0.cause.hint() {
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

impl std::error::Error for Error {}

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
             hint: this call ended because that rank did; its own error, or what `tasuki run` says of it, is the reason"
        );
        assert_eq!(error.blame(), Blame::Peer);
    }

    #[test]
    fn every_wrong_address_and_a_lack_of_files_have_a_way_out() {
        let files = std::io::Error::from_raw_os_error(24);
        assert!(Error::from_io("memfd_create", &files).to_string().contains("`ulimit -n`"));
        let memory = std::io::Error::from_raw_os_error(12);
        assert!(Error::from_io("mmap", &memory).to_string().contains("`ulimit -v`"));
        assert!(!Error::from_io("fallocate", &memory).to_string().contains("hint:"));
        let misaligned = Error::new(Cause::Misaligned { address: 1 << 40 | 4, align: 8 }).to_string();
        assert!(misaligned.starts_with("1:0x4 is not a multiple of 8\n  hint: "), "{misaligned}");
        let rank = |rank| Error::new(Cause::NoSuchRank { rank, size: 4 }).to_string();
        assert!(rank(Rank(4)).starts_with("there is no rank 4: there are 4 (0 to 3)\n  hint: "));
        assert!(rank(Rank::MAX).starts_with("there is no rank 16777215 or above: there are 4 (0 to 3)\n"));
    }

    #[test]
    fn the_innermost_call_wins() {
        let error = Error::new(Cause::NullAddress).in_call(|| "put".into()).in_call(|| "outer".into());
        assert_eq!(error.call(), "put");
    }
}
