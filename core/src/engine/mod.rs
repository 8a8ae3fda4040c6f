//! The engine: ordered operations, command queues, active messages, and waiting.

mod active_message;
mod command_queue;
pub mod executor;
mod fork_guard;
mod given_failures;
mod operation;
mod registration;
mod sync;
pub mod trace;
mod user_operators;
mod wait;
mod worker;

pub use active_message::{
    CallContext, Handler, HandlerEntry, HandlerTable, LongReply, PendingCall, ReplyValue, ValueShape,
    WhenFull, running_handler,
};
#[cfg(loom)]
pub use active_message::{TestReplyLine, TestReplyLines};
pub use command_queue::{LocalQueue, QueueName, QueueStats, RepeatingQueue, SignalTarget};
pub use fork_guard::ForkGuard;
pub use operation::issue::Issued;
pub use operation::kind::{Local, Operation};
pub use operation::mapped_copy::CachePolicy;
pub use operation::order::{After, Handle};
pub use operation::set::{FAILURES_MAX, OPERATIONS_MAX};
pub use operation::start::Started;
pub use registration::Registration;
pub use sync::inline_flag::InlineFlag;
pub use sync::owner_lock;
pub use sync::revocable_buffer::{BufferUse, BufferView, RevocableBuffer};
pub use sync::strided_view::{StrideLayout, StridedView};
pub use sync::try_lock::TryLock;
pub use sync::versioned_words::VersionedWords;
pub use sync::work_queue::WorkQueue;
pub use user_operators::UserOperators;
pub use wait::alarm::{Alarm, AlarmHandler};
pub use wait::awaited::AwaitedCondition;
pub use wait::block_on::{block_on, block_until, may_spin, spun_in_vain, wait_in_call, waits_in_call};
pub use wait::condition::{Awaited, Condition, OneOf, WaitEvent, describe_awaited};
pub use wait::deadline::{ApartScope, CallScope, Deadline, Limit, LimitGuard, apart_from_call, in_one_call};
pub use wait::helper_control::{HelperControl, HelperScope, NodeHelper};
pub use wait::helper_thread::HELPER_THREAD;
#[cfg(not(loom))]
pub use wait::node_platform::NodePlatform;
pub use wait::platform::{Pause, Platform};
pub use wait::probe::{WaitProbe, WaitProbes, scoped_wait_probe, scoped_wait_probe_about, set_wait_probe};
pub use worker::{Agent, Effort, Worker};
