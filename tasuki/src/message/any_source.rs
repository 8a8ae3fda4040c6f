//! Messages of communicators whose receiver does not name the sender.

use crate::collective::Data;
use crate::engine::Cause;
use crate::member::{about, place_of};
use crate::message::Peer;
use crate::message::slot::{Received, Slot, not_received, not_sent, part_for, received, room_for};
use crate::request::{Request, future_by_request};
use crate::{Communicator, Error, Pod, Result};
use futures_core::Stream;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::base::ValueKind;
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition};
use tasuki_message::{AnyLook, Context, SendersLeft, TakenMessage};

impl Communicator {
    /// Sends values to a member that receives from any member ([`recv_any`](Communicator::recv_any)). A send to `None`
    /// returns at once ([`Peer`]).
    ///
    /// Returns when `values` may be reused: when they are in the receiver's *any-source queue*, or, if they are longer
    /// than a buffer of it, when the receiver has fetched them. A message that fits in a buffer does not wait for a
    /// receive, only for room: the queue has 64 buffers of 256 bytes, or as many as the environment variable
    /// `TASUKI_ANY_SOURCE` says. Any number is a slot here; slots select messages, and take no memory.
    ///
    /// A message to oneself that is longer than a buffer, or that finds no room, waits for ever unless another thread
    /// of the rank receives. [`isend_any`](Communicator::isend_any) does not wait; a task uses that.
    ///
    /// The message meets no [`recv`](Communicator::recv), and no receive of another communicator. The messages of a
    /// rank to another one arrive in order, whichever of its threads and requests send them.
    ///
    /// Errors: no such slot or member; the receiver left; a rank died; the time limit: then the message was not sent. A
    /// message that nobody receives before its receiver leaves is lost, which is an error of the receiver. A receive of
    /// another type is an error of the receiver alone, and the message keeps its place in the queue: this call does not
    /// learn of it.
    ///
    /// Cost: an atomic operation and a write; one cache line for up to 32 bytes. The first message to a member also
    /// costs a few dependent accesses to its memory. Source: FMPL, `fmpl_send_any`.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(4, |job| {
    ///     let world = job.world();
    ///     if job.rank() != 0 {
    ///         world.send_any(&vec![job.rank().0; job.rank().0], Rank(0), Slot(5))?;
    ///     } else {
    ///         for _ in 1..job.size() {
    ///             let (values, got) = world.recv_any_vec::<usize>(Slot(5))?;
    ///             assert_eq!(values, vec![got.source.0; got.source.0]);
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_any<D: Data + ?Sized>(&self, values: &D, to: impl Peer, slot: Slot) -> Result<()> {
        let Some(place) = place_of(self.messages(), to, "send_any")? else { return Ok(()) };
        let _limit = self.limited();
        let bytes = bytemuck::cast_slice(values.values());
        let sent = self.messages().send_any(bytes, place, slot.word(), ValueKind::of::<D::Value>());
        sent.map_err(|error| about(to, not_sent::<D::Value>(error)))
    }

    /// Receives the oldest message that any member has sent with [`send_any`](Communicator::send_any) on that slot, or
    /// on any slot ([`Slot::ANY`]). Waits for it. A shorter message leaves the rest of `into` unchanged.
    ///
    /// A receive of a slot takes messages from behind others. If messages of other slots and communicators fill the
    /// queue, it copies the oldest of them out, up to as many bytes as the queue has, and then fails with
    /// [`Cause::Full`](crate::engine::Cause::Full). Several threads may receive at once; each message goes to one of
    /// them.
    ///
    /// Errors: the message is longer than `into`, or has values of another type: then it stays, for another receive;
    /// those other messages fill all memory; the time limit; all other members have left; a rank died.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let (world, mut row) = (job.world(), [0.0; 10]);
    ///     world.send_any(&[1.5; 8], job.rank_after(1), Slot(3))?;
    ///     let got = world.recv_any(&mut row, Slot::ANY)?;
    ///     assert_eq!((got.source.0, got.slot, got.count), (1 - job.rank().0, Slot(3), 8));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_any<D: Data + ?Sized>(&self, into: &mut D, slot: Slot) -> Result<Received> {
        let _limit = self.limited();
        let into: &mut [u8] = bytemuck::cast_slice_mut(into.values_mut());
        let kind = ValueKind::of::<D::Value>();
        let got = self.messages().recv_any(slot.word(), kind, |len| part_for(into, len));
        received::<D::Value>(self.messages(), got.map_err(not_received::<D::Value>)?)
    }

    /// Like [`recv_any`](Communicator::recv_any), for a message of any length. Returns its values, and what is known
    /// about it.
    ///
    /// Errors: those of `recv_any`, but for the length. Cost: one copy of the message.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(3, |job| {
    ///     if job.rank() != 0 {
    ///         return job.world().send_any(&vec![7; job.rank().index()], Rank(0), Slot(2));
    ///     }
    ///     for _ in 0..2 {
    ///         let (values, got) = job.world().recv_any_vec::<i32>(Slot(2))?; // from either, of any length
    ///         assert_eq!(values, vec![7; got.source.index()]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_any_vec<T: Pod>(&self, slot: Slot) -> Result<(Vec<T>, Received)> {
        let (_limit, mut values) = (self.limited(), Vec::new());
        let got =
            self.messages().recv_any(slot.word(), ValueKind::of::<T>(), |len| room_for(&mut values, len));
        let got = received::<T>(self.messages(), got.map_err(not_received::<T>)?)?;
        Ok((values, got))
    }

    /// Like [`recv_any_vec`](Communicator::recv_any_vec). Returns `None` if no such message is there. Does not wait.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let world = job.world();
    ///     assert_eq!(world.try_recv_any_vec::<u8>(Slot::ANY)?, None);
    ///     world.send_any(b"to myself", job.rank(), Slot(0))?; // returns: the message is in the queue
    ///     let (bytes, _) = world.try_recv_any_vec::<u8>(Slot::ANY)?.expect("it is there");
    ///     assert_eq!(bytes, b"to myself");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn try_recv_any_vec<T: Pod>(&self, slot: Slot) -> Result<Option<(Vec<T>, Received)>> {
        let mut values = Vec::new();
        let (messages, kind) = (self.messages(), ValueKind::of::<T>());
        let got = messages.try_recv_any(slot.word(), kind, |len| room_for(&mut values, len));
        let Some(got) = got.map_err(not_received::<T>)? else { return Ok(None) };
        let got = received::<T>(messages, got)?;
        Ok(Some((values, got)))
    }

    /// Begins a receive like [`recv_any_vec`](Communicator::recv_any_vec). The request's wait, or `.await`, returns the
    /// message.
    ///
    /// Does not wait. Any number of such requests may be outstanding. They have no order: the first that looks takes
    /// the oldest message. Dropping a request loses no message. The request does not keep the limit of this handle
    /// ([time limits](Request#time-limits)).
    ///
    /// ```
    /// use tasuki::{Request, Slot, block_on};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     let request = world.irecv_any::<u64>(Slot(0));
    ///     world.send_any(&7_u64, job.rank_after(1), Slot(0))?;
    ///     assert_eq!(block_on(request)?.0, [7]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn irecv_any<T: Pod>(&self, slot: Slot) -> RecvAnyRequest<T> {
        RecvAnyRequest {
            context: self.messages().clone(),
            slot,
            stage: AnyStage::Waiting,
            senders_left: SendersLeft::default(),
            awaited: AwaitedCondition::default(),
        }
    }

    /// The messages that [`recv_any_vec`](Communicator::recv_any_vec) returns, one after the other: an iterator that
    /// waits for the next one. It ends when all other members have left.
    ///
    /// An error of a time limit is an item, and the next call waits again; any other error is the last item. The waits
    /// of the iterator have the limit of this handle ([`within`](Communicator::within)).
    ///
    /// Tasks use [`MessagesFromAny::next_message`] or [`MessagesFromAny::into_stream`]. These are futures, which do not
    /// have the limit of this handle, but those of their executor.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(3, |job| {
    ///     let world = job.world();
    ///     if job.rank() != 0 {
    ///         return (0..10).try_for_each(|number: u64| world.send_any(&number, Rank(0), Slot(0)));
    ///     }
    ///     let mut sum = 0;
    ///     for message in world.messages_from_any::<u64>(Slot(0)) {
    ///         sum += message?.0[0];
    ///     }
    ///     assert_eq!(sum, 90);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn messages_from_any<T: Pod>(&self, slot: Slot) -> MessagesFromAny<T> {
        MessagesFromAny { communicator: self.clone(), slot, has_ended: false, of: PhantomData }
    }
}

/// The messages of a slot, or of any slot, from any member. Made by [`Communicator::messages_from_any`].
///
/// ```
/// use tasuki::message::MessagesFromAny;
/// use tasuki::{Rank, Slot};
/// tasuki::local(3, |job| {
///     if job.rank() != 0 {
///         return job.world().send_any(&job.rank().index(), Rank(0), Slot(0));
///     }
///     let messages: MessagesFromAny<usize> = job.world().messages_from_any(Slot(0));
///     let mut senders = messages.map(|message| Ok(message?.1.source.index())).collect::<tasuki::Result<Vec<_>>>()?;
///     senders.sort();
///     assert_eq!(senders, [1, 2]); // the iterator ends when both have left
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct MessagesFromAny<T> {
    communicator: Communicator,
    slot: Slot,
    has_ended: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> MessagesFromAny<T> {
    /// Returns the next message, or `None` when all other members have left. Dropping the future loses no message. It
    /// has the limits of its executor, and not that of the handle.
    ///
    /// ```
    /// use tasuki::{Rank, Slot, block_on};
    /// tasuki::local(3, |job| {
    ///     if job.rank() != 0 {
    ///         return job.world().send_any(&[job.rank().0; 100], Rank(0), Slot(0));
    ///     }
    ///     block_on(async {
    ///         let (mut messages, mut count) = (job.world().messages_from_any::<usize>(Slot(0)), 0);
    ///         while let Some(message) = messages.next_message().await {
    ///             let (values, got) = message?;
    ///             assert_eq!(values, [got.source.0; 100]);
    ///             count += 1;
    ///         }
    ///         assert_eq!(count, 2);
    ///         Ok(())
    ///     })
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub async fn next_message(&mut self) -> Option<Result<(Vec<T>, Received)>> {
        if self.has_ended {
            return None;
        }
        let message = self.communicator.irecv_any(self.slot).await;
        self.item(message)
    }

    /// The same messages as a [`Stream`](futures_core::Stream), for the combinators of the crates `futures` and
    /// `tokio-stream`. It has the limits of its executor, and not that of the handle.
    ///
    /// ```
    /// use std::pin::pin;
    /// use tasuki::{Rank, Slot, block_on};
    /// use tokio_stream::StreamExt;
    /// tasuki::local(3, |job| {
    ///     let world = job.world();
    ///     if job.rank() != 0 {
    ///         return (0..10).try_for_each(|number: u64| world.send_any(&number, Rank(0), Slot(0)));
    ///     }
    ///     let messages = world.messages_from_any::<u64>(Slot(0)).into_stream();
    ///     let numbers = messages.map_while(|message| message.ok()).map(|(values, _)| values[0]);
    ///     assert_eq!(block_on(pin!(numbers).fold(0, |sum, number| sum + number)), 90);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_stream(self) -> MessageStream<T> {
        MessageStream { messages: self, receive: None }
    }

    fn item(&mut self, message: Result<(Vec<T>, Received)>) -> Option<Result<(Vec<T>, Received)>> {
        if let Err(error) = &message {
            self.has_ended = !error.is_timeout();
            if matches!(error.cause(), Cause::PeerLeft { .. }) {
                return None;
            }
        }
        Some(message)
    }
}

impl<T: Pod> Iterator for MessagesFromAny<T> {
    type Item = Result<(Vec<T>, Received)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let message = self.communicator.recv_any_vec(self.slot);
        self.item(message)
    }
}

/// The messages of a slot, or of any slot, from any member, as a stream. Made by [`MessagesFromAny::into_stream`].
/// Dropping it loses no message.
///
/// ```
/// use tasuki::message::MessageStream;
/// use tasuki::{Rank, Slot, block_on};
/// use tokio_stream::StreamExt;
/// tasuki::local(3, |job| {
///     if job.rank() != 0 {
///         return job.world().send_any(&[job.rank().index(); 10], Rank(0), Slot(0));
///     }
///     let mut messages: MessageStream<usize> = job.world().messages_from_any(Slot(0)).into_stream();
///     block_on(async {
///         while let Some(message) = messages.next().await {
///             let (values, got) = message?;
///             assert_eq!(values, [got.source.index(); 10]);
///         }
///         Ok(())
///     })
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct MessageStream<T: Pod> {
    messages: MessagesFromAny<T>,
    /// The receive of the next message, if it was begun.
    receive: Option<RecvAnyRequest<T>>,
}

impl<T: Pod> Unpin for MessageStream<T> {}

impl<T: Pod> Stream for MessageStream<T> {
    type Item = Result<(Vec<T>, Received)>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        let MessageStream { messages, receive } = &mut *self;
        if messages.has_ended {
            return Poll::Ready(None);
        }
        let begun = receive.get_or_insert_with(|| messages.communicator.irecv_any(messages.slot));
        let message = task::ready!(Pin::new(begun).poll(context));
        *receive = None;
        Poll::Ready(messages.item(message))
    }
}

/// How far a receive is.
#[derive(Debug)]
enum AnyStage<T> {
    Waiting,
    /// The request has taken a message.
    Taken(Vec<T>, TakenMessage),
    Failed(Error),
    /// The message or the error was returned.
    Ended,
}

/// A receive from any member that was begun by [`Communicator::irecv_any`]. [`wait`](Request::wait) or `.await` returns
/// the values, and what is known about the message.
///
/// Errors of a wait: those of [`Communicator::recv_any_vec`]. Of limits, a wait has that of the rank's calls
/// ([`Job::set_timeout`](crate::Job::set_timeout)).
///
/// # Cancel safety
///
/// Dropping the request loses no message. If it has taken one, the message goes back to its place, also beyond the
/// limit of the queue's memory, and the next receive gets it.
///
/// ```
/// use tasuki::{Request, Slot};
/// tasuki::local(1, |job| {
///     let world = job.world();
///     world.send_any(&1, job.rank(), Slot(0))?;
///     let mut request = world.irecv_any::<i32>(Slot(0));
///     assert!(request.test());
///     drop(request);
///     assert_eq!(world.recv_any_vec::<i32>(Slot(0))?.0, [1]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[must_use = "wait() returns the values"]
pub struct RecvAnyRequest<T: Pod> {
    context: Arc<Context>,
    slot: Slot,
    stage: AnyStage<T>,
    senders_left: SendersLeft,
    awaited: AwaitedCondition,
}

impl<T: Pod> fmt::Debug for RecvAnyRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvAnyRequest").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl<T: Pod> RecvAnyRequest<T> {
    /// Takes a message if there is one. Returns what to wait for if the request goes on.
    fn look(&mut self) -> Option<Condition> {
        while let AnyStage::Waiting = self.stage {
            let mut values = Vec::new();
            let (slot, kind) = (self.slot.word(), ValueKind::of::<T>());
            match self.context.look_any(slot, kind, |len| room_for(&mut values, len)) {
                Ok(AnyLook::Message(message)) => self.stage = AnyStage::Taken(values, message),
                Err(error) => self.stage = AnyStage::Failed(error),
                Ok(AnyLook::Nothing(arrival)) => {
                    if let Err(error) = self.senders_left.none_found() {
                        self.stage = AnyStage::Failed(error);
                        continue;
                    }
                    let arrival = Condition::Event(Arc::new(arrival));
                    match self.context.worker().test(&arrival, &|| arrival.call()) {
                        Ok(true) => {}
                        Ok(false) => return Some(arrival),
                        Err(error) => match self.senders_left.note(&self.context, error) {
                            Ok(()) if self.senders_left.is_last_look() => {}
                            Ok(()) => return Some(arrival),
                            Err(error) => self.stage = AnyStage::Failed(error),
                        },
                    }
                }
            }
        }
        None
    }
}

impl<T: Pod> Request for RecvAnyRequest<T> {
    type Value = (Vec<T>, Received);

    fn test(&mut self) -> bool {
        self.look().is_none()
    }

    fn wait(&mut self) -> Result<(Vec<T>, Received)> {
        while let Some(arrival) = self.look() {
            let worker = self.context.worker();
            let call = || arrival.call();
            let waited = worker.wait(&arrival, worker.call_deadline(), &call);
            waited.or_else(|error| self.senders_left.note(&self.context, error))?;
        }
        match std::mem::replace(&mut self.stage, AnyStage::Ended) {
            AnyStage::Taken(values, message) => {
                let got = received::<T>(&self.context, self.context.received_any(&message))?;
                Ok((values, got))
            }
            AnyStage::Failed(error) => Err(not_received::<T>(error)),
            AnyStage::Waiting | AnyStage::Ended => {
                let cause = Cause::AlreadyReturned { what: "the message" };
                Err(self.context.worker().fault(cause, || "irecv_any".into()))
            }
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        match self.look() {
            None => Poll::Ready(()),
            Some(arrival) => {
                self.awaited.set(self.context.worker(), Awaited::only(arrival), context.waker());
                Poll::Pending
            }
        }
    }
}

future_by_request!([T: Pod] RecvAnyRequest<T>);

impl<T: Pod> Drop for RecvAnyRequest<T> {
    fn drop(&mut self) {
        if let AnyStage::Taken(values, message) = &self.stage {
            self.context.put_back_any(message, bytemuck::cast_slice(values));
        }
    }
}
