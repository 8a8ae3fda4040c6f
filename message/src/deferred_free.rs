//! Memory that this rank has dropped, and that peers may still use.
//!
//! | what is kept | until |
//! |---|---|
//! | an end of a [channel](crate::channel): its counter, and a receiver's ring | the other end says that it is gone |
//! | a [receive queue](crate::receive_queue): buffers, lines, counters | no sender has it open |
//! | a [directory entry](crate::slot::directory) whose context has ended | the peer has closed the bank, too |
//!
//! *Who looks.* The rank itself, at all that it keeps of a kind: when it drops one of that kind, and before it makes
//! another channel or queue. A look waits for no peer. Nobody looks in between, so a drop by a peer costs this rank
//! nothing.
//!
//! *How much is kept.* What peers still had at the last look, and what they have let go since then: whoever makes and
//! drops again and again keeps only what peers hold. The bytes count as the rank's own until they are freed. What a
//! rank keeps when it leaves ends with its memory.
//!
//! Two other places free late, because they ask another question. What members of a communicator have made together is
//! freed by all at the same call, after they have told each other (`agreed_free.rs` in the crate `tasuki-collective`).
//! Addresses of freed memory get a new use after two barriers of the job (`registry.rs` in `tasuki-core`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Result;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::engine::{TryLock, Worker};

/// Something dropped that peers may still use.
pub(crate) trait Deferred {
    /// Returns the bytes that were counted for it.
    fn bytes(&self) -> u64 {
        0
    }

    /// Frees it if no peer uses it any more. Returns false if a peer may. Waits for no peer. One thread at a time.
    fn try_free(&self, worker: &Worker) -> Result<bool>;
}

/// What a rank keeps of one kind, and how much memory that kind takes.
#[derive(Debug)]
pub(crate) struct DeferredFree<T> {
    kept: Mutex<Vec<T>>,
    /// Taken while a thread looks. It is not the lock of the list: in the simulator a look takes time, in which another
    /// thread may need the list.
    looking: TryLock,
    /// Bytes of those in use and of those kept.
    bytes: AtomicU64,
}

impl<T> Default for DeferredFree<T> {
    fn default() -> DeferredFree<T> {
        DeferredFree { kept: Mutex::default(), looking: TryLock::default(), bytes: AtomicU64::new(0) }
    }
}

impl<T> DeferredFree<T> {
    fn kept(&self) -> MutexGuard<'_, Vec<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts memory of one that is in use.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stops to count memory that was freed while its owner is in use.
    pub(crate) fn subtract_bytes(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of those in use and of those kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps some that were dropped until a later look. Makes no call of the fabric, which would panic again in a
    /// simulated rank that is being killed.
    pub(crate) fn keep(&self, dropped: impl IntoIterator<Item = T>) {
        self.kept().extend(dropped);
    }

    /// Forgets all that is kept, because the rank has left.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.kept());
        drop(all); // not under the lock
    }
}

impl<T: Deferred> DeferredFree<T> {
    /// Frees some that were dropped, now or when no peer uses them any more.
    pub(crate) fn free(&self, worker: &Worker, dropped: impl IntoIterator<Item = T>) -> Result<()> {
        self.keep(dropped);
        self.sweep(worker)
    }

    /// Looks at all, and frees those that no peer uses any more. While another thread looks, a later call does. Error:
    /// the job is over, which frees everything.
    pub(crate) fn sweep(&self, worker: &Worker) -> Result<()> {
        let Some(_looking) = self.looking.try_lock() else { return Ok(()) };
        let all = std::mem::take(&mut *self.kept());
        for one in all {
            if one.try_free(worker)? {
                self.subtract_bytes(one.bytes());
            } else {
                self.keep([one]);
            }
        }
        Ok(())
    }
}
