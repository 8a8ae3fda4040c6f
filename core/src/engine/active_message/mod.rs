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
//! posted. So only a caller outside of handlers can find a queue full, and it gets an error.
//!
//! **Order.** Calls of one rank through one call queue are posted in order, read in order, and run one at a time. The
//! posts of handlers pass through one deferred list for each level.

mod deferred_posts;
mod dispatch;
mod handler_table;
mod reply;
mod request;

pub use dispatch::CallContext;
pub use handler_table::{ArgumentSize, Handler, HandlerEntry, HandlerTable};
#[cfg(loom)]
pub use reply::{TestReplyLine, TestReplyLines};
pub use request::PendingCall;

use super::command_queue::{LocalQueue, QueueName};
use super::sync::try_lock::TryLock;
use super::sync::work_queue::WorkQueue;
use super::worker::Worker;
use crate::base::{Cause, Error, Rank, Result};
use crate::fabric::CommandWrite;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use deferred_posts::DeferredPost;
use dispatch::BufferFetch;
use reply::ReplyLines;
use std::sync::{Arc, Mutex};

/// Lines of each call queue.
const CALL_LINES: u64 = 256;
/// Lines of the queue into which handlers post commands.
const COMMAND_LINES: usize = 256;

/// The handlers of a rank, its call queues and its reply lines.
#[derive(Debug)]
pub(super) struct ActiveMessages {
    table: HandlerTable,
    /// The call queues. The index is the level.
    levels: Vec<CallLevel>,
    reply_lines: Arc<ReplyLines>,
    /// The queue for commands that handlers post, if any handler may post.
    commands: Option<Arc<LocalQueue>>,
    deferred_commands: WorkQueue<DeferredPost>,
    /// Replies that the fabric had no room for.
    unsent: WorkQueue<CommandWrite>,
    /// The signal that is poisoned when a call fails that has neither a reply nor effects.
    failures: u32,
    /// Held by the thread of the rank that runs handlers.
    running: TryLock,
    /// Memory for the buffer of a call. The thread that runs the handler takes it out meanwhile.
    buffer: Mutex<Vec<u64>>,
}

/// The call queue of one level.
#[derive(Debug)]
struct CallLevel {
    queue: LocalQueue,
    /// Calls of this level that handlers of this rank have made and that found no room yet.
    deferred: WorkQueue<DeferredPost>,
    /// The fetch of the buffer of the call at the head, if it has begun.
    fetch: Mutex<Option<BufferFetch>>,
}

impl Worker {
    /// Makes the call queues for these handlers, so that other ranks can call them. Called once, before the rank has
    /// allocated anything, so that the queues lie at the same offsets on all ranks. Returns a fingerprint of handlers
    /// and offsets. The caller has to check that it is equal on all ranks before any rank calls a handler.
    pub fn register_handlers(&self, table: HandlerTable) -> Result<u64> {
        let mut fingerprint = table.fingerprint();
        let mut levels = Vec::new();
        for level in 0..=table.depth() {
            let queue = self.lay_out_call_queue(CALL_LINES, level as u32)?;
            fingerprint = fingerprint.rotate_left(7) ^ queue.name().address().offset();
            levels.push(CallLevel { queue, deferred: WorkQueue::default(), fetch: Mutex::default() });
        }
        let reply_lines = Arc::new(self.make_reply_lines()?);
        let failures = self.registry().signal()?;
        fingerprint ^= u64::from(failures);
        let wanted = table.posts().then(|| self.make_queue(COMMAND_LINES, None)).transpose();
        let calls = ActiveMessages {
            table,
            levels,
            reply_lines,
            commands: wanted.map_err(Error::new)?,
            deferred_commands: WorkQueue::default(),
            unsent: WorkQueue::default(),
            failures,
            running: TryLock::default(),
            buffer: Mutex::default(),
        };
        self.set_calls(calls);
        Ok(fingerprint)
    }

    /// The number of the handler with that name. Fails if `returns` is given and the handler returns another number of
    /// bytes.
    pub fn handler(&self, name: &str, returns: Option<usize>) -> Result<u8, Cause> {
        match self.calls() {
            Some(calls) => calls.table.find(name, returns),
            None => HandlerTable::default().find(name, returns),
        }
    }

    /// A fingerprint of one handler, which differs if the handler differs between two ranks; 0: there is no such
    /// handler.
    pub fn handler_fingerprint(&self, number: usize) -> u64 {
        self.calls().map_or(0, |calls| calls.table.fingerprint_of(number))
    }

    /// Describes, for an error text, what has to be equal on all ranks of one handler.
    pub fn describe_handler(&self, number: usize) -> String {
        self.calls().map_or("none".into(), |calls| calls.table.described(number))
    }

    /// Checks that the handler exists and can be called with `len` bytes.
    #[inline]
    pub(super) fn check_handler(&self, handler: u8, len: u64) -> Result<(), Cause> {
        match self.calls() {
            Some(calls) => calls.table.check(handler, len).map(drop),
            None => HandlerTable::default().check(handler, len).map(drop),
        }
    }

    /// The first failure of a call of this rank that had neither a reply nor effects.
    pub fn call_failure(&self) -> Option<Cause> {
        let signal = GlobalAddress::new(self.rank(), signal_offset(self.calls()?.failures));
        self.commands().signal_control_at(signal)?.poisoned().map(|poison| poison.as_own_failure().cause())
    }

    /// Adds the name of a handler to a cause that holds its number. Both are the same on all ranks.
    pub(in crate::engine) fn name_handler(&self, cause: &mut Cause) {
        match cause {
            Cause::Poisoned { cause, .. } | Cause::Failed { cause, .. } => self.name_handler(cause),
            Cause::HandlerFailed { handler, name } => {
                if let Some(entry) = self.calls().and_then(|calls| calls.table.get(*handler)) {
                    name.clone_from(&entry.name);
                }
            }
            _ => {}
        }
    }

    /// The call queue of a rank for a level.
    #[inline]
    fn call_queue(&self, calls: &ActiveMessages, to: Rank, level: usize) -> QueueName {
        calls.levels[level].queue.name().on(to)
    }
}
