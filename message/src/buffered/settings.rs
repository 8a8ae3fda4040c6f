//! The spool of a rank, as its program sees it.

use crate::context::Context;
use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::Rank;
use tasuki_core::base::Result;
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};

impl Context {
    /// Lets sends whose receive has not been posted after so long copy their message and return; never, if that is
    /// none. `capacity`: bytes of all such messages. Waits until the spool is empty. If what remains in it is for ranks
    /// that have left, that is given up, with an error.
    pub fn set_send_buffer(&self, capacity: u64, after: Option<Duration>) -> Result<()> {
        let empty = Arc::new(Emptied { worker: self.worker.clone(), progress: self.progress.clone() });
        let call = || "set_send_buffer: waiting until it is empty".to_string();
        loop {
            let left = self.progress.first_buffered();
            if left.is_empty() {
                break;
            }
            if left.iter().all(|message| message.cannot_complete(&self.worker)) {
                return Err(self.progress.give_up(&self.worker, &self.progress.buffered(), call));
            }
            let condition = Condition::Event(empty.clone());
            self.worker.wait(&condition, None, &call)?;
            self.worker.progress();
        }
        self.progress.buffered.set(capacity, after);
        Ok(())
    }

    /// Sends what is in the spool and whose receive is posted now: how many messages went, and how many remain.
    pub fn check_send_buffer(&self) -> Result<(usize, usize)> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || "check_send_buffer".into()))?;
        let before = self.progress.buffered().len();
        self.worker.progress();
        self.progress.advance_all(&self.worker);
        let after = self.progress.buffered().len();
        Ok((before.saturating_sub(after), after))
    }

    /// Bytes in the spool.
    pub fn buffered_bytes(&self) -> u64 {
        self.progress.buffered.used()
    }
}

/// That the spool is empty, or something in it can go.
#[derive(Debug)]
struct Emptied {
    worker: Arc<Worker>,
    progress: Arc<ProgressEngine>,
}

impl WaitEvent for Emptied {
    fn happened(&self) -> bool {
        use tasuki_core::engine::Agent;
        let cannot_complete = |message: &Arc<MessageOp>| message.cannot_complete(&self.worker);
        self.progress.has_work() || self.progress.first_buffered().iter().all(cannot_complete)
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        None
    }
}
