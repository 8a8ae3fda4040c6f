//! Receive queues that were dropped, and whose memory senders may still use.

use crate::receive_queue::memory::QueueShare;
use crate::slot::arena;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::engine::Worker;

/// A dropped queue that senders may have open.
#[derive(Debug)]
pub(crate) struct RetiredQueue {
    pub(crate) shares: Vec<QueueShare>,
    pub(crate) units: Vec<u32>,
    /// The offset of its local memory; a limit has none.
    pub(crate) local: Option<u64>,
    /// Bytes of that memory and of the units.
    pub(crate) bytes: u64,
}

/// The dropped queues of a rank. Their memory is freed when all senders were dropped, too.
#[derive(Debug, Default)]
pub(crate) struct RetiredQueues {
    queues: Mutex<Vec<RetiredQueue>>,
    /// Bytes at this rank of all its queues, of those that were dropped as long as they are not freed.
    bytes: AtomicU64,
}

impl RetiredQueues {
    fn lock(&self) -> MutexGuard<'_, Vec<RetiredQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the buffers and descriptions of all queues of this rank.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts the memory of a new queue.
    pub(crate) fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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
            queue.local.map_or(Ok(()), |local| worker.registry().free(local))?;
            self.bytes.fetch_sub(queue.bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}
