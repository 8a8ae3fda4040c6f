//! Command queues: posting commands, and which rank runs a queue when.
//!
//! A queue and the signals that its commands wait for are in the memory of the queue's *owner*. A rank that changes
//! something which may release a command makes sure that a rank runs the queue, at the latest before it returns to the
//! program:
//!
//! | event | rank that runs the queue |
//! |---|---|
//! | a command is posted, a signal is raised | the owner, if it *polls* its queues; else the rank that did it |
//! | an effect is about to raise a signal for which one queue waits | the rank that performs it, if the lease is free |
//! | an in-flight command has ended | the rank that ran it |
//! | a thread of the owner begins to wait, and repeatedly while it waits | that thread |
//! | the last waiting thread of the owner stops polling | that thread, once more |
//!
//! A rank that runs a queue takes its lease. If the lease is held, the rank marks it, and the holder runs the queue
//! again (`queue/lease`). The holder runs short actions itself (`run/short_action`), and a long one after it has
//! released the lease (`run/long_steps`).
//!
//! If other ranks cannot map the queues, only the owner runs them. Commands that another rank has to run are offloaded
//! to it (`offload`), into a queue that each rank has for this (`offload/inbox`).

mod command_queues;
mod lifecycle;
mod local_queue;
mod lookup;
mod offload;
mod post;
mod queue_name;
mod remote_post;
mod repeating;
mod run;
mod trace_events;

pub(super) use command_queues::CommandQueues;
pub use local_queue::{LocalQueue, QueueStats};
pub(super) use lookup::ResolvedQueue;
pub use queue_name::QueueName;
pub use repeating::{RepeatingQueue, SignalTarget};
pub(super) use run::poll::QueuePoller;
