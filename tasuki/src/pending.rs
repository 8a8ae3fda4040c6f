//! Sends and receives that were begun, own their values, and give them back; also as futures.
#![allow(unsafe_code)]
//! Unsafe: the values' block of memory is lent to the message and kept alive by it; nobody touches it before the
//! message has ended.

use crate::communicator::{Received, Slot, received};
use crate::{Pod, Rank, Result};
use std::cell::UnsafeCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::engine::{Loan, Local};
use tasuki_models::message::{Context, Incoming, Outgoing, Place, SHORT_MAX};

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
    fn lend(self: &Arc<Self>, writable: bool) -> Arc<Loan> {
        // SAFETY: nobody has touched the vector since it was made, or will before the message has ended.
        let values = unsafe { &mut *self.0.get() };
        let (place, len) = (Local(values.as_mut_ptr().cast()), size_of_val(&values[..]));
        // SAFETY: the loan keeps the vector alive, and its request leaves it alone.
        unsafe { Loan::new(place, len, writable, Some(self.clone())) }
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

/// A send that was begun. [`Sending::wait`] or `.await` gives the values back. Dropping it lets it end by itself, also
/// when this rank leaves; forgetting it leaks the values; neither lets anyone read freed memory.
#[must_use = "the values come back from wait()"]
#[derive(Debug)]
pub struct Sending<T: Pod> {
    request: Option<Outgoing>,
    values: Arc<Values<T>>,
}

/// A receive that was begun. [`Receiving::wait`] or `.await` gives the values back. Dropping it takes it back: a
/// message that is not on its way is for the next receive on the slot.
#[must_use = "the values come back from wait()"]
#[derive(Debug)]
pub struct Receiving<T: Pod> {
    request: Option<Incoming>,
    values: Arc<Values<T>>,
}

impl<T: Pod> Sending<T> {
    pub(crate) fn new(context: &Arc<Context>, values: Vec<T>, to: Rank, slot: Slot) -> Result<Sending<T>> {
        let mut values = Values::new(values);
        let bytes = Arc::get_mut(&mut values).map(Values::bytes).unwrap_or_default();
        let mut line = [0; SHORT_MAX];
        let short = line.get_mut(..bytes.len()).map(|line| {
            line.copy_from_slice(bytes);
            &*line
        });
        let request = context.begin_send(short, || Place::Own(values.lend(false)), to, slot.0)?;
        Ok(Sending { request: Some(request), values })
    }

    /// Whether it has ended. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.request.as_ref().is_none_or(Outgoing::is_finished)
    }

    /// Waits until the values may be used again, and gives them back. Errors as for
    /// [`Communicator::send`](crate::Communicator::send).
    pub fn wait(mut self) -> Result<Vec<T>> {
        if let Some(request) = self.request.take() {
            request.wait()?;
        }
        // SAFETY: the message has ended.
        Ok(unsafe { self.values.take() })
    }
}

impl<T: Pod> Future for Sending<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let Some(request) = &mut self.request else { return Poll::Ready(Ok(Vec::new())) };
        let Poll::Ready(sent) = request.poll(task.waker()) else { return Poll::Pending };
        self.request = None;
        // SAFETY: the message has ended.
        Poll::Ready(sent.map(|()| unsafe { self.values.take() }))
    }
}

impl<T: Pod> Receiving<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: Vec<T>,
        from: Rank,
        slot: Slot,
    ) -> Result<Receiving<T>> {
        let room = size_of_val(&values[..]);
        let values = Values::new(values);
        let request = context.begin_recv(room, || Place::Own(values.lend(true)), from, slot.0)?;
        Ok(Receiving { request: Some(request), values })
    }

    /// Whether its message has come. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.request.as_ref().is_none_or(Incoming::is_finished)
    }

    /// Waits for the message, and gives the values back with what came. Errors as for
    /// [`Communicator::recv`](crate::Communicator::recv).
    pub fn wait(mut self) -> Result<(Vec<T>, Received)> {
        let mut request = self.request.take().expect("it is taken once");
        let got = request.take(self.line());
        let got = received::<T>(got?)?;
        // SAFETY: the message has ended.
        Ok((unsafe { self.values.take() }, got))
    }

    /// The bytes of a short receive, which nothing was lent of; none of any other.
    fn line(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.values).map_or(&mut [], Values::bytes)
    }
}

impl<T: Pod> Future for Receiving<T> {
    type Output = Result<(Vec<T>, Received)>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let mut request = self.request.take().expect("it is polled no more after its end");
        match request.poll(self.line(), task.waker()) {
            Poll::Pending => {
                self.request = Some(request);
                Poll::Pending
            }
            Poll::Ready(got) => {
                let got = got.and_then(received::<T>)?;
                // SAFETY: the message has ended well.
                Poll::Ready(Ok((unsafe { self.values.take() }, got)))
            }
        }
    }
}
