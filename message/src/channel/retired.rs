//! Ends of channels that were dropped, and whose memory the other end may still use; and how much memory channels take.

use super::counter::OwnCounter;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::engine::Worker;

/// Memory that is freed when it is dropped.
pub type KeptMemory = Box<dyn Any + Send>;

/// An end that has told the other one that it is gone.
pub(super) struct Retired {
    /// The counter in which the other end says that it is gone, too: then its value is odd.
    counter: OwnCounter,
    bytes: u64,
    _memory: Option<KeptMemory>,
}

impl Retired {
    pub(super) fn new(counter: OwnCounter, bytes: u64, memory: Option<KeptMemory>) -> Retired {
        Retired { counter, bytes, _memory: memory }
    }
}

impl fmt::Debug for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retired").field("counter", &self.counter).finish_non_exhaustive()
    }
}

/// The channels of a rank.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    bytes: AtomicU64,
    retired: Mutex<Vec<Retired>>,
}

impl Channels {
    fn retired(&self) -> MutexGuard<'_, Vec<Retired>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract_bytes(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees an end, now or when the other one is gone.
    pub(super) fn retire(&self, worker: &Worker, end: Retired) {
        self.keep(end);
        self.sweep(worker);
    }

    /// Lets a later call free an end. Makes no call of the fabric, which would panic again in a simulated rank that is
    /// being killed.
    pub(super) fn keep(&self, end: Retired) {
        self.retired().push(end);
    }

    /// Frees the ends whose other end is gone.
    pub(crate) fn sweep(&self, worker: &Worker) {
        // Not under the lock: in the simulator a look takes time, in which another thread may need the lock.
        let all = std::mem::take(&mut *self.retired());
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|end| end.counter.read(worker) % 2 == 1);
        self.retired().extend(left);
        for end in gone {
            end.counter.free(worker);
            self.subtract_bytes(end.bytes);
        }
    }

    /// Returns the bytes of all channels.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Frees all, because the rank has left.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.retired());
        drop(all);
    }
}
