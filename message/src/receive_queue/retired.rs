//! Receive queues that were dropped, and whose memory senders may still use.

use crate::receive_queue::memory::QueueShare;
use crate::slot::arena;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::engine::Worker;

/// A dropped queue that senders may have open.
#[derive(Debug)]
pub(crate) struct RetiredQueue {
    pub(crate) shares: Vec<QueueShare>,
    pub(crate) units: Vec<u32>,
    pub(crate) local: u64,
}

/// The dropped queues of a rank. Their memory is freed when all senders were dropped, too.
#[derive(Debug, Default)]
pub(crate) struct RetiredQueues(Mutex<Vec<RetiredQueue>>);

impl RetiredQueues {
    fn lock(&self) -> MutexGuard<'_, Vec<RetiredQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, queue: RetiredQueue) {
        self.lock().push(queue);
    }

    /// Frees the queues that no sender has open.
    pub(crate) fn free(&self, worker: &Worker) -> Result<()> {
        let all = std::mem::take(&mut *self.lock());
        for queue in all {
            let senders = queue.shares.iter().map(|share| share.counters(worker).senders());
            if senders.sum::<Result<u64>>()? != 0 {
                self.lock().push(queue);
                continue;
            }
            for share in &queue.shares {
                share.counters(worker).free()?;
            }
            queue.units.iter().try_for_each(|&unit| arena::give_back(worker, worker.rank(), unit))?;
            worker.registry().free(queue.local)?;
        }
        Ok(())
    }
}
