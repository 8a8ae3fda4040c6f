//! Receive queues: many senders, one receiver, and a fixed number of buffers.
//!
//! A rank that has a receive queue states how many messages it holds and how long they are. Any rank that knows its
//! [`ReceiveQueueAddress`] sends to it; the receiver knows neither who nor when. The queue never takes more memory,
//! however many senders there are, and the receiver's processor does nothing until it looks.
//!
//! ```text
//!             drawn    messages that senders have begun: a sender's ticket is the number before its own
//!             consumed messages that the receiver has taken, without a gap
//!   buffer t mod N     line: header, up to 32 bytes of the message; area: a longer one
//! ```
//!
//! 1. A sender adds 1 to `drawn`. The old value is its ticket `t`.
//! 2. It waits until `t - consumed < N` (wrapping). It keeps the last value of `consumed` that it has read, and reads
//!    it again only if that value leaves no room. While it waits, it polls at growing intervals.
//! 3. It writes a message of up to 32 bytes into the line of buffer `t mod N`, and a longer one into the area of that
//!    buffer, before the line. A message that is longer than the area stays where it is: the line says where, and the
//!    receiver fetches it ([`offer`]).
//! 4. The main word of the line, which is written last, says that ticket `t` is there. The receiver takes a buffer only
//!    when it says so (`SYNC slot-main`).
//! 5. `consumed` is the length of the prefix of tickets that were all taken. A receive that takes a later message, for
//!    example by its slot, leaves a gap, which `consumed` does not pass: otherwise ticket `t + N` would overwrite a
//!    message that nobody has read.
//!
//! The messages of one sender are received in the order in which it sends them, also where lines arrive in another
//! order: each line says how many tickets ago its sender drew the last one. Nothing is promised across senders.
//!
//! The buffers may be divided into shares, each with two counters of its own, which may lie on another rank than the
//! receiver. A sender uses the share of its part of the job. If that is full, it borrows from another one when all its
//! earlier messages were consumed, and stays there. A sender of several messages draws their tickets by one addition.
//!
//! Two questions that the paper leaves open are answered so:
//!
//! - *A sender is interrupted between its ticket and its message*, as happens all the time where ranks share processors.
//!   Messages behind it are received meanwhile, up to as many as there are buffers. If its rank dies, the job fails, and
//!   all calls with it.
//! - *All buffers hold messages that nobody asks for*, among them those that stay at their senders. The receiver copies
//!   the oldest out, up to as many bytes as the queue has; after that its receive fails. So no request has to be revoked
//!   to let others pass. A sender whose call reaches its limit takes a message that has stayed at it back.
//!
//! Each rank has one more queue, for the messages of its communicators whose receiver does not name the sender
//! ([`any_source`]).
//!
//! Source: Sumimoto and others, Methods for Memory Saving Communication Library Using Remote Atomic Memory
//! Communication, the scheme that acquires a receive buffer. The paper does not say how the receiver knows that a
//! buffer is filled, nor that `consumed` must be a prefix; nor what a sender does that gives up after it has drawn a
//! ticket ([`deferred`]).

pub(crate) mod any_source;
mod counters;
mod deferred;
mod drawn_message;
mod growing_pause;
mod layout;
mod memory;
mod message_limit;
mod offer;
mod receiver;
mod send_request;
mod sender;
mod side_store;
mod tickets;

pub use any_source::{AnyLook, SendersLeft};
pub(crate) use memory::DroppedQueue;
pub use memory::ReceiveQueueAddress;
pub use message_limit::{MessageLimit, MessageLimitAddress, MessagePermits};
pub(crate) use offer::Offers;
pub use receiver::{Arrival, ReceiveQueue, TakenMessage, Wanted};
pub use send_request::PendingSendAny;
pub use sender::ReceiveQueueSender;

#[doc(hidden)]
pub use memory::ReceiveQueueOptions;
