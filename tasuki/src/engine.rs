//! What a program rarely names: the causes of errors, handles of queues and calls, figures of a job.

pub use crate::command::{Combine, Reducible};
pub use crate::handler::argument::{Argument, Outcome};
pub use crate::handler::reply::Reply;
pub use crate::job_info::{MemoryUsage, capabilities, fabric};
pub use crate::queue::{Posted, QueueStats, RemoteQueue};
pub use crate::request::{AnyRequest, Requests};
pub use crate::start::{Processes, Simulated};
pub use crate::tracing::Span;
#[doc(inline)]
pub use tasuki_core::base::log::Level as LogLevel;
#[doc(inline)]
pub use tasuki_core::base::{Cause, ProgramError};
#[doc(inline)]
pub use tasuki_core::fabric::Capabilities;
