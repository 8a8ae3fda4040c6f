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

mod alarm;
mod arena;
mod berth;
mod blocking;
mod call;
mod closing;
mod context;
mod debt;
mod directory;
mod follow;
mod holding;
mod leaving;
mod mark;
mod occupancy;
mod operation;
mod page;
mod place;
mod pump;
mod queue;
mod receiving;
mod request;
mod ring;
mod sending;
mod sharing;
mod spool;
mod spooling;
mod staging;
mod standing;
mod straight;
mod strays;
mod taking;
mod way;
mod words;

pub use context::{Context, Posted, Received, Sent, SentPage};
pub use debt::Debt;
pub use follow::Follower;
pub use operation::Operation;
pub use place::Place;
pub use pump::Pump;
pub use request::{Incoming, Outgoing};
pub use standing::TURNS;
pub use words::SHORT_MAX;
