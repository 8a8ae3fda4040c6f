//! Registering the handlers of a job at a rank.

use super::active_messages::{ActiveMessages, CallLevel};
use super::block_pool::BlockPool;
use super::deferred_list::DeferredList;
use super::failed_calls::FailedCalls;
use super::handler_table::{HandlerTable, NO_HANDLERS};
use super::reply_lines::ReplyLines;
use crate::base::sync::AtomicU32;
use crate::base::{Error, Result};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::worker::Worker;
use crate::queue::layout;
use std::sync::{Arc, Mutex};

/// Lines of each call queue.
const CALL_LINES: u64 = 256;
/// Lines of the queue into which handlers post commands.
const COMMAND_LINES: usize = 256;

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
            levels.push(CallLevel { queue, deferred: DeferredList::default(), fetch: Mutex::default() });
        }
        let reply_lines = Arc::new(ReplyLines::allocate(self.rank(), self.registry())?);
        let wanted = table.posts().then(|| self.make_queue(COMMAND_LINES, None)).transpose();
        let calls = ActiveMessages {
            table,
            levels,
            reply_lines,
            commands: wanted.map_err(Error::new)?,
            deferred_commands: DeferredList::default(),
            unsent: DeferredList::default(),
            block_pool: BlockPool::new(self.rank()),
            posted: (0..self.size()).map(|_| AtomicU32::new(0)).collect(),
            failed: FailedCalls::default(),
            running: TryLock::default(),
            buffer: Mutex::default(),
        };
        self.set_calls(calls);
        Ok(fingerprint)
    }

    /// The handlers of the job. They are the same on all ranks.
    #[inline]
    pub fn handler_table(&self) -> &HandlerTable {
        self.calls().map_or(&NO_HANDLERS, |calls| &calls.table)
    }

    /// Bytes of the call queues of this rank.
    pub fn call_queue_bytes(&self) -> u64 {
        let levels = self.calls().map_or(&[][..], |calls| &calls.levels);
        levels.iter().map(|level| layout::bytes(level.queue.info().capacity)).sum()
    }

    /// Bytes of job memory that hold, or may hold, long arguments and results of handlers.
    pub fn block_bytes(&self) -> u64 {
        self.calls().map_or(0, |calls| calls.block_pool.bytes(self.registry()))
    }
}
