//! An end of a channel that was dropped, and whose memory the other end may still use.

use super::counter::OwnCounter;
use crate::deferred_free::Deferred;
use std::any::Any;
use std::fmt;
use tasuki_core::base::Result;
use tasuki_core::engine::Worker;

/// Memory that is freed when it is dropped.
pub type KeptMemory = Box<dyn Any + Send>;

/// An end that has told the other one that it is gone.
pub(crate) struct DroppedEnd {
    /// The counter in which the other end says that it is gone, too: then its value is odd.
    counter: OwnCounter,
    bytes: u64,
    _memory: Option<KeptMemory>,
}

impl DroppedEnd {
    pub(super) fn new(counter: OwnCounter, bytes: u64, memory: Option<KeptMemory>) -> DroppedEnd {
        DroppedEnd { counter, bytes, _memory: memory }
    }
}

impl Deferred for DroppedEnd {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn try_free(&self, worker: &Worker) -> Result<bool> {
        let is_other_gone = self.counter.read(worker) % 2 == 1;
        if is_other_gone {
            self.counter.free(worker);
        }
        Ok(is_other_gone)
    }
}

impl fmt::Debug for DroppedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DroppedEnd").field("counter", &self.counter).finish_non_exhaustive()
    }
}
