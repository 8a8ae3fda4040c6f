//! The way out of each cause of an error: the last line of what it prints.

use super::Cause;

/// What is full, as [`Cause::Full`] names it, where that has a way out of its own.
pub const COMMAND_QUEUE: &str = "the command queue";
/// The same of a queue of calls.
pub const QUEUE_OF_CALLS: &str = "the queue of calls";
/// Signals and lines, and those of plans and communicators.
pub const SIGNAL_MEMORY: &str = "signal memory";
/// Pages of slots, for messages.
pub const ARENA_OF_MESSAGES: &str =
    "the arena of messages (a page of 64 slots for each peer and context, at both ends)";
/// Entries of pairs that exchanged a message.
pub const DIRECTORY_OF_MESSAGES: &str =
    "the directory of messages (an entry for each pair, context and 64 slots)";
/// Command queues of a rank.
pub const QUEUES_OF_RANK: &str = "the list of a rank's queues";
/// What a rank has registered or allocated.
pub const REGISTRATIONS: &str = "the table of registrations";
/// Failures of operations that ended after their call.
pub const FAILURES: &str = "the list of failures that nobody asked for (complete tells them)";
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
            Full { what: SIGNAL_MEMORY, .. } => {
                "signals and lines live as long as the job (job.memory().signals counts them): make them once and use \
                 them again, with thresholds that grow; the signals of plans are freed when all members have dropped \
                 them and called quiesce()"
            }
            Full { what: ARENA_OF_MESSAGES, .. } => {
                "both ranks of a pair give its pages back by Communicator::close(peer); dropping a communicator does \
                 not: close its pairs before, or use the slots of one communicator for more"
            }
            Full { what: DIRECTORY_OF_MESSAGES, .. } => {
                "entries stay as long as the job: make communicators once, and use the slots of one for more"
            }
            Full { what: QUEUES_OF_RANK, .. } => {
                "drop queues that are no more used; those of plans are freed when all members have dropped the plan \
                 and called quiesce()"
            }
            Full { what: REGISTRATIONS, .. } => "drop arrays and registrations that are no more used",
            Full { what: FAILURES, .. } => "job.complete(handle) tells a failure and makes room",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_empties_by_waiting_has_a_way_out_of_its_own() {
        let lasting = [
            SIGNAL_MEMORY,
            ARENA_OF_MESSAGES,
            DIRECTORY_OF_MESSAGES,
            QUEUES_OF_RANK,
            REGISTRATIONS,
            FAILURES,
        ];
        for what in lasting {
            let hint = Cause::Full { what, capacity: 1 }.hint().unwrap_or_default();
            assert!(!hint.contains("wait") && !hint.is_empty(), "{what}: {hint}");
        }
    }
}
