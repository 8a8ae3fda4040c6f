//! The hint of each cause of an error: it says how to avoid the error, and is the last line that the error prints.

use super::Cause;

/// The name of a command queue in [`Cause::Full`]; it selects a hint of its own.
pub const COMMAND_QUEUE: &str = "the command queue";
/// The name of a queue of calls in [`Cause::Full`]; it selects a hint of its own.
pub const QUEUE_OF_CALLS: &str = "the queue of calls";
/// The name of signal memory in [`Cause::Full`]: it holds signals, also those of plans and communicators.
pub const SIGNAL_MEMORY: &str = "signal memory";
/// The name of the memory of slot banks in [`Cause::Full`].
pub const ARENA_OF_MESSAGES: &str =
    "the arena of messages (a bank of 64 slots for each peer and context, at both ends)";
/// The name of the slot directory in [`Cause::Full`]: it has an entry for each pair that exchanged a message.
pub const DIRECTORY_OF_MESSAGES: &str =
    "the directory of messages (an entry for each pair, context and 64 slots)";
/// The name of a rank's list of command queues in [`Cause::Full`].
pub const QUEUES_OF_RANK: &str = "the list of a rank's queues";
/// The name of the extent table in [`Cause::Full`].
pub const REGISTRATIONS: &str = "the table of registrations";
/// The name of the list of failed operations that the program has not completed, in [`Cause::Full`].
pub const FAILURES: &str = "the list of failed operations that were not completed";
/// The name of the list of awaited replies in [`Cause::Full`].
pub const REPLIES: &str = "the list of replies that this rank waits for";
/// The name of a rank's `isend_any` messages to one member that wait for its buffers, in [`Cause::Full`].
pub const BEGUN_TO_ANY_SOURCE: &str = "the list of messages of isend_any to one rank";
/// The name of a communicator's nonblocking calls in [`Cause::Full`].
pub const CALLS_OF_COMMUNICATOR: &str = "the list of nonblocking collective calls of this communicator";
/// The name of a communicator's fuzzy barriers in [`Cause::Full`].
pub const FUZZY_BARRIERS: &str = "the list of fuzzy barriers under way";
/// The name of what a slot may take of the send buffer in [`Cause::Full`].
pub const SEND_BUFFER_OF_SLOT: &str = "the send buffer of one slot";
/// The name of the side store of a receive queue in [`Cause::Full`].
pub const SIDE_STORE: &str =
    "the side store of a receive queue (bytes of messages of other slots than the wanted one)";
/// The name of the list of long messages to receive queues in [`Cause::Full`].
pub const LONG_TO_QUEUES: &str = "the list of long messages to receive queues";
/// The name of the table of receive queues in [`Cause::Full`].
pub const RECEIVE_QUEUES: &str = "the table of receive queues";
/// The name of the list of copies by key in [`Cause::Full`].
pub const COPIES_BY_KEY: &str = "the list of waiting copies by key";
/// The argument in [`Cause::Disagree`] that only source and destination of a copy by key must agree about.
pub const BYTES_BY_KEY: &str = "the bytes of a copy by key";

/// The end of the standard library's text for EMFILE.
const TOO_MANY_FILES: &str = "(os error 24)";

impl Cause {
    /// Returns the hint for an error of that call, if there is one.
    pub(super) fn hint(&self, call: &str) -> Option<&'static str> {
        use Cause::*;
        Some(match self {
            NullAddress => "take addresses from job.alloc(..).on(rank) or job.register(..)",
            NoSuchRank { .. } => {
                "take ranks from job.ranks(), or check them against the size of the job or communicator"
            }
            NoSuchMember { .. } => "take members from communicator.members(), or check them against its size",
            NotAMember { .. } => {
                "a Rank is a rank of the job: communicator.members() tells which are members; name a member by Member(n)"
            }
            StartActive => "wait for it before the next start, and before you use the plan's values",
            AnotherCall => {
                "the order of collective calls must be known to all ranks: let one thread make them, or give each thread \
                 a communicator of its own (dup)"
            }
            AlreadyReturned { .. } => "begin another; wait_all and the end of a scope are waits, too",
            OutOfRange { .. } => {
                "check address and length: an access must end in the registration in which it begins"
            }
            Stale { .. } => {
                "synchronize (barrier, signal) before memory is freed, and do not use its addresses afterwards"
            }
            Misaligned { .. } => {
                "an atomic operation needs an address that is a multiple of its size: register aligned memory"
            }
            PartialValue { .. } => "receive values of the type that was sent, or bytes",
            Overwritten => "reply to each value, or use several payload signals",
            ClosedMemory { .. } => {
                "the memory was freed and is a ring now, or an offset is wrong: check the address"
            }
            SignalMemory { .. } => "raise signals with job.raise(signal.on(rank), n) or job.put_signal(..)",
            Disagree { what: BYTES_BY_KEY, .. } => {
                "copy_source and copy_destination of a key must name the same number of bytes; equal keys match in order"
            }
            Disagree { what: "bytes", .. } => return Some(hint_about_bytes(call)),
            Mismatch { .. } | Disagree { .. } => {
                "all ranks must make this call with equal arguments, in the same order"
            }
            NoMemory { .. } => "allocate less, run fewer ranks on this node, or raise the limit named",
            NoSuchSlot { .. } => {
                "create the communicator with more slots, or number messages modulo its slots"
            }
            Busy { what: "send" } => {
                "wait for it, or use another slot: a slot holds one message at a time; a send whose request was dropped goes \
                 on until the receiver has posted its receive: cancel a request that shall not be sent"
            }
            Busy { .. } => "wait for it, or use another slot: a slot holds one message at a time",
            InUse { .. } => {
                "wait for it, or until the buffered sends have gone out, then close again; nothing was changed"
            }
            Truncated { .. } => "make the receive's buffer as large as the largest message",
            TypeMismatch { .. } => {
                "receive the type that was sent, or bytes (u8), which match any type but objects; what send_object sent is received by recv_object of that type; an integer without a type is an i32"
            }
            SendBufferFull { .. } => {
                "make the send buffer larger, or wait until receivers have taken buffered messages; no message was lost"
            }
            CommunicatorFailed { .. } => {
                "see the error of that call; all later calls fail, too: go on with communicator.recreate(), on all members"
            }
            Untaken { .. } => {
                "receive each message by a recv of its slot before the program of its receiver returns; a message of send \
                 meets no recv_any"
            }
            Unreceived { .. } => {
                "receive each message by a recv_any of its slot before the program returns; a message of send_any meets \
                 no recv"
            }
            NotSent { .. } => {
                "see the error of that rank's own call; most likely its memory was freed during the call"
            }
            TimedOut { .. } => {
                "`tasuki ps` shows what each rank waits for; within(..), set_timeout(..) or TASUKI_CALL_TIMEOUT sets the limit"
            }
            PeerDied { .. } => {
                "this call failed because that rank died: see its own error, or what `tasuki run` reports about it"
            }
            QueueClosed { .. } => {
                "a receiver should drop its queue after the last message only: tell it how many will come"
            }
            ChannelDropped { .. } => {
                "drop the receiver after the sender only: receive until a peek returns no element"
            }
            PeerLeft { .. } => {
                "a rank may leave only when no other rank needs it any more: let it make each call that others wait for, \
                 such as a send or its part of a collective call; if none is missing, end with a barrier"
            }
            Full { what: COMMAND_QUEUE, .. } => {
                "commands free their entries as they fire: wait for a signal that one of them raises and post again, \
                 or create the queue with more entries"
            }
            Full { what: QUEUE_OF_CALLS, .. } => {
                "that rank frees entries as it runs handlers: run the handlers of this rank by job.serve(), and call \
                 again; or use call() and post(), which wait for room"
            }
            QueueRepeats => "post all commands before Queue::repeat, and others to another queue",
            OperationPanicked { .. } => {
                "see that rank's output; the values are lost and the plan cannot be used again: drop it, and call \
                 quiesce()"
            }
            QueueUnwound { .. } => "see that rank's output: it says why it panicked",
            Full { what: SIGNAL_MEMORY, .. } => {
                "signals and signal lines exist until the job ends (job.memory().signals counts them): create them once \
                 and reuse them with growing thresholds; those of plans and communicators are freed when all members \
                 have dropped them and called quiesce()"
            }
            Full { what: ARENA_OF_MESSAGES, .. } => {
                "drop communicators that are no longer used, on all members: the next split or quiesce() of the one \
                 that they were split from frees their banks; message::close(communicator, peer), called by both ranks of \
                 a pair, frees those of the pair"
            }
            Full { what: DIRECTORY_OF_MESSAGES, .. } => {
                "drop communicators that are no longer used, on all members: the next split or quiesce() of the one \
                 that they were split from frees their entries; or use more slots of one communicator"
            }
            Full { what: QUEUES_OF_RANK, .. } => {
                "drop queues that are no longer used; those of plans are freed when all members have dropped the plan \
                 and called quiesce()"
            }
            Full { what: REGISTRATIONS, .. } => "drop arrays and registrations that are no longer used",
            Full { what: REPLIES, .. } => {
                "wait for replies, or drop them: each that was neither read nor dropped keeps its entry"
            }
            Full { what: BEGUN_TO_ANY_SOURCE, .. } => {
                "wait for requests of isend_any, or use send_any, which waits for room"
            }
            Full { what: CALLS_OF_COMMUNICATOR, .. } => {
                "wait for the oldest request of them: the calls end in the order in which they began"
            }
            Full { what: FUZZY_BARRIERS, .. } => "wait for the oldest of them before the next begins",
            Full { what: SEND_BUFFER_OF_SLOT, .. } => {
                "wait until the receiver has received messages of that slot, or use another slot"
            }
            Full { what: SIDE_STORE, .. } => {
                "receive messages of the other slots, or of any slot (Slot::ANY)"
            }
            Full { what: LONG_TO_QUEUES, .. } => {
                "wait until receivers have received long messages of this rank"
            }
            Full { what: RECEIVE_QUEUES, .. } => "drop receive queues that are no longer used",
            Full { what: COPIES_BY_KEY, .. } => {
                "wait until other sides of the copies have come: each side that has met the other frees its entry"
            }
            Full { what: FAILURES, .. } => "job.complete(handle) returns a failure and frees its entry",
            Full { .. } => "wait until entries become free, and call again",
            QueueDropped => "keep a queue until its commands have fired, or cancel them first",
            HandlerFailed { text, .. } if text.is_empty() => {
                "see the output of that rank: it shows panics always, and errors with TASUKI_LOG=info"
            }
            Poisoned { cause, .. } | Failed { cause, .. } => return cause.hint(call),
            Forked => "only the rank itself may call Tasuki; start other programs with std::process::Command",
            System { why, .. } if why.contains(TOO_MANY_FILES) => {
                "a rank opens one file for each rank: raise the limit of open files, RLIMIT_NOFILE (`ulimit -n`)"
            }
            System { call: "mmap", .. } => {
                "each rank's memory is mapped in pieces of 1 GiB: raise the limit of address space (`ulimit -v`)"
            }
            JobOver => "make no calls after the job has ended",
            Bug(_) => "please report this, with the program and its output under TASUKI_LOG=debug",
            _ => return None,
        })
    }
}

/// Returns the hint for members that gave different numbers of bytes in that call.
fn hint_about_bytes(call: &str) -> &'static str {
    let name = call.split(['(', '_']).next().unwrap_or_default();
    match name.strip_prefix('i').unwrap_or(name) {
        "gather" | "allgather" => {
            "all members must pass equally many values: if their numbers differ, pass Uneven(&block)"
        }
        "alltoall" | "scatter" => {
            "the blocks of all members must have one length: if their lengths differ, pass Blocks"
        }
        "bcast" => {
            "all members must pass as many values as the root: if only the root knows how many, broadcast the number first"
        }
        "neighbor" => {
            "the block that a member sends to a neighbour must be as long as the one that the neighbour expects: compare \
             the halos of both along this dimension"
        }
        _ => "all members must pass equally many values",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_disagree_about_bytes_learn_what_takes_other_lengths() {
        let hint = |call: &str| Cause::bytes_differ(1, 8, 16).hint(call).unwrap_or_default();
        for (call, way_out) in [
            ("gather(8 bytes to rank 0, world)", "Uneven(&block)"),
            ("iallgather(8 bytes, world)", "Uneven(&block)"),
            ("alltoall(8 bytes, world)", "pass Blocks"),
            ("bcast(8 bytes from rank 0, world)", "broadcast the number first"),
            ("neighbor_alltoall(8 bytes, world)", "the halos of both"),
            ("ineighbor_alltoall(8 bytes, world)", "the halos of both"),
            ("allreduce(8 bytes, world)", "all members must pass equally many values"),
        ] {
            assert!(hint(call).contains(way_out), "{call}: {}", hint(call));
        }
        assert!(!hint("allreduce(8 bytes, world)").contains("Uneven"));
    }

    #[test]
    fn structures_that_waiting_does_not_empty_have_hints_of_their_own() {
        let lasting = [
            SIGNAL_MEMORY,
            ARENA_OF_MESSAGES,
            DIRECTORY_OF_MESSAGES,
            QUEUES_OF_RANK,
            REGISTRATIONS,
            FAILURES,
        ];
        for what in lasting {
            let hint = Cause::Full { what, capacity: 1 }.hint("").unwrap_or_default();
            assert!(!hint.contains("wait") && !hint.is_empty(), "{what}: {hint}");
        }
    }
}
