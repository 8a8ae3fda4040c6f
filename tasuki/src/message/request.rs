//! Sends and receives that were begun, own their values, and give them back; also as futures.
#![allow(unsafe_code)]
//! Unsafe: the values' block of memory is lent to the message and kept alive by it; nobody touches it before the
//! message has ended.

use crate::communicator::{Received, Slot, received};
use crate::{Error, Pod, Rank, Result};
use std::cell::UnsafeCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::engine::{Local, RevocableBuffer};
use tasuki_message::{Context, MessageBuffer, PendingRecv, PendingSend};

/// Values that a message may be using.
#[derive(Debug)]
struct Values<T>(UnsafeCell<Vec<T>>);

// SAFETY: the vector is touched by the message until it has ended, and by its request after that.
unsafe impl<T: Pod> Send for Values<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Values<T> {}

impl<T: Pod> Values<T> {
    fn new(values: Vec<T>) -> Arc<Values<T>> {
        Arc::new(Values(UnsafeCell::new(values)))
    }

    /// The bytes, as long as nothing is lent.
    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.0.get_mut())
    }

    /// Lends them, for as long as anybody uses the loan.
    fn lend(self: &Arc<Self>, writable: bool) -> Arc<RevocableBuffer> {
        // SAFETY: nobody has touched the vector since it was made, or will before the message has ended.
        let values = unsafe { &mut *self.0.get() };
        let (place, len) = (Local(values.as_mut_ptr().cast()), size_of_val(&values[..]));
        // SAFETY: the loan keeps the vector alive, and its request leaves it alone.
        unsafe { RevocableBuffer::new(place, len, writable, Some(self.clone())) }
    }

    /// The values, which nobody uses.
    fn own(&mut self) -> Vec<T> {
        std::mem::take(self.0.get_mut())
    }

    /// Gives them back.
    ///
    /// # Safety
    /// The message has ended.
    unsafe fn take(&self) -> Vec<T> {
        // SAFETY: the caller's promise.
        unsafe { std::mem::take(&mut *self.0.get()) }
    }
}

/// A send that was begun. [`SendRequest::wait`] or `.await` gives the values back. Dropping it lets it end by itself, also
/// when this rank leaves; forgetting it leaks the values; neither lets anyone read freed memory.
#[must_use = "the values come back from wait()"]
#[derive(Debug)]
pub struct SendRequest<T: Pod> {
    request: Option<PendingSend>,
    values: Arc<Values<T>>,
}

/// A receive that was begun. [`RecvRequest::wait`] or `.await` gives the values back. Dropping it takes it back: a
/// message that is not on its way is for the next receive on the slot.
#[must_use = "the values come back from wait()"]
#[derive(Debug)]
pub struct RecvRequest<T: Pod> {
    request: Option<PendingRecv>,
    values: Arc<Values<T>>,
}

impl<T: Pod> SendRequest<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: Vec<T>,
        to: Rank,
        slot: Slot,
    ) -> Result<SendRequest<T>> {
        let sent = context.try_begin_send(bytemuck::cast_slice(&values), to, slot.0)?;
        let values = Values::new(values);
        let request = match sent {
            Some(sent) => sent,
            None => context.begin_send(MessageBuffer::Own(values.lend(false)), to, slot.0)?,
        };
        Ok(SendRequest { request: Some(request), values })
    }

    /// Whether it has ended. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.request.as_ref().is_none_or(PendingSend::is_finished)
    }

    /// Waits until the values may be used again, and gives them back; once.
    ///
    /// Errors as for [`Communicator::send`](crate::Communicator::send). Where the spool is full the message is still
    /// under way: wait again, or drop this. After any other error [`SendRequest::into_values`] has the values.
    pub fn wait(&mut self) -> Result<Vec<T>> {
        let request = self.request.as_mut().ok_or_else(|| ended("isend"))?;
        let sent = request.finish();
        self.settle(sent)
    }

    /// The values of a message that has ended with an error; none as long as anybody may read them, or if they were
    /// given back.
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.request.is_some() { None } else { Arc::get_mut(&mut self.values).map(Values::own) }
    }

    /// What follows how it went.
    fn settle(&mut self, sent: Result<()>) -> Result<Vec<T>> {
        if self.request.as_ref().is_some_and(|request| !request.is_over()) {
            return sent.map(|()| Vec::new()); // the spool was full: it is under way
        }
        self.request = None;
        // SAFETY: the message has ended.
        sent.map(|()| unsafe { self.values.take() })
    }
}

impl<T: Pod> Future for SendRequest<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let Some(request) = &mut self.request else { return Poll::Ready(Err(ended("isend"))) };
        let Poll::Ready(sent) = request.poll(task.waker()) else { return Poll::Pending };
        Poll::Ready(self.settle(sent))
    }
}

impl<T: Pod> RecvRequest<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: Vec<T>,
        from: Rank,
        slot: Slot,
    ) -> Result<RecvRequest<T>> {
        let room = size_of_val(&values[..]);
        let values = Values::new(values);
        let request = context.begin_recv(room, || MessageBuffer::Own(values.lend(true)), from, slot.0)?;
        Ok(RecvRequest { request: Some(request), values })
    }

    /// Whether its message has come. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.request.as_ref().is_none_or(PendingRecv::is_finished)
    }

    /// Waits for the message, and gives the values back with what came; once.
    ///
    /// Errors as for [`Communicator::recv`](crate::Communicator::recv); [`RecvRequest::into_values`] has the values then.
    pub fn wait(&mut self) -> Result<(Vec<T>, Received)> {
        let mut request = self.request.take().ok_or_else(|| ended("irecv"))?;
        let got = request.take(self.line());
        self.settle(request.context(), got)
    }

    /// The values of a message that has ended with an error; none as long as anybody may write them, or if they were
    /// given back.
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.request.is_some() { None } else { Arc::get_mut(&mut self.values).map(Values::own) }
    }

    /// What follows how it went.
    fn settle(
        &mut self,
        context: &Context,
        got: Result<tasuki_message::Received>,
    ) -> Result<(Vec<T>, Received)> {
        let got = received::<T>(context, got?)?;
        // SAFETY: the message has ended well.
        Ok((unsafe { self.values.take() }, got))
    }

    /// The bytes of a short receive, which nothing was lent of; none of any other.
    fn line(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.values).map_or(&mut [], Values::bytes)
    }
}

impl<T: Pod> Future for RecvRequest<T> {
    type Output = Result<(Vec<T>, Received)>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let Some(mut request) = self.request.take() else { return Poll::Ready(Err(ended("irecv"))) };
        match request.poll(self.line(), task.waker()) {
            Poll::Pending => {
                self.request = Some(request);
                Poll::Pending
            }
            Poll::Ready(got) => Poll::Ready(self.settle(request.context(), got)),
        }
    }
}

/// That its values were given back already.
#[cold]
fn ended(call: &str) -> Error {
    let text = "the message has ended, and its values were given back: begin another";
    Error::argument(text).in_call(|| call.to_string())
}
