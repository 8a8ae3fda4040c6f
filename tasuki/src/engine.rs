//! What a program rarely names: the causes of errors, handles of queues and calls, figures of a job. Also the rule of
//! who moves work on that was begun.
//!
//! # Progress
//!
//! Work that was begun goes on in calls of the ranks that take part in it. A *call* here is any call of this crate that
//! waits for or tests anything, by any thread of the rank: it moves all unfinished work of the rank on. If it waits, it
//! also runs handlers that were called.
//!
//! | work | goes on in |
//! |---|---|
//! | put, get, copy, atomics, signals, in job memory ([`Job::alloc`](crate::Job::alloc)) | the call that makes them: the target does nothing |
//! | the same in memory that its owner registered ([`Job::register`](crate::Job::register)) | the call that makes them; for atomics, and where the kernel permits no access, a call of the owner |
//! | message of up to 48 bytes | the send, if its receive is posted; otherwise later calls of the sender |
//! | longer message | calls of both; of the sender only, if the receive is into job memory |
//! | message by [`send_any`](crate::Communicator::send_any), or to a [receive queue](crate::message::ReceiveQueue) | the send; the receiver does nothing before it receives. One that is longer than a buffer: the receive, while the send waits |
//! | channel | `commit`, `finish`, `release`; an end that is dropped before both ends were used is closed in a later call of its rank |
//! | nonblocking collective call | calls of each member, for its part: a member that computes delays those that need its values |
//! | plan | calls of each member, for its part; or, if its steps are commands, as commands do |
//! | command, fuzzy barrier | the call that raises the trigger, calls of any rank of the node, the node's helper |
//! | handler | calls of the called rank that wait, [`Job::serve`](crate::Job::serve) |
//!
//! Other threads can do this for a rank that computes:
//!
//! - A *helper* (`tasuki run --helper`). `node` is one thread that runs the commands of all ranks of the node. `rank`
//!   is one thread in each rank, which makes progress with everything and runs handlers. By default there is one for
//!   the node if a processor is free.
//! - A thread of the library that waits for requests while tasks of an executor await them, and after
//!   [`Job::serve_in_background`](crate::Job::serve_in_background).
//!
//! On the simulator, each rank has a helper that runs commands, as a network card would.

pub use crate::command::{Combine, Reducible};
pub use crate::handler::argument::{Argument, Outcome};
pub use crate::handler::reply::Reply;
pub use crate::job_info::{MemoryUsage, capabilities, fabric};
pub use crate::queue::{Posted, QueueStats, RemoteQueue};
pub use crate::request::{AnyRequest, Requests};
pub use crate::start::{Processes, Simulated};
pub use crate::tracing::Span;
/// What exactly has gone wrong, with its data.
///
/// ```
/// use std::time::Duration;
/// use tasuki::Slot;
/// use tasuki::engine::Cause;
/// tasuki::local(2, |job| {
///     let impatient = job.world().within(Duration::from_millis(1));
///     let error = impatient.recv(&mut [0_u64], job.rank_after(1), Slot(0)).expect_err("nobody has sent");
///     assert!(matches!(error.cause(), Cause::TimedOut { .. }));
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::Cause;
/// An error of any type, which [`Error::program`](crate::Error::program) takes.
///
/// ```
/// use tasuki::engine::ProgramError;
/// use tasuki::{Error, ErrorKind};
/// fn parse(text: &str) -> Result<u32, ProgramError> {
///     if text.is_empty() { Err("there is no number")? }
///     Ok(text.parse()?)
/// }
/// let failed = tasuki::local(1, |_| parse("").map_err(Error::program));
/// assert_eq!(failed.expect_err("there is none").kind(), ErrorKind::Program);
/// ```
#[doc(inline)]
pub use tasuki_core::base::ProgramError;
/// How much simulated ranks write on their standard error.
///
/// ```
/// use tasuki::Sim;
/// use tasuki::engine::LogLevel;
/// tasuki::sim(Sim::seed(7).ranks(2).log(LogLevel::Error), |job| job.barrier())?; // no warnings
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::log::Level as LogLevel;
/// What [`capabilities`] returns.
///
/// ```
/// use tasuki::engine::{Capabilities, capabilities};
/// tasuki::local(2, |job| {
///     let can: Capabilities = capabilities(job);
///     assert!(can.map && can.third_party); // threads reach each other's memory
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::fabric::Capabilities;
