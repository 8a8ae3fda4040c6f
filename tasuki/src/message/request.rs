//! Requests: sends and receives that own their values and return them. They are also futures.
#![allow(unsafe_code)]
//! Unsafe: the message uses the values' block of memory and keeps it alive; the request does not access the block
//! before the message has ended.

use crate::message::slot::{Received, Slot, received};
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

// SAFETY: only the message accesses the vector until it has ended, and only its request after that.
unsafe impl<T: Pod> Send for Values<T> {}
// SAFETY: only the message accesses the vector until it has ended, and only its request after that.
unsafe impl<T: Pod> Sync for Values<T> {}

impl<T: Pod> Values<T> {
    fn new(values: Vec<T>) -> Arc<Values<T>> {
        Arc::new(Values(UnsafeCell::new(values)))
    }

    /// The bytes of the values, if no message uses them.
    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.0.get_mut())
    }

    /// Gives a message access to the values, for as long as the returned buffer is in use.
    fn lend(self: &Arc<Self>, writable: bool) -> Arc<RevocableBuffer> {
        // SAFETY: nothing has accessed the vector since it was made, or will before the message has ended.
        let values = unsafe { &mut *self.0.get() };
        let (place, len) = (Local(values.as_mut_ptr().cast()), size_of_val(&values[..]));
        // SAFETY: the buffer keeps the vector alive, and the request does not access it meanwhile.
        unsafe { RevocableBuffer::new(place, len, writable, Some(self.clone())) }
    }

    /// Takes the values, which no message uses.
    fn take_unused(&mut self) -> Vec<T> {
        std::mem::take(self.0.get_mut())
    }

    /// Takes the values of a message that has ended.
    ///
    /// # Safety
    /// The message has ended.
    unsafe fn take(&self) -> Vec<T> {
        // SAFETY: the caller's promise.
        unsafe { std::mem::take(&mut *self.0.get()) }
    }
}

/// How far a message is.
#[derive(Debug)]
enum Stage<P> {
    UnderWay(P),
    /// The peer is `None`: there is no message to wait for.
    Nobody,
    /// The message has ended. Its values were returned, or it has failed.
    Ended,
}

impl<P> Stage<P> {
    fn under_way(&self) -> Option<&P> {
        match self {
            Stage::UnderWay(message) => Some(message),
            Stage::Nobody | Stage::Ended => None,
        }
    }
}

/// A send that was begun. [`SendRequest::wait`] or `.await` returns the values.
///
/// # Cancel safety
///
/// If the request is dropped, the send ends by itself, also while this rank leaves. If the request is forgotten, the
/// values leak. In neither case does a peer read freed memory.
#[must_use = "wait() returns the values"]
#[derive(Debug)]
pub struct SendRequest<T: Pod> {
    stage: Stage<PendingSend>,
    values: Arc<Values<T>>,
}

/// A receive that was begun. [`RecvRequest::wait`] or `.await` returns the values.
///
/// # Cancel safety
///
/// Dropping the request withdraws the receive and loses no message. A message that has met the receive, even one that
/// has arrived, goes to the next receive on its slot, or of any slot if that comes first. The messages of a slot keep
/// their order. So a receive may stand under a time limit of an executor, or in a branch of its `select!`:
///
/// ```
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     if job.rank() == 0 {
///         world.send(&[7; 1000], Rank(1), Slot(3))?;
///     } else {
///         let receive = world.irecv(vec![0; 1000], Rank(0), Slot(3))?;
///         while !receive.is_finished() {}
///         drop(receive);
///         assert_eq!(world.irecv(vec![0; 1000], Rank(0), Slot(3))?.wait()?.0, [7; 1000]);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// The drop does not wait for the sender. The memory of the dropped receive stays until another receive has the
/// message, and if the message is still being transferred, that receive waits for it. A receive that is too small
/// leaves the message where it is. A rank holds at most one such message for each slot on which it receives, and one
/// more for each sender. What nobody receives before the rank leaves is lost. If the request is forgotten, the values
/// leak and the slot stays busy.
#[must_use = "wait() returns the values"]
#[derive(Debug)]
pub struct RecvRequest<T: Pod> {
    stage: Stage<PendingRecv>,
    values: Arc<Values<T>>,
    slot: Slot,
}

impl<T: Pod> SendRequest<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: Vec<T>,
        to: Option<Rank>,
        slot: Slot,
    ) -> Result<SendRequest<T>> {
        let Some(to) = to else {
            return Ok(SendRequest { stage: Stage::Nobody, values: Values::new(values) });
        };
        let sent = context.try_begin_send(bytemuck::cast_slice(&values), to, slot.word())?;
        let values = Values::new(values);
        let request = match sent {
            Some(sent) => sent,
            None => context.begin_send(MessageBuffer::Unregistered(values.lend(false)), to, slot.word())?,
        };
        Ok(SendRequest { stage: Stage::UnderWay(request), values })
    }

    /// Returns true if the send has ended. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.stage.under_way().is_none_or(PendingSend::is_finished)
    }

    /// Waits until the values may be reused and returns them. Only the first call can return them.
    ///
    /// Errors: those of [`Communicator::send`](crate::Communicator::send). If the send buffer is full, the send goes
    /// on: wait again, or drop the request. After any other error [`SendRequest::into_values`] returns the values.
    pub fn wait(&mut self) -> Result<Vec<T>> {
        let sent = match &mut self.stage {
            Stage::UnderWay(message) => message.finish(),
            Stage::Nobody => Ok(()),
            Stage::Ended => return Err(ended("isend")),
        };
        self.settle(sent)
    }

    /// Returns the values of a send that has ended with an error. Returns `None` if a peer may still read the values
    /// or if they were returned already.
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.stage.under_way().is_some() {
            None
        } else {
            Arc::get_mut(&mut self.values).map(Values::take_unused)
        }
    }

    /// Ends the request according to the outcome of the send.
    fn settle(&mut self, sent: Result<()>) -> Result<Vec<T>> {
        if self.stage.under_way().is_some_and(|message| !message.is_over()) {
            return sent.map(|()| Vec::new()); // the send buffer was full: the send goes on
        }
        self.stage = Stage::Ended;
        // SAFETY: the message has ended, if there was one.
        sent.map(|()| unsafe { self.values.take() })
    }
}

impl<T: Pod> Future for SendRequest<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let sent = match &mut self.stage {
            Stage::UnderWay(message) => std::task::ready!(message.poll(task.waker())),
            Stage::Nobody => Ok(()),
            Stage::Ended => return Poll::Ready(Err(ended("isend"))),
        };
        Poll::Ready(self.settle(sent))
    }
}

impl<T: Pod> RecvRequest<T> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: Vec<T>,
        from: Option<Rank>,
        slot: Slot,
    ) -> Result<RecvRequest<T>> {
        let Some(from) = from else {
            return Ok(RecvRequest { stage: Stage::Nobody, values: Values::new(values), slot });
        };
        let room = size_of_val(&values[..]);
        let values = Values::new(values);
        let request =
            context.begin_recv(room, || MessageBuffer::Unregistered(values.lend(true)), from, slot.word())?;
        Ok(RecvRequest { stage: Stage::UnderWay(request), values, slot })
    }

    /// Returns true if the message has arrived. Moves messages on.
    pub fn is_finished(&self) -> bool {
        self.stage.under_way().is_none_or(PendingRecv::is_finished)
    }

    /// Waits for the message and returns the values with what was received. Only the first call can return them.
    ///
    /// Errors: those of [`Communicator::recv`](crate::Communicator::recv); after an error
    /// [`RecvRequest::into_values`] returns the values.
    pub fn wait(&mut self) -> Result<(Vec<T>, Received)> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::UnderWay(mut message) => {
                let got = message.take(self.short_buffer());
                self.settle(message.context(), got)
            }
            Stage::Nobody => Ok(self.nothing()),
            Stage::Ended => Err(ended("irecv")),
        }
    }

    /// Returns the values of a receive that has ended with an error. Returns `None` if a peer may still write the
    /// values or if they were returned already.
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.stage.under_way().is_some() {
            None
        } else {
            Arc::get_mut(&mut self.values).map(Values::take_unused)
        }
    }

    /// Ends the request according to the outcome of the receive.
    fn settle(
        &mut self,
        context: &Context,
        got: Result<tasuki_message::Received>,
    ) -> Result<(Vec<T>, Received)> {
        let got = received::<T>(context, got?)?;
        // SAFETY: the message has ended well.
        Ok((unsafe { self.values.take() }, got))
    }

    /// What a receive from nobody returns: the values as they were.
    fn nothing(&mut self) -> (Vec<T>, Received) {
        // SAFETY: there is no message.
        (unsafe { self.values.take() }, Received::nothing(self.slot))
    }

    /// The buffer of a short receive, which its message does not access; an empty slice for any other receive.
    fn short_buffer(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.values).map_or(&mut [], Values::bytes)
    }
}

impl<T: Pod> Future for RecvRequest<T> {
    type Output = Result<(Vec<T>, Received)>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let mut message = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::UnderWay(message) => message,
            Stage::Nobody => return Poll::Ready(Ok(self.nothing())),
            Stage::Ended => return Poll::Ready(Err(ended("irecv"))),
        };
        match message.poll(self.short_buffer(), task.waker()) {
            Poll::Pending => {
                self.stage = Stage::UnderWay(message);
                Poll::Pending
            }
            Poll::Ready(got) => Poll::Ready(self.settle(message.context(), got)),
        }
    }
}

/// The error of a second wait.
#[cold]
fn ended(call: &str) -> Error {
    let text = "the message has ended and its values were returned already: begin another";
    Error::argument(text).in_call(|| call.to_string())
}

#[cfg(test)]
mod tests {
    use crate::{Rank, Result, Slot, local};

    /// Exchanges `count` messages of a rank with itself, so that nothing depends on time. Returns how many times calls
    /// have looked at unfinished messages, per message.
    fn looks_per_message(count: usize, order: fn(usize, usize) -> usize, tests_first: bool) -> Result<u64> {
        let looks = local(1, |job| {
            let all = job.world().split(crate::collective::Split::colour(0).slots(count))?;
            let before = all.messages().progress().looks();
            let receives = (0..count).map(|slot| all.irecv(vec![0_u64; 50], Rank(0), Slot(slot)));
            let mut receives = receives.collect::<Result<Vec<_>>>()?;
            let sends = (0..count).map(|slot| all.isend(vec![slot as u64; 50], Rank(0), Slot(slot)));
            let mut sends = sends.collect::<Result<Vec<_>>>()?;
            while tests_first && !receives.iter().all(|receive| receive.is_finished()) {}
            for slot in (0..count).map(|index| order(index, count)) {
                assert_eq!(receives[slot].wait()?.0, [slot as u64; 50]);
                sends[slot].wait()?;
            }
            Ok((all.messages().progress().looks() - before) / count as u64)
        })?;
        Ok(looks[0])
    }

    #[test]
    fn looks_at_outstanding_messages_grow_with_their_number_only() -> Result<()> {
        // 7,919 is prime.
        let orders: [fn(usize, usize) -> usize; 3] =
            [|index, _| index, |index, count| count - 1 - index, |index, count| index * 7919 % count];
        for (place, order) in orders.into_iter().enumerate() {
            for tests_first in [false, true] {
                let looks = [500, 8000].map(|count| looks_per_message(count, order, tests_first));
                let [few, many] = looks;
                let (few, many) = (few?, many?);
                assert!(many <= 2 * few.max(20), "order {place}: {few} looks per message, then {many}");
            }
        }
        Ok(())
    }
}
