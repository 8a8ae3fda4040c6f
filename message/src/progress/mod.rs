//! Progress: operations that did not end at once, and what advances them.
//!
//! ```text
//! engine        all operations of a rank               continuation  what runs when signals have been raised
//! operation     one send or receive                    waker_thread  wakes the tasks of futures
//! pending       the queue of those that may take a step  watch_state  whether that thread runs and looks again
//! awaited       conditions that tasks await            poll_spin     the spin of a poll before it registers
//! finalize      what a rank does before it leaves      drain         messages that it must deliver before
//! ```

mod awaited;
mod continuation;
mod drain;
pub(crate) mod engine;
pub(crate) mod finalize;
pub(crate) mod operation;
mod pending;
pub(crate) mod poll_spin;
pub(crate) mod waker_thread;
mod watch_state;

pub use continuation::Continuation;
pub use engine::ProgressEngine;
pub use finalize::FinalizeHook;
pub use operation::MessageOp;
