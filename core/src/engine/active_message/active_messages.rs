//! The active messages of a rank: what it keeps of its handlers, and what a handler may do while it runs.

use super::block_pool::{BlockPool, Purpose};
use super::deferred_list::{DeferredList, DeferredPost};
use super::failed_calls::FailedCalls;
use super::handler_table::HandlerTable;
use super::reply_lines::ReplyLines;
use crate::base::sync::{AtomicU32, Ordering};
use crate::base::{Cause, Rank};
use crate::engine::RevocableBuffer;
use crate::engine::command_queue::{LocalQueue, QueueName};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::worker::Worker;
use crate::fabric::CommandWrite;
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{Args, BlockBytes, Call, ReplyAddress};
use crate::queue::inline_data::Inline;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The handlers of a rank, its call queues and its reply lines.
#[derive(Debug)]
pub(in crate::engine) struct ActiveMessages {
    pub(super) table: HandlerTable,
    /// The call queues. The index is the level.
    pub(super) levels: Vec<CallLevel>,
    pub(super) reply_lines: Arc<ReplyLines>,
    /// The queue for commands that handlers post, if any handler may post.
    pub(super) commands: Option<Arc<LocalQueue>>,
    pub(super) deferred_commands: DeferredList<DeferredPost>,
    /// Replies that the fabric had no room for.
    pub(super) unsent: DeferredList<CommandWrite>,
    /// Arguments and results that are too long for a line.
    pub(super) block_pool: BlockPool,
    /// For each rank, a bit for each level on which this rank has posted calls to it since the last flush.
    pub(super) posted: Box<[AtomicU32]>,
    /// Failures of calls that no reply and no effect has reported.
    pub(super) failed: FailedCalls,
    /// Held by the thread of the rank that runs handlers.
    pub(super) running: TryLock,
    /// Memory for the buffer of a call. The thread that runs the handler takes it out meanwhile.
    pub(super) buffer: Mutex<Vec<u64>>,
}

/// The call queue of one level.
#[derive(Debug)]
pub(super) struct CallLevel {
    pub(super) queue: LocalQueue,
    /// Calls of this level that handlers of this rank have made and that found no room yet.
    pub(super) deferred: DeferredList<DeferredPost>,
    /// The fetch of the buffer of the call at the head, if it has begun.
    pub(super) fetch: Mutex<Option<BufferFetch>>,
}

/// The fetch of a buffer for a handler.
#[derive(Debug)]
pub(super) struct BufferFetch {
    /// The operation that fetches it. `None`: the fabric had no room.
    pub(super) operation: Option<u64>,
    pub(super) revocable: Arc<RevocableBuffer>,
}

impl ActiveMessages {
    /// Returns true if a call has arrived.
    #[inline]
    pub(super) fn have_arrived(&self) -> bool {
        self.levels.iter().any(|level| {
            let queue = level.queue.queue();
            let position = queue.reader().read();
            queue.line(position).holds(position)
        })
    }

    /// Returns true if no post waits for room.
    #[inline]
    pub(super) fn has_nothing_deferred(&self) -> bool {
        self.levels.iter().all(|level| level.deferred.is_empty())
            && self.deferred_commands.is_empty()
            && self.unsent.is_empty()
    }

    /// The call queue of a rank for a level.
    #[inline]
    pub(super) fn call_queue(&self, to: Rank, level: usize) -> QueueName {
        self.levels[level].queue.name().on(to)
    }

    /// Records that this thread has posted a call without a reply, so that a flush waits for it.
    ///
    /// The caller has written the call already. A flush clears the bits before it posts, so it posts behind every call
    /// whose bit it has cleared: the fence of the post is between the call and this load.
    #[inline(always)]
    pub(super) fn record_post(&self, to: Rank, level: usize) {
        let (levels, bit) = (&self.posted[to.index()], 1 << level);
        if levels.load(Ordering::Relaxed) & bit == 0 {
            levels.fetch_or(bit, Ordering::SeqCst);
        }
    }

    pub(super) fn buffer(&self) -> MutexGuard<'_, Vec<u64>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallLevel {
    pub(super) fn fetch(&self) -> MutexGuard<'_, Option<BufferFetch>> {
        self.fetch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The context of a running handler: who called it, and what it may post.
#[derive(Debug)]
pub struct CallContext<'m> {
    pub(super) worker: &'m Worker,
    pub(super) calls: &'m ActiveMessages,
    pub(super) from: Rank,
    pub(super) level: usize,
    /// Number of calls and commands that it may still post.
    pub(super) left: Cell<usize>,
    /// True if the caller waits for the handler's result.
    pub(super) wants_reply: bool,
    /// The handler's result, if it is too long for a reply line.
    pub(super) long_result: Cell<Option<BlockBytes>>,
    /// True if the handler has panicked, which the panic hook has printed.
    pub(super) has_panicked: Cell<bool>,
}

impl<'m> CallContext<'m> {
    /// The worker of the rank on which it runs.
    pub fn worker(&self) -> &'m Worker {
        self.worker
    }

    /// The rank that called.
    pub fn from(&self) -> Rank {
        self.from
    }

    /// Calls a handler one level below, on any rank.
    ///
    /// Errors: there is no such rank or handler; this handler's `follow_ups` do not allow the call.
    pub fn call(&self, to: Rank, handler: u8, args: &[u8]) -> Result<(), Cause> {
        self.worker.check_rank(to)?;
        self.calls.table.check(handler, args.len() as u64)?;
        let Some(level) = self.level.checked_sub(1) else {
            return Err(Cause::Argument("calls deeper than its follow_ups allow".into()));
        };
        self.count()?;
        let args = match Inline::of(args) {
            Some(args) => Args::Inline(args),
            None => Args::InBlock(self.fill(args)?),
        };
        let call = Call { peer: self.worker.rank(), handler, args, reply: ReplyAddress::NONE };
        let (queue, deferred) = (self.calls.call_queue(to, level), &self.calls.levels[level].deferred);
        let posted = EncodedCommand::of_call(call, &[None, None])
            .and_then(|call| self.worker.post_or_defer(deferred, queue, &call));
        match (&posted, args) {
            (Ok(()), _) => self.calls.record_post(to, level),
            (Err(_), Args::InBlock(bytes)) => self.calls.block_pool.take_back(bytes),
            _ => {}
        }
        posted
    }

    /// Sets the result of the handler, which is too long for a reply line.
    pub fn set_long_result(&self, bytes: &[u8]) -> Result<(), Cause> {
        if self.wants_reply {
            self.long_result.set(Some(self.fill(bytes)?));
        }
        Ok(())
    }

    /// Lends bytes of a handler.
    fn fill(&self, bytes: &[u8]) -> Result<BlockBytes, Cause> {
        let filled = self.calls.block_pool.fill(Purpose::ByHandler, bytes, self.worker.registry())?;
        filled.ok_or_else(|| Cause::Bug("memory of a handler has no limit".into()))
    }

    /// Posts a command without a trigger that calls no handler.
    ///
    /// Errors: the command has a trigger or is a call; it is wrong in itself; this handler's `follow_ups` do not allow
    /// it.
    pub fn post(&self, command: &EncodedCommand) -> Result<(), Cause> {
        if command.triggers()[0].is_some() || command.call().is_some() {
            let text = "a handler posts commands without triggers, and calls handlers by call()";
            return Err(Cause::Argument(text.into()));
        }
        self.worker.check_command(command, false)?;
        self.count()?;
        let none = || Cause::Bug("a handler posts a command, but the rank has no queue for it".into());
        let queue = self.calls.commands.as_ref().ok_or_else(none)?.name();
        self.worker.post_or_defer(&self.calls.deferred_commands, queue, command)
    }

    /// Counts one more post.
    fn count(&self) -> Result<(), Cause> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(Cause::Argument("posts more in one run than its follow_ups allow".into()));
        };
        self.left.set(left);
        Ok(())
    }
}
