//! Traces: a rank records events while it runs and writes them to a file when it ends.
//!
//! ```text
//! event      what is recorded: sixteen words
//! recorder   where: a lock-free ring for each rank, which keeps the last events
//! rank_file  the file of each rank; the `tasuki` command joins the files
//! ```
//!
//! A rank without tracing has no recorder. It detects that by one load of its own memory where a
//! command fires or its effects are applied, in long waits, and in puts, gets, copies and raises.
//! Times come from the platform's clock: ranks of a node share it; simulated ranks have virtual
//! time.

mod event;
mod rank_file;
mod recorder;

pub use event::{
    CommandId, CommandSummary, EVENT_BYTES, EventKind, QueueId, Raise, TraceEvent, TraceText, Transfer,
};
pub use rank_file::{RankTrace, part_file};
pub use recorder::{EVENTS, EVENTS_MAX, Recorder, TraceTo};
