//! Two-sided messages. Sender and receiver match at the sender, in slots that belong to one ordered pair of ranks
//! each.
//!
//! A slot is what MPI calls a tag. The receiver posts a receive by writing into a cache line at the sender. The
//! sender reads it and writes the message where the receiver wants it. A short message goes into a cache line at the
//! receiver, together with the word that announces it. A short message is never queued, searched for or allocated.
//!
//! Source: FMPL (Tatebe and others), sections 3 to 5. Unlike in the paper's drawing, slots are never reset: postings
//! and messages are numbered.

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

mod blocking;
mod buffer;
mod buffered;
mod call_info;
mod channel;
mod context;
mod deferred_free;
mod dropped_receive;
mod preposted;
mod progress;
mod protocol;
mod receive_queue;
mod request;
mod slot;
mod strided;
mod typed_slot;

pub use buffer::{ArrivalBuffer, MessageBuffer};
pub use buffered::budget::BUFFERED_OVERHEAD;
pub use call_info::CallNames;
pub use channel::{ChannelElement, ChannelReceiver, ChannelSender, KeptMemory, reaches_ring};
pub use context::{Context, PostedRecv, Received, SentBank, SentShort};
pub use preposted::PREPOSTED_SLOTS;
pub use progress::{Continuation, FinalizeHook, MessageOp, ProgressEngine};
pub use receive_queue::{
    AnyLook, Arrival, MessageLimit, MessageLimitAddress, MessagePermits, PendingSendAny, ReceiveQueue,
    ReceiveQueueAddress, ReceiveQueueOptions, ReceiveQueueSender, SendersLeft, TakenMessage, Wanted,
};
pub use request::{PendingRecv, PendingSend};
pub use slot::SHORT_MAX;
pub use strided::StridedBuffer;
pub use typed_slot::TypedSlot;
