//! Active messages: handlers are functions that were named when the job started. Any rank may call a handler of any
//! rank.
//!
//! A rank with handlers has one *call queue* for each *level*, which is the number of levels of calls that a call may
//! still lead to. The caller posts into the call queue whose level is the handler's depth. A handler that calls posts
//! into the call queue one level below, on any rank, and so on. Waiting threads of the rank and its helper read the
//! call queues and run the handlers, one at a time. Call queues are rings of commands (`queue/layout`). They need no
//! lease, because only the process of their own rank reads them.
//!
//! **No deadlock.** A handler runs only when this process has room, in the *deferred* list of the level
//! below, for everything that the handler may post. An entry leaves the list when its destination has room. Calls of
//! level 0 post no calls, so their queues always drain. If the queues of level `n` drain, the deferred lists for them
//! drain, so calls of level `n + 1` find room and run. Replies go to reply lines that were taken before the call was
//! posted. So only a caller outside of handlers can find a queue full. It runs handlers of its own rank until there is
//! room, or gets an error.
//!
//! **Order.** Calls of one rank through one call queue are posted in order, read in order, and run one at a time. The
//! posts of handlers pass through one deferred list for each level. So a call that a flush posts to a queue runs when
//! all calls of the same rank there have run.
//!
//! **Long values.** Arguments and results that do not fit into a line lie in blocks of the rank that wrote them
//! (`block_pool`). The rank that reads them gives the block back by writing its first line.

mod active_messages;
mod block_pool;
mod deferred_list;
mod deferred_posts;
mod dispatch;
mod failed_calls;
mod flush;
mod handler_table;
mod register;
mod reply;
mod reply_lines;
mod request;

pub(super) use active_messages::ActiveMessages;
pub use active_messages::CallContext;
pub use dispatch::running_handler;
pub use handler_table::{Handler, HandlerEntry, HandlerTable, ValueShape};
#[cfg(loom)]
pub use reply_lines::{TestReplyLine, TestReplyLines};
pub use request::{LongReply, PendingCall, ReplyValue, WhenFull};
