//! Requests: sends and receives that own their values and return them. They are also futures.
#![allow(unsafe_code)]
//! Unsafe: the message uses the values' block of memory and keeps it alive; the request does not access the block
//! before the message has ended.

use crate::data::RequestValues;
use crate::engine::Cause;
use crate::message::slot::{Received, Slot, not_received, not_sent, received};
use crate::request::{Request, finish_limited, future_by_request};
use crate::{Error, Pod, Rank, Result};
use bytemuck::allocation::try_zeroed_vec;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::engine::{Local, RevocableBuffer};
use tasuki_message::{ArrivalBuffer, Context, MessageBuffer, PendingRecv, PendingSend, TypedSlot};

/// The values of a request.
#[derive(Debug)]
pub(super) enum Values<T> {
    /// No message uses their memory: it has been sent, or it arrives elsewhere.
    Own(Vec<T>),
    Shared(Arc<SharedValues<T>>),
    /// A wait has returned them.
    Returned,
}

/// Values that a message may be using.
#[derive(Debug)]
pub(crate) struct SharedValues<T>(UnsafeCell<Vec<T>>);

// SAFETY: only the message accesses the vector until it has ended, and only its request after that.
unsafe impl<T: Pod> Send for SharedValues<T> {}
// SAFETY: only the message accesses the vector until it has ended, and only its request after that.
unsafe impl<T: Pod> Sync for SharedValues<T> {}

impl<T: Pod> SharedValues<T> {
    pub(crate) fn new(values: Vec<T>) -> Arc<SharedValues<T>> {
        Arc::new(SharedValues(UnsafeCell::new(values)))
    }

    /// Gives a message access to the values, for as long as the returned buffer is in use.
    pub(crate) fn lend(self: &Arc<Self>, writable: bool) -> Arc<RevocableBuffer> {
        // SAFETY: nothing has accessed the vector since it was made, or will before the message has ended.
        let values = unsafe { &mut *self.0.get() };
        let (place, len) = (Local(values.as_mut_ptr().cast()), size_of_val(&values[..]));
        // SAFETY: the buffer keeps the vector alive, and the request does not access it meanwhile.
        unsafe { RevocableBuffer::new(place, len, writable, Some(self.clone())) }
    }
}

impl<T: Pod> SharedValues<T> {
    /// Lends a message of any length its own room, in place of the values, when its length is known. The last value may
    /// be there in part.
    fn on_arrival(self: &Arc<Self>) -> Arc<ArrivalBuffer> {
        let shared = self.clone();
        ArrivalBuffer::new(size_of::<T>(), move |len| {
            if size_of::<T>() == 0 && len > 0 {
                return Err(Cause::Truncated { len, room: 0 });
            }
            let count = len.div_ceil(size_of::<T>().max(1) as u64);
            let values = usize::try_from(count).ok().and_then(|count| try_zeroed_vec(count).ok());
            let no_memory = || Cause::NoMemory { wanted: len, available: 0, limit: "the allocator".into() };
            let values = values.ok_or_else(no_memory)?;
            // SAFETY: the buffer is made once, before the message uses the vector, and its request does not access it.
            unsafe { *shared.0.get() = values };
            Ok(shared.lend(true))
        })
    }
}

/// Receives a message of any length. Blocks.
pub(crate) fn receive_vec<T: Pod>(
    name: &'static str,
    context: &Arc<Context>,
    from: Rank,
    slot: TypedSlot,
) -> Result<(Vec<T>, tasuki_message::Received)> {
    let shared = SharedValues::new(Vec::new());
    let got = context.recv_vec(name, shared.on_arrival(), from, slot)?;
    // SAFETY: `recv_vec` returns when the message has ended, so nothing else uses the vector any more.
    Ok((unsafe { std::mem::take(&mut *shared.0.get()) }, got))
}

impl<T: Pod> Values<T> {
    /// The bytes of values that no message uses; an empty slice for others.
    pub(super) fn own_bytes(&mut self) -> &mut [u8] {
        match self {
            Values::Own(values) => bytemuck::cast_slice_mut(values),
            Values::Shared(_) | Values::Returned => &mut [],
        }
    }

    /// Takes the values if nothing uses them.
    pub(super) fn take_unused(&mut self) -> Option<Vec<T>> {
        match self {
            Values::Own(values) => Some(std::mem::take(values)),
            Values::Shared(values) => Arc::get_mut(values).map(|values| std::mem::take(values.0.get_mut())),
            Values::Returned => None,
        }
    }

    /// Takes the values of a message that has ended.
    ///
    /// # Safety
    /// The message has ended, if there was one.
    unsafe fn take(&mut self) -> Vec<T> {
        match std::mem::replace(self, Values::Returned) {
            Values::Own(values) => values,
            // SAFETY: the message has ended, as the caller promises, so only this request still uses the vector.
            Values::Shared(values) => unsafe { std::mem::take(&mut *values.0.get()) },
            Values::Returned => Vec::new(),
        }
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

/// A send that was begun. [`wait`](Request::wait) or `.await` returns the values, which may be reused then.
///
/// Errors of a wait: those of [`Communicator::send`](crate::Communicator::send). If the send buffer is full, the send
/// goes on: wait again, [cancel](SendRequest::cancel) it, or drop the request. After any other error
/// [`SendRequest::into_values`] returns the values.
///
/// ```
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let mut send = job.world().isend([1.5, 2.5], job.rank_after(1), Slot(0))?;
///     let mut got = [0.0; 2];
///     job.world().recv(&mut got, job.rank_after(-1), Slot(0))?;
///     assert_eq!((send.wait()?, got), ([1.5, 2.5], [1.5, 2.5])); // the values come back
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// If the request is dropped, the send ends by itself, also while this rank leaves. If the request is forgotten, the
/// values leak. In neither case does a peer read freed memory.
#[must_use = "wait() returns the values"]
#[derive(Debug)]
pub struct SendRequest<T: Pod, D = Vec<T>> {
    stage: Stage<PendingSend>,
    values: Values<T>,
    /// What a poll has found and the next wait returns.
    outcome: Option<Result<()>>,
    slot: Slot,
    /// The receiver's rank in the job; `None` for nobody.
    to: Option<Rank>,
    /// This rank.
    me: Rank,
    returns: PhantomData<fn() -> D>,
}

/// A receive that was begun. [`wait`](Request::wait) or `.await` returns a vector as long as the message, with what was
/// received. A receive from nobody returns the values as they were.
///
/// Errors of a wait: those of [`Communicator::recv`](crate::Communicator::recv). After an error
/// [`RecvRequest::into_values`] returns the values.
///
/// # Cancel safety
///
/// Dropping the request withdraws the receive and loses no message. A message that has met the receive, even one that
/// has arrived, goes to the next receive on its slot, or of any slot if that comes first. The messages of a slot keep
/// their order, unless receives of the slot and receives of any slot were both begun and dropped: these two kinds have
/// no order among each other. So a receive may stand under a time limit of an executor, or in a branch of its
/// `select!`:
///
/// ```
/// use tasuki::{Rank, Request, Slot};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     if job.rank() == 0 {
///         world.send(&[7; 1000], Rank(1), Slot(3))?;
///     } else {
///         let mut receive = world.irecv(vec![0; 1000], Rank(0), Slot(3))?;
///         while !receive.test() {}
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
pub struct RecvRequest<T: Pod, D = Vec<T>> {
    stage: Stage<PendingRecv>,
    values: Values<T>,
    slot: Slot,
    /// The sender's rank in the job; `None` for nobody.
    from: Option<Rank>,
    /// This rank.
    me: Rank,
    returns: PhantomData<fn() -> D>,
}

impl<T: Pod, D: RequestValues<Value = T>> SendRequest<T, D> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: D,
        to: Option<Rank>,
        slot: Slot,
    ) -> Result<SendRequest<T, D>> {
        SendRequest::of_kind(context, values.into_vec(), to, (slot, slot.of::<T>()))
    }

    /// Begins a send of values of that kind.
    pub(crate) fn of_kind(
        context: &Arc<Context>,
        values: Vec<T>,
        to: Option<Rank>,
        (slot, kind): (Slot, TypedSlot),
    ) -> Result<SendRequest<T, D>> {
        let (rank, me) = (to.and_then(|to| context.rank_of(to)), context.worker().rank());
        let returns = PhantomData;
        let request =
            |stage, values| SendRequest { stage, values, outcome: None, slot, to: rank, me, returns };
        let Some(to) = to else { return Ok(request(Stage::Nobody, Values::Own(values))) };
        let sent = context.try_begin_send(bytemuck::cast_slice(&values), to, kind)?;
        if let Some(sent) = sent {
            return Ok(request(Stage::UnderWay(sent), Values::Own(values)));
        }
        let values = SharedValues::new(values);
        let buffer = MessageBuffer::Unregistered(values.lend(false));
        let sent = context.begin_send(buffer, to, kind)?;
        Ok(request(Stage::UnderWay(sent), Values::Shared(values)))
    }

    /// Cancels the send if no receive has met it yet. Returns true if the message will not be transferred: the slot is
    /// free, and [`into_values`](SendRequest::into_values) returns the values. Returns false, and changes nothing, if
    /// the message has been or is being transferred, was buffered, has failed, or goes to nobody:
    /// [`wait`](Request::wait) returns the values or the error.
    ///
    /// A wait after a cancellation is an error. The call does not wait for the peer.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     if job.rank() == 0 {
    ///         let mut old = world.isend(vec![1; 100], Rank(1), Slot(0))?;
    ///         // No receive is posted yet, so the message can be replaced.
    ///         assert!(old.cancel());
    ///         assert_eq!(old.into_values(), Some(vec![1; 100]));
    ///         let mut new = world.isend(vec![2; 100], Rank(1), Slot(0))?;
    ///         job.barrier()?;
    ///         new.wait()?;
    ///         assert!(!new.cancel(), "it was transferred");
    ///     } else {
    ///         job.barrier()?;
    ///         assert_eq!(world.irecv(vec![0; 100], Rank(0), Slot(0))?.wait()?.0, [2; 100]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&mut self) -> bool {
        let Stage::UnderWay(message) = &mut self.stage else { return false };
        let is_cancelled = message.withdraw();
        if is_cancelled {
            (self.stage, self.outcome) = (Stage::Ended, None);
            // SAFETY: the message was withdrawn, and no longer uses the values.
            self.values = Values::Own(unsafe { self.values.take() });
        }
        is_cancelled
    }

    /// Returns the values of a send that was cancelled or has ended with an error. Returns `None` if a peer may still
    /// read the values or if they were returned already.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut send = job.world().isend(vec![7; 1000], Rank(1), Slot(0))?;
    ///         assert!(send.cancel()); // rank 1 receives nothing
    ///         assert_eq!(send.into_values(), Some(vec![7; 1000]));
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.stage.under_way().is_some() { None } else { self.values.take_unused() }
    }

    /// Ends the request according to the outcome of the send.
    fn settle(&mut self, sent: Result<()>) -> Result<D> {
        if self.stage.under_way().is_some_and(|message| !message.is_over()) {
            let bug = || Error::new(Cause::Bug("a send that goes on has returned no error".into()));
            return Err(sent.err().unwrap_or_else(bug)); // the send buffer was full: the send goes on
        }
        self.stage = Stage::Ended;
        // SAFETY: the message has ended, if there was one.
        sent.map(|()| D::from_vec(unsafe { self.values.take() })).map_err(not_sent::<T>)
    }
}

impl<T: Pod, D: RequestValues<Value = T>> Request for SendRequest<T, D> {
    type Value = D;

    fn test(&mut self) -> bool {
        match &mut self.stage {
            Stage::UnderWay(message) if self.outcome.is_none() => message.test(),
            _ => true,
        }
    }

    fn wait(&mut self) -> Result<D> {
        if self.outcome.is_none() && self.stage.under_way().is_some_and(|message| message.has_limit()) {
            finish_limited(self)?;
        }
        let sent = match (self.outcome.take(), &mut self.stage) {
            (Some(sent), _) => sent,
            (None, Stage::UnderWay(message)) => message.finish(),
            (None, Stage::Nobody) => Ok(()),
            (None, Stage::Ended) => return Err(ended(self.me, "isend", "to", (self.slot, self.to))),
        };
        self.settle(sent)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if let (None, Stage::UnderWay(message)) = (&self.outcome, &mut self.stage) {
            self.outcome = Some(std::task::ready!(message.poll(context.waker())));
        }
        Poll::Ready(())
    }
}

future_by_request!([T: Pod, D: RequestValues<Value = T>] SendRequest<T, D>);

impl<T: Pod> RecvRequest<T> {
    /// Begins a receive of any length, of values of that kind.
    pub(crate) fn of_any_length(
        context: &Arc<Context>,
        from: Option<Rank>,
        (slot, kind): (Slot, TypedSlot),
    ) -> Result<RecvRequest<T>> {
        let Some(from) = from else { return RecvRequest::new(context, Vec::new(), None, slot) };
        let values = SharedValues::new(Vec::new());
        let request = context.begin_recv_vec(values.on_arrival(), from, kind)?;
        let (stage, values) = (Stage::UnderWay(request), Values::Shared(values));
        let (from, me, returns) = (context.rank_of(from), context.worker().rank(), PhantomData);
        Ok(RecvRequest { stage, values, slot, from, me, returns })
    }
}

impl<T: Pod, D: RequestValues<Value = T>> RecvRequest<T, D> {
    pub(crate) fn new(
        context: &Arc<Context>,
        values: D,
        from: Option<Rank>,
        slot: Slot,
    ) -> Result<RecvRequest<T, D>> {
        let (values, me, returns) = (values.into_vec(), context.worker().rank(), PhantomData);
        let Some(from) = from else {
            let (stage, values) = (Stage::Nobody, Values::Own(values));
            return Ok(RecvRequest { stage, values, slot, from: None, me, returns });
        };
        let rank = context.rank_of(from);
        let (room, mut values) = (size_of_val(&values[..]), Values::Own(values));
        let lend = || {
            let shared = SharedValues::new(values.take_unused().unwrap_or_default());
            let buffer = MessageBuffer::Unregistered(shared.lend(true));
            values = Values::Shared(shared);
            buffer
        };
        let request = context.begin_recv(room, lend, from, slot.of::<T>())?;
        Ok(RecvRequest { stage: Stage::UnderWay(request), values, slot, from: rank, me, returns })
    }

    /// Cancels the receive if no message has met it yet. Returns true if it gets no message: the slot is free,
    /// [`into_values`](RecvRequest::into_values) returns the values as they were, and the next receive of the slot gets
    /// the message, also one that comes at this moment. Returns false, and changes nothing, if a message has arrived or
    /// is being transferred, if the receive has failed, or if it is from nobody: [`wait`](Request::wait) returns the
    /// message or the error.
    ///
    /// A wait after a cancellation is an error. The call does not wait for the peer.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     if job.rank() == 0 {
    ///         job.barrier()?;
    ///         world.send(&[7; 100], Rank(1), Slot(3))?;
    ///     } else {
    ///         let mut early = world.irecv(vec![0; 100], Rank(0), Slot(3))?;
    ///         assert!(early.cancel(), "nothing was sent yet");
    ///         let values = early.into_values().expect("they were not returned yet");
    ///         job.barrier()?;
    ///         let mut receive = world.irecv(values, Rank(0), Slot(3))?;
    ///         while !receive.test() {}
    ///         assert!(!receive.cancel(), "its message has arrived");
    ///         assert_eq!(receive.wait()?.0, [7; 100]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&mut self) -> bool {
        let Stage::UnderWay(message) = &mut self.stage else { return false };
        let is_cancelled = message.withdraw();
        if is_cancelled {
            self.stage = Stage::Ended;
            // SAFETY: the message was withdrawn, and no longer uses the values.
            self.values = Values::Own(unsafe { self.values.take() });
        }
        is_cancelled
    }

    /// Returns the values of a receive that was cancelled or has ended with an error. Returns `None` if a peer may
    /// still write the values or if they were returned already.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut receive = job.world().irecv(vec![7; 1000], Rank(1), Slot(0))?;
    ///         assert!(receive.cancel()); // rank 1 sends nothing
    ///         assert_eq!(receive.into_values(), Some(vec![7; 1000]));
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_values(mut self) -> Option<Vec<T>> {
        if self.stage.under_way().is_some() { None } else { self.values.take_unused() }
    }

    /// Ends the request according to the outcome of the receive.
    fn settle(&mut self, context: &Context, got: Result<tasuki_message::Received>) -> Result<(D, Received)> {
        let got = received::<T>(context, got.map_err(not_received::<T>)?)?;
        // SAFETY: `got` is the outcome of the message, so it has ended.
        let values = unsafe { self.values.take() };
        Ok((D::received(values, got.count), got))
    }

    /// What a receive from nobody returns: the values as they were.
    fn nothing(&mut self) -> (D, Received) {
        // SAFETY: the source is nobody, so there is no message.
        (D::from_vec(unsafe { self.values.take() }), Received::nothing(self.slot))
    }
}

impl<T: Pod, D: RequestValues<Value = T>> Request for RecvRequest<T, D> {
    type Value = (D, Received);

    fn test(&mut self) -> bool {
        self.stage.under_way().is_none_or(PendingRecv::test)
    }

    fn wait(&mut self) -> Result<(D, Received)> {
        if self.stage.under_way().is_some_and(|message| message.has_limit()) {
            finish_limited(self)?;
        }
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::UnderWay(mut message) => {
                let got = message.take(self.values.own_bytes());
                self.settle(message.context(), got)
            }
            Stage::Nobody => Ok(self.nothing()),
            Stage::Ended => Err(ended(self.me, "irecv", "from", (self.slot, self.from))),
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.stage.under_way().map_or(Poll::Ready(()), |message| message.poll(context.waker()))
    }
}

future_by_request!([T: Pod, D: RequestValues<Value = T>] RecvRequest<T, D>);

/// The error of a second wait, or of a wait after a cancellation.
#[cold]
pub(super) fn ended(me: Rank, call: &str, direction: &str, (slot, peer): (Slot, Option<Rank>)) -> Error {
    let slot = if slot == Slot::ANY { "any slot".into() } else { format!("slot {}", slot.0) };
    let peer = peer.map_or("nobody".into(), |rank| format!("rank {rank}"));
    let call = || format!("{call}({slot} {direction} {peer})");
    Error::new(Cause::AlreadyReturned { what: "the message" }).in_call(call).on_rank(me)
}

#[cfg(test)]
mod tests {
    use crate::{Rank, Request, Result, Slot, local};

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
            while tests_first && !receives.iter_mut().all(|receive| receive.test()) {}
            for slot in (0..count).map(|index| order(index, count)) {
                assert_eq!(receives[slot].wait()?.0, [slot as u64; 50]);
                sends[slot].wait()?;
            }
            Ok((all.messages().progress().looks() - before) / count as u64)
        })?;
        Ok(looks[0])
    }

    #[test]
    fn a_second_wait_names_the_message() -> Result<()> {
        local(2, |job| {
            let reversed = job.world().split((0, -(job.rank().0 as isize)))?;
            let other = Rank(1 - job.rank().0);
            let mut send = reversed.isend(vec![1_u64; 9], other, Slot(3))?;
            let mut receive = reversed.irecv(vec![0_u64; 9], other, Slot(3))?;
            receive.wait()?;
            send.wait()?;
            let texts = [receive.wait().map(drop), send.wait().map(drop)]
                .map(|again| again.expect_err("it was waited for").headline());
            let call = |text: &str| format!("rank {}: {text} rank {other}): ", job.rank());
            assert!(texts[0].starts_with(&call("irecv(slot 3 from")), "{}", texts[0]);
            assert!(texts[1].starts_with(&call("isend(slot 3 to")), "{}", texts[1]);
            let mut into = [0_u64];
            reversed.scope(|s| {
                let mut send = s.send([1_u64], other, Slot(3))?;
                s.recv(&mut into, other, Slot(3))?.wait()?;
                send.wait()?;
                let text = send.wait().expect_err("it was waited for").headline();
                assert!(text.contains(&format!("wait(slot 3 with rank {other} of a scope)")), "{text}");
                Ok(())
            })
        })
        .map(drop)
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
