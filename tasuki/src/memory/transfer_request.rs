//! Requests of transfers: puts and gets, which own their buffer and return it, copies, and atomic operations.
#![allow(unsafe_code)]
//! Unsafe: the engine gets a pointer to the buffer's heap block and keeps the block alive through an `Arc` until the
//! operation has ended; nothing else accesses the block before.

use crate::job::Job;
use crate::onesided::{After, Handle};
use crate::request::{Request, future_by_request};
use crate::{GlobalPtr, Pod, Result};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition, Local, Operation, Worker};

/// A transfer that was issued: a put or get, whose wait returns its vector (`V` is `Vec<T>`); or a copy or an atomic
/// operation (`V` is `()`).
///
/// Errors of a wait: the operation failed. [`Job::complete`] does not report that failure again.
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::{After, TransferRequest};
/// tasuki::local(2, |job| {
///     let table = job.alloc::<u64>(100)?;
///     let next = table.on(job.rank_after(1));
///     let mut put: TransferRequest<Vec<u64>> = job.iput(next, vec![7; 100], After::Nothing)?;
///     let sum: u64 = (0..1000).sum(); // work meanwhile
///     assert_eq!((put.wait()?, sum), (vec![7; 100], 499_500)); // the vector comes back
///     job.barrier()?;
///     assert_eq!(table.to_vec()?, [7; 100]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// If the request is dropped, the operation ends by itself, and the vector is freed after that. If the request is
/// forgotten, the vector leaks. In neither case does a peer access freed memory. [`Job::complete`] reports a failure
/// that no wait has reported.
#[derive(Debug)]
pub struct TransferRequest<V: TransferValue> {
    worker: Arc<Worker>,
    handle: Handle,
    /// Taken by the first wait.
    kept: Option<V::Kept>,
    awaited: AwaitedCondition,
}

/// What the wait for a [`TransferRequest`] returns.
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::{After, TransferRequest, TransferValue};
/// /// Waits for a transfer, and says after how many tests it had ended.
/// fn tested<V: TransferValue>(mut transfer: TransferRequest<V>) -> tasuki::Result<(V, usize)> {
///     let mut tests = 1;
///     while !transfer.test() {
///         tests += 1;
///     }
///     Ok((transfer.wait()?, tests))
/// }
/// tasuki::local(2, |job| {
///     let table = job.alloc::<u64>(8)?;
///     let next = table.on(job.rank_after(1));
///     let (vector, _) = tested(job.iget(next, vec![1; 8], After::Nothing)?)?; // `V` is `Vec<u64>`
///     let ((), tests) = tested(job.copy(next, table.pointer(), 8, After::Nothing)?)?;
///     assert!(vector == [0; 8] && tests > 0);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait TransferValue: sealed::SealedValue {
    /// What the request keeps for it.
    #[doc(hidden)]
    type Kept: Unpin;

    #[doc(hidden)]
    fn take(kept: Self::Kept) -> Self;
}

mod sealed {
    pub trait SealedValue {}
}

impl sealed::SealedValue for () {}
impl TransferValue for () {
    type Kept = ();

    fn take((): ()) {}
}

impl<T: Pod> sealed::SealedValue for Vec<T> {}
impl<T: Pod> TransferValue for Vec<T> {
    type Kept = KeptBuffer<T>;

    fn take(kept: KeptBuffer<T>) -> Vec<T> {
        // SAFETY: called when the operation has ended, so the engine no longer accesses the vector.
        unsafe { std::mem::take(&mut *kept.0.0.get()) }
    }
}

/// The vector of a transfer.
#[doc(hidden)]
#[derive(Debug)]
pub struct KeptBuffer<T>(Arc<Buffer<T>>);

#[derive(Debug)]
struct Buffer<T>(UnsafeCell<Vec<T>>);

// SAFETY: only the engine accesses the vector until the operation has ended, and only `wait` after that.
unsafe impl<T: Pod> Send for Buffer<T> {}
// SAFETY: only the engine accesses the vector until the operation has ended, and only `wait` after that.
unsafe impl<T: Pod> Sync for Buffer<T> {}

impl Job {
    /// Issues a put of `values`, which the request's wait returns. The put starts when `after` permits it. Errors and
    /// cost: those of [`Job::put`].
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::onesided::After;
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(3)?;
    ///     let mut put = job.iput(table.on(job.rank_after(1)), vec![4, 5, 6], After::Nothing)?;
    ///     // work that does not need the vector
    ///     let values = put.wait()?;
    ///     job.barrier()?;
    ///     assert_eq!(table.to_vec()?, values);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iput<T: Pod>(
        &self,
        to: GlobalPtr<T>,
        values: Vec<T>,
        after: After,
    ) -> Result<TransferRequest<Vec<T>>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Put { to: to.address(), from: local, len })
    }

    /// Issues a get that fills `values`, which the request's wait returns. The get starts when `after` permits it.
    /// Errors and cost: those of [`Job::put`].
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(1, |job| {
    ///     let data = job.alloc::<u8>(3)?;
    ///     let mut request = job.iget(data.pointer(), vec![9; 3], tasuki::onesided::After::Nothing)?;
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
    ) -> Result<TransferRequest<Vec<T>>> {
        let len = size_of_val(&values[..]) as u64;
        self.issue(values, after, |local| Operation::Get { from: from.address(), to: local, len })
    }

    fn issue<T: Pod>(
        &self,
        mut values: Vec<T>,
        after: After,
        action: impl FnOnce(Local) -> Operation,
    ) -> Result<TransferRequest<Vec<T>>> {
        let local = Local(values.as_mut_ptr().cast());
        let buffer = Arc::new(Buffer(UnsafeCell::new(values)));
        // SAFETY: the engine keeps `buffer` alive until the operation has ended; nothing else accesses the vector
        // before.
        let issued = unsafe { self.worker.issue_kept(action(local), after, Some(buffer.clone()))? };
        Ok(self.transfer(issued.handle, KeptBuffer(buffer)))
    }

    /// The request of an operation that was issued.
    pub(crate) fn transfer<V: TransferValue>(&self, handle: Handle, kept: V::Kept) -> TransferRequest<V> {
        let (worker, awaited) = (self.worker.clone(), AwaitedCondition::default());
        TransferRequest { worker, handle, kept: Some(kept), awaited }
    }
}

impl<V: TransferValue> TransferRequest<V> {
    /// The operation's handle, with which other operations can be ordered after it ([`After`]).
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::onesided::After;
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(2)?;
    ///     let next = table.on(job.rank_after(1));
    ///     let first = job.iput(next, vec![7], After::Nothing)?;
    ///     let mut second = job.copy(next, next.at(1), 1, After::Exact(first.handle()))?;
    ///     second.wait()?; // it has copied the 7
    ///     job.barrier()?;
    ///     assert_eq!(table.to_vec()?, [7, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn handle(&self) -> Handle {
        self.handle
    }
}

impl<V: TransferValue> Request for TransferRequest<V> {
    type Value = V;

    fn test(&mut self) -> bool {
        self.kept.is_none()
            || !self.worker.is_pending_exactly(self.handle)
            || self.worker.end_if_over().is_some()
    }

    fn wait(&mut self) -> Result<V> {
        if self.kept.is_some() {
            self.worker.complete_exactly(self.handle)?;
        }
        let Some(kept) = self.kept.take() else {
            let cause = Cause::AlreadyReturned { what: "the transfer" };
            let call = || format!("wait(operation {})", self.handle.number());
            return Err(self.worker.fault(cause, call));
        };
        Ok(V::take(kept))
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        let ended = Awaited::only(Condition::Finished(self.handle.number()));
        self.awaited.set(&self.worker, ended, context.waker());
        Poll::Pending
    }
}

future_by_request!([V: TransferValue] TransferRequest<V>);
