//! Sends to any-source queues on their way: what `isend_any` returns.

use crate::data::RequestValues;
use crate::engine::Cause;
use crate::member::{about, place_of};
use crate::message::Peer;
use crate::message::request::{SharedValues, Values, ended};
use crate::message::slot::{Slot, not_sent};
use crate::request::{Request, future_by_request};
use crate::{Communicator, Error, Pod, Rank, Result};
use std::fmt;
use std::marker::PhantomData;
use std::task::{self, Poll};
use tasuki_core::base::ValueKind;
use tasuki_message::PendingSendAny;

impl Communicator {
    /// Begins a send like [`send_any`](Communicator::send_any) of `values`, a number, an array or a vector
    /// ([`RequestValues`]). The request's wait, or `.await`, returns them. A send to `None` is over at once ([`Peer`]).
    ///
    /// Does not wait. The message gets its place among the messages of this rank to that member now: no later one, of
    /// [`send_any`](Communicator::send_any) or of another request, is received before it. If the receiver's queue is
    /// full, the next calls of this rank that wait write the message as soon as there is room, also if they wait for
    /// something else; [who makes progress](crate::engine#progress). While a rank computes, a message of its own may
    /// hold up others for which there would be room.
    ///
    /// Errors of this call: no such slot or member; the receiver has left; 4,096 messages of this rank to that member
    /// wait for room, or 256 that are longer than a buffer are under way
    /// ([`Cause::Full`](crate::engine::Cause::Full)); a rank died. Cost: that of `send_any`; if there is no room, a copy of the values too.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(3, |job| {
    ///     let (world, mut sends) = (job.world(), Vec::new());
    ///     if job.rank() != 0 {
    ///         for number in 0..100 {
    ///             sends.push(world.isend_any([job.rank().0, number], Rank(0), Slot(0))?); // more than there is room for
    ///         }
    ///         tasuki::wait_all(sends)?;
    ///     } else {
    ///         let mut next = [0; 3];
    ///         for _ in 0..200 {
    ///             let (values, got) = world.recv_any_vec::<usize>(Slot(0))?;
    ///             assert_eq!(values, [got.source.0, next[got.source.0]]);
    ///             next[got.source.0] += 1;
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn isend_any<D: RequestValues>(
        &self,
        values: D,
        to: impl Peer,
        slot: Slot,
    ) -> Result<SendAnyRequest<D::Value, D>> {
        let (context, me) = (self.messages(), self.messages().worker().rank());
        let place = place_of(context, to, "isend_any")?;
        let rank = place.and_then(|place| context.rank_of(place));
        let mut request = SendAnyRequest {
            send: None,
            values: Values::Own(values.into_vec()),
            has_ended: false,
            slot,
            to: rank,
            me,
            returns: PhantomData,
        };
        if let Some(place) = place {
            let sent = request.begin(self, place);
            request.send = Some(sent.map_err(|error| about(to, not_sent::<D::Value>(error)))?);
        }
        Ok(request)
    }
}

/// A send to a member that receives from any member, begun by [`Communicator::isend_any`]. [`wait`](Request::wait) or
/// `.await` returns the values, when the message is in the receiver's any-source queue or, if it is longer than a buffer
/// of it, when the receiver has fetched it.
///
/// Errors of a wait: those of [`Communicator::send_any`]. After an error of a time limit the send goes on: wait again,
/// [cancel](SendAnyRequest::cancel) it, or drop the request. After any other error [`SendAnyRequest::into_values`]
/// returns the values. Of limits, a wait has that of the rank's calls ([`Job::set_timeout`](crate::Job::set_timeout)).
///
/// ```
/// use tasuki::message::SendAnyRequest;
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let (world, peer) = (job.world(), job.rank_after(1));
///     let mut send: SendAnyRequest<i32> = world.isend_any(vec![7; 1000], peer, Slot(0))?; // longer than a buffer
///     assert_eq!(world.recv_any_vec::<i32>(Slot(0))?.0, [7; 1000]);
///     assert_eq!(send.wait()?, [7; 1000]); // the peer has fetched it
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// If the request is dropped, the send ends by itself. A rank that leaves first writes the messages for which there was
/// no room. One that is longer than a buffer is lost if the receiver has not fetched it by then: wait for those.
#[must_use = "wait() returns the values"]
pub struct SendAnyRequest<T: Pod, D = Vec<T>> {
    /// `None` for nobody.
    send: Option<PendingSendAny>,
    values: Values<T>,
    /// True if a wait has returned the values or an error, or the send was cancelled.
    has_ended: bool,
    slot: Slot,
    /// The receiver's rank in the job; `None` for nobody.
    to: Option<Rank>,
    /// This rank.
    me: Rank,
    returns: PhantomData<fn() -> D>,
}

impl<T: Pod, D> fmt::Debug for SendAnyRequest<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendAnyRequest")
            .field("slot", &self.slot)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

impl<T: Pod, D: RequestValues<Value = T>> SendAnyRequest<T, D> {
    fn begin(&mut self, communicator: &Communicator, to: Rank) -> Result<PendingSendAny> {
        let (context, slot, kind) = (communicator.messages(), self.slot.word(), ValueKind::of::<T>());
        if let Some(sent) = context.try_begin_send_any(self.values.own_bytes(), to, slot, kind)? {
            return Ok(sent);
        }
        let values = SharedValues::new(self.values.take_unused().unwrap_or_default());
        let sent = context.begin_send_any(&values.lend(false), to, slot, kind);
        self.values = Values::Shared(values);
        sent
    }

    /// Cancels the send if the message is not in the receiver's queue yet, or, if it is longer than a buffer, if the
    /// receiver has not begun to fetch it. Returns true if the receiver gets nothing:
    /// [`into_values`](SendAnyRequest::into_values) returns the values. Returns false, and changes nothing, if the
    /// message was sent or has failed, or goes to nobody: [`wait`](Request::wait) returns the values or the error.
    ///
    /// A wait after a cancellation is an error. The call does not wait for the receiver.
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(1, |job| {
    ///     let world = job.world();
    ///     let mut old = world.isend_any(vec![1; 1000], job.rank(), Slot(0))?; // longer than a buffer
    ///     assert!(old.cancel());
    ///     assert_eq!(old.into_values(), Some(vec![1; 1000]));
    ///     let mut new = world.isend_any(vec![2], job.rank(), Slot(0))?;
    ///     assert!(!new.cancel(), "it is in the queue");
    ///     assert_eq!(world.recv_any_vec::<i32>(Slot(0))?.0, [2]);
    ///     new.wait().map(drop)
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&mut self) -> bool {
        let is_cancelled = self.send.as_mut().is_some_and(PendingSendAny::cancel);
        self.has_ended |= is_cancelled;
        is_cancelled
    }

    /// Returns the values of a send that was cancelled or has ended with an error. Returns `None` if the receiver may
    /// still read them or if they were returned already.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let mut send = job.world().isend_any(vec![7; 1000], job.rank_after(1), Slot(0))?; // longer than a buffer
    ///     assert!(send.cancel()); // the peer receives nothing
    ///     assert_eq!(send.into_values(), Some(vec![7; 1000]));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn into_values(mut self) -> Option<Vec<T>> {
        self.values.take_unused()
    }
}

impl<T: Pod, D: RequestValues<Value = T>> Request for SendAnyRequest<T, D> {
    type Value = D;

    fn test(&mut self) -> bool {
        self.has_ended || self.send.as_ref().is_none_or(PendingSendAny::test)
    }

    fn wait(&mut self) -> Result<D> {
        if self.has_ended {
            return Err(ended(self.me, "isend_any", "to", (self.slot, self.to)));
        }
        let sent = self.send.as_mut().map_or(Ok(()), PendingSendAny::finish);
        self.has_ended = !self.send.as_ref().is_some_and(PendingSendAny::is_under_way);
        sent.map_err(not_sent::<T>)?;
        let unused = || Error::new(Cause::Bug("the values of a send that has ended are in use".into()));
        self.values.take_unused().map(D::from_vec).ok_or_else(unused)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        match &mut self.send {
            Some(send) if !self.has_ended => send.poll_end(context.waker()),
            _ => Poll::Ready(()),
        }
    }
}

future_by_request!([T: Pod, D: RequestValues<Value = T>] SendAnyRequest<T, D>);
