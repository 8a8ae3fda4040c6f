//! Registering the handlers of a job at a rank.

use super::active_messages::{ActiveMessages, CallLevel};
use super::deferred_list::DeferredList;
use super::handler_table::{HandlerTable, NO_HANDLERS};
use super::reply_lines::ReplyLines;
use crate::base::{Cause, Error, Result};
use crate::engine::sync::try_lock::TryLock;
use crate::engine::worker::Worker;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
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
        let failures = self.registry().signal()?;
        fingerprint ^= u64::from(failures);
        let wanted = table.posts().then(|| self.make_queue(COMMAND_LINES, None)).transpose();
        let calls = ActiveMessages {
            table,
            levels,
            reply_lines,
            commands: wanted.map_err(Error::new)?,
            deferred_commands: DeferredList::default(),
            unsent: DeferredList::default(),
            failures,
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

    /// The first failure of a call of this rank that had neither a reply nor effects.
    pub fn call_failure(&self) -> Option<Cause> {
        let signal = GlobalAddress::new(self.rank(), signal_offset(self.calls()?.failures));
        self.commands().signal_control_at(signal)?.poisoned().map(|poison| poison.as_own_failure().cause())
    }
}
