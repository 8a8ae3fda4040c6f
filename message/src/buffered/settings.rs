//! Calls by which a program controls its rank's send buffer.

use crate::context::Context;
use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use crate::slot::bank::SlotBank;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::Rank;
use tasuki_core::base::Result;
use tasuki_core::engine::{Condition, WaitEvent, Worker, in_one_call};
use tasuki_core::node::node_state::RankStage;

impl Context {
    /// Sets the send buffer. A send whose receive is not posted after `after` copies its message and returns; `None`:
    /// never. `capacity`: bytes of all buffered messages, each with its overhead. Waits until the buffer is empty. If only messages to ranks
    /// that have left remain, they are discarded and the call fails.
    pub fn set_send_buffer(&self, capacity: u64, after: Option<Duration>) -> Result<()> {
        let call = || "set_send_buffer: waiting until it is empty".to_string();
        self.wait_until_sent(None, &call)?;
        let left = self.progress.buffered();
        if !left.is_empty() {
            return Err(self.progress.give_up(&self.worker, &left, call));
        }
        self.progress.buffered.set(capacity, after);
        Ok(())
    }

    /// Waits until the send buffer has no message that can still be sent. `pair`: looks only at the messages of the
    /// pair with that first bank.
    pub(crate) fn wait_until_sent(
        &self,
        pair: Option<&Arc<SlotBank>>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let (worker, progress, pair) = (self.worker.clone(), self.progress.clone(), pair.cloned());
        let emptied = Arc::new(Emptied { worker, progress, pair });
        let _call = in_one_call();
        while !emptied.is_it() {
            let condition = Condition::Event(emptied.clone());
            self.worker.wait(&condition, self.worker.call_deadline(), call)?;
            self.worker.progress();
        }
        Ok(())
    }

    /// Sets the capacity of the send buffer, before anything was sent, for copies of short messages. 0: all sends wait.
    pub fn set_send_buffer_capacity(&self, capacity: u64) {
        self.progress.buffered.set_capacity(capacity);
    }

    /// Sends buffered messages whose receives are posted now. Returns how many were sent, and how many remain.
    pub fn check_send_buffer(&self) -> Result<(usize, usize)> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || "check_send_buffer".into()))?;
        let before = self.progress.buffered().len();
        self.worker.progress();
        self.progress.advance_all(&self.worker);
        let after = self.progress.buffered().len();
        Ok((before.saturating_sub(after), after))
    }

    /// Returns the bytes of buffered messages, each with its overhead.
    pub fn buffered_bytes(&self) -> u64 {
        self.progress.buffered.used()
    }
}

/// Waits until the send buffer has no message that can still be sent, or this rank has work.
#[derive(Debug)]
struct Emptied {
    worker: Arc<Worker>,
    progress: Arc<ProgressEngine>,
    /// The first bank of the pair whose messages count; `None`: those of all pairs.
    pair: Option<Arc<SlotBank>>,
}

impl Emptied {
    fn is_it(&self) -> bool {
        let counts = |message: &MessageOp| {
            self.pair.as_ref().is_none_or(|pair| Arc::ptr_eq(pair, message.bank.first_bank()))
        };
        let left = self.progress.first_buffered_of(counts);
        left.iter().all(|message| message.cannot_complete(&self.worker))
    }
}

impl WaitEvent for Emptied {
    fn happened(&self) -> bool {
        use tasuki_core::engine::Agent;
        self.progress.has_work() || self.is_it()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }
}
