//! The way out of each cause of an error: the last line of what it prints.

use super::Cause;

/// What is full, as [`Cause::Full`] names it, where that has a way out of its own.
pub const COMMAND_QUEUE: &str = "the command queue";
/// The same of a queue of calls.
pub const QUEUE_OF_CALLS: &str = "the queue of calls";
/// What ranks disagree about, as [`Cause::Disagree`] names it, where two sides do and not all ranks.
pub const BYTES_BY_KEY: &str = "the bytes of a copy by key";

/// How the standard library ends the text of EMFILE.
const TOO_MANY_FILES: &str = "(os error 24)";

impl Cause {
    /// The way out, where there is one that holds for every call.
    pub(super) fn hint(&self) -> Option<&'static str> {
        use Cause::*;
        Some(match self {
            NullAddress => "take addresses from job.alloc(..).on(rank) or job.register(..)",
            NoSuchRank { .. } => {
                "take ranks from job.ranks(), or check them against the size of the job or communicator"
            }
            OutOfRange { .. } => "an access must end inside the registration in which it begins",
            Stale { .. } => "meet (barrier, signal) before memory is freed, and drop its addresses then",
            Misaligned { .. } => {
                "a word that is changed in one step lies at a multiple of its size: register aligned memory"
            }
            SignalMemory { .. } => "raise signals with job.raise(signal.on(rank), n) or job.put_signal(..)",
            Disagree { what: BYTES_BY_KEY, .. } => {
                "copy_source and copy_destination of a key name as many bytes; equal keys meet in their order"
            }
            Disagree { .. } => "all ranks must make this call with equal arguments, in the same order",
            NoMemory { .. } => "ask for less, run fewer ranks on this node, or raise the limit named",
            NoSuchSlot { .. } => "make the communicator with more slots, or number messages modulo its slots",
            Busy { .. } => "wait for it, or use another slot: each serves one message at a time",
            InUse { .. } => "wait for it, or let the spool empty itself, and then close; nothing was changed",
            Truncated { .. } => "make the receive's buffer as large as the largest message",
            SpoolFull { .. } => {
                "give the spool more room, or let receivers take what is in it; nothing was lost"
            }
            Untaken { .. } => "receive every message before leaving: end with a barrier",
            NotSent { .. } => {
                "that rank's own call says why: memory that was freed during the call, most likely"
            }
            TimedOut { .. } => "`tasuki ps` shows who waits for what",
            PeerDied { .. } => {
                "this call ended because that rank did; its own error, or what `tasuki run` says of it, is the reason"
            }
            PeerLeft { .. } => "a rank may leave only when nobody needs it any more: end with a barrier",
            Full { what: COMMAND_QUEUE, .. } => {
                "its commands make room as they fire: wait for a signal that one of them raises and post again, or \
                 make the queue with more places"
            }
            Full { what: QUEUE_OF_CALLS, .. } => {
                "that rank makes room as it runs handlers: serve others (wait for anything), and call again"
            }
            QueueRepeats => "post all commands before Queue::repeat, and any others to another queue",
            OperationPanicked { .. } => {
                "that rank's own output says why; the values are lost, and the plan is of no more use: drop it, and \
                 quiesce()"
            }
            QueueUnwound { .. } => "that rank's own output says why it panicked",
            Full { .. } => "wait for something that makes room, and call again",
            QueueDropped => "keep a queue until its commands have fired, or cancel them before",
            HandlerFailed { .. } => {
                "the output of that rank says how: a panic always, an error with TASUKI_LOG=info"
            }
            Poisoned { cause, .. } | Failed { cause, .. } => return cause.hint(),
            Forked => "start other programs with std::process::Command; only the rank itself may call",
            System { why, .. } if why.contains(TOO_MANY_FILES) => {
                "a rank holds a file for each rank: raise the limit of open files, RLIMIT_NOFILE (`ulimit -n`)"
            }
            System { call: "mmap", .. } => {
                "each rank's memory is mapped in pieces of 1 GiB: raise the limit of address space (`ulimit -v`)"
            }
            JobOver => "no call is possible after the job has ended",
            Bug(_) => "please report this with the program and TASUKI_LOG=debug",
            _ => return None,
        })
    }
}
