//! Nonblocking transfers that own their buffer and give it back.
#![allow(unsafe_code)]
//! Unsafe: a buffer's heap block is named to the engine by pointer and kept alive by it through an `Arc` until the
//! operation has ended; nobody touches the block before.

use crate::job::Job;
use crate::{After, GlobalPtr, Handle, Pod, Result};
use std::cell::UnsafeCell;
use std::sync::Arc;
use tasuki_core::engine::{Local, Operation, Worker};

/// A put or get under way. It owns its vector; [`Request::wait`] gives it back. Dropping it lets the operation end
/// by itself and the vector go then; forgetting it leaks the vector; neither lets anyone write into freed memory.
#[must_use = "the buffer comes back from wait()"]
#[derive(Debug)]
pub struct Request<T: Pod> {
    worker: Arc<Worker>,
    handle: Handle,
    buffer: Arc<Buffer<T>>,
}

#[derive(Debug)]
struct Buffer<T>(UnsafeCell<Vec<T>>);

// SAFETY: the vector is touched by the engine until the operation has ended, and by `wait` after that.
unsafe impl<T: Pod> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Buffer<T> {}

impl Job {
    /// Issues a put of `values`, which come back from [`Request::wait`]. Errors and cost as for [`Job::put`].
    pub fn iput<T: Pod>(&self, to: GlobalPtr<T>, values: Vec<T>, after: After) -> Result<Request<T>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Put { to: to.address(), from: local, len })
    }

    /// Issues a get that fills `values`, which come back from [`Request::wait`].
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let data = job.alloc::<u8>(3)?;
    ///     let request = job.iget(data.pointer(), vec![9; 3], tasuki::After::Nothing)?;
    ///     assert_eq!(request.wait()?, [0, 0, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iget<T: Pod>(&self, from: GlobalPtr<T>, values: Vec<T>, after: After) -> Result<Request<T>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Get { from: from.address(), to: local, len })
    }

    fn issue<T: Pod>(
        &self,
        mut values: Vec<T>,
        after: After,
        action: impl FnOnce(Local) -> Operation,
    ) -> Result<Request<T>> {
        let local = Local(values.as_mut_ptr().cast());
        let buffer = Arc::new(Buffer(UnsafeCell::new(values)));
        // SAFETY: the engine keeps `buffer` until the operation has ended; nobody touches the vector before.
        let issued = unsafe { self.worker.issue_kept(action(local), after, Some(buffer.clone()))? };
        Ok(Request { worker: self.worker.clone(), handle: issued.handle, buffer })
    }
}

impl<T: Pod> Request<T> {
    /// Its order handle, to start others after it.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether it has ended. Moves operations on.
    pub fn is_finished(&self) -> bool {
        !self.worker.is_pending_exactly(self.handle)
    }

    /// Waits for its end and gives the vector back. Errors: the operation failed.
    pub fn wait(self) -> Result<Vec<T>> {
        self.worker.complete_exactly(self.handle)?;
        // SAFETY: the operation has ended, so the engine is done with the vector.
        Ok(unsafe { std::mem::take(&mut *self.buffer.0.get()) })
    }
}
