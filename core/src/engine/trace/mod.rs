//! EventKind happened on a rank, for a picture of the run: recorded while it runs, written when it ends.
//!
//! ```text
//! event      what is recorded: sixteen words
//! recorder   where: a ring of the rank's, without a lock, that keeps the last events
//! part       the file that it becomes, one a rank; `tasuki` joins them
//! ```
//!
//! A rank that is not traced has no recorder, and finds that out by one look at a word of its own: where a command
//! is fired or has its effect, in waits that last, and in puts, gets, copies and raises. Times are those of the host: ranks of a node share its clock, simulated ones have theirs.

mod event;
mod rank_file;
mod recorder;

pub use event::{
    CommandId, CommandSummary, EVENT_BYTES, EventKind, QueueId, Raise, TraceEvent, TraceText, Transfer,
};
pub use rank_file::{RankTrace, part_file};
pub use recorder::{EVENTS, EVENTS_MAX, Recorder, TraceTo};
