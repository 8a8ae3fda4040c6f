//! Messages that are matched at the sender, in slots that belong to one pair of ranks each.
//!
//! A tag is the number of a slot. The receiver posts where the message may go, in a line at the sender; the sender
//! sees it and writes the message where the receiver wants it, or, if it is short, into a line at the receiver, with
//! the word that tells of it. Nothing is queued, searched or allocated on the way of a short message.
//!
//! Source: FMPL (Tatebe and others), sections 3 to 5. Unlike the paper's drawing, no slot is ever reset: postings and
//! messages are numbered.

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

mod blocking;
mod buffer;
mod buffered;
mod call_info;
mod context;
mod preposted;
mod progress;
mod protocol;
mod request;
mod slot;

pub use buffer::MessageBuffer;
pub use call_info::CallNames;
pub use context::{Context, PostedRecv, Received, SentBank, SentShort};
pub use preposted::PREPOSTED_SLOTS;
pub use progress::{Continuation, FinalizeHook, MessageOp, ProgressEngine};
pub use request::{PendingRecv, PendingSend};
pub use slot::SHORT_MAX;
