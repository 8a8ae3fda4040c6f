//! What is measured: a file for each case or group of cases. They reach the library through the crate `tasuki` only.
//!
//! ```text
//! put_latency, message_latency, message_rate, remote_access    words between two ranks
//! bandwidth/           blocks between two ranks; buffer_state: which buffers, hot or cold
//! handler_call         a handler of the other rank is called
//! queue_commands       commands are posted, and start each other
//! queue_contention     many ranks post to one queue
//! oversubscription     two ranks exchange messages while others wait on their processors
//! collective/          collective calls and plans
//! overlap/             work beside copies and collectives
//! memory/              bytes that a rank takes
//! whole_job/           start, idle time and end of jobs
//! pointer_chase        the order in which remote words are visited
//! ```

pub(crate) mod bandwidth;
pub(crate) mod buffer_state;
pub(crate) mod collective;
pub(crate) mod handler_call;
pub(crate) mod memory;
pub(crate) mod message_latency;
pub(crate) mod message_rate;
pub(crate) mod overlap;
pub(crate) mod oversubscription;
pub(crate) mod pointer_chase;
pub(crate) mod put_latency;
pub(crate) mod queue_commands;
pub(crate) mod queue_contention;
pub(crate) mod remote_access;
pub(crate) mod whole_job;
