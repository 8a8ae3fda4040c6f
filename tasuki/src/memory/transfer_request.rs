//! Nonblocking puts and gets that own their buffer and return it.
#![allow(unsafe_code)]
//! Unsafe: the engine gets a pointer to the buffer's heap block and keeps the block alive through an `Arc` until the
//! operation has ended; nothing else accesses the block before.

use crate::job::Job;
use crate::onesided::{After, Handle};
use crate::{GlobalPtr, Pod, Result};
use std::cell::UnsafeCell;
use std::sync::Arc;
use tasuki_core::engine::{Local, Operation, Worker};

/// A put or get in flight. It owns its vector; [`TransferRequest::wait`] returns the vector. If the request is dropped, the
/// operation ends by itself and the vector is freed after that. If the request is forgotten, the vector leaks. In
/// neither case does a peer access freed memory.
#[must_use = "wait() returns the buffer"]
#[derive(Debug)]
pub struct TransferRequest<T: Pod> {
    worker: Arc<Worker>,
    handle: Handle,
    buffer: Arc<Buffer<T>>,
}

#[derive(Debug)]
struct Buffer<T>(UnsafeCell<Vec<T>>);

// SAFETY: only the engine accesses the vector until the operation has ended, and only `wait` after that.
unsafe impl<T: Pod> Send for Buffer<T> {}
// SAFETY: only the engine accesses the vector until the operation has ended, and only `wait` after that.
unsafe impl<T: Pod> Sync for Buffer<T> {}

impl Job {
    /// Issues a put of `values`, which [`TransferRequest::wait`] returns. The put starts when `after` permits it. Errors and
    /// cost: those of [`Job::put`].
    pub fn iput<T: Pod>(&self, to: GlobalPtr<T>, values: Vec<T>, after: After) -> Result<TransferRequest<T>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Put { to: to.address(), from: local, len })
    }

    /// Issues a get that fills `values`, which [`TransferRequest::wait`] returns. The get starts when `after` permits it.
    /// Errors and cost: those of [`Job::put`].
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let data = job.alloc::<u8>(3)?;
    ///     let request = job.iget(data.pointer(), vec![9; 3], tasuki::onesided::After::Nothing)?;
    ///     assert_eq!(request.wait()?, [0, 0, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iget<T: Pod>(
        &self,
        from: GlobalPtr<T>,
        values: Vec<T>,
        after: After,
    ) -> Result<TransferRequest<T>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Get { from: from.address(), to: local, len })
    }

    fn issue<T: Pod>(
        &self,
        mut values: Vec<T>,
        after: After,
        action: impl FnOnce(Local) -> Operation,
    ) -> Result<TransferRequest<T>> {
        let local = Local(values.as_mut_ptr().cast());
        let buffer = Arc::new(Buffer(UnsafeCell::new(values)));
        // SAFETY: the engine keeps `buffer` alive until the operation has ended; nothing else accesses the vector
        // before.
        let issued = unsafe { self.worker.issue_kept(action(local), after, Some(buffer.clone()))? };
        Ok(TransferRequest { worker: self.worker.clone(), handle: issued.handle, buffer })
    }
}

impl<T: Pod> TransferRequest<T> {
    /// The operation's handle, with which other operations can be ordered after it.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns true if the operation has ended. Moves operations on.
    pub fn is_finished(&self) -> bool {
        !self.worker.is_pending_exactly(self.handle)
    }

    /// Waits until the operation has ended and returns the vector. Errors: the operation failed.
    pub fn wait(self) -> Result<Vec<T>> {
        self.worker.complete_exactly(self.handle)?;
        // SAFETY: the operation has ended, so the engine no longer accesses the vector.
        Ok(unsafe { std::mem::take(&mut *self.buffer.0.get()) })
    }
}
