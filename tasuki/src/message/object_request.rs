//! Objects on their way: what `isend_object` and `irecv_object` return.

use crate::member::{about, place_of};
use crate::message::object::{decode_message, encode, one, sender_of, typed};
use crate::message::request::{RecvRequest, SendRequest};
use crate::message::slot::{Slot, not_received, not_sent};
use crate::message::{Object, Peer};
use crate::request::{Request, future_by_request};
use crate::{Communicator, Received, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::task::{self, Poll};
use tasuki_core::base::Rank;

/// A send of an object that was begun by [`Communicator::isend_object`]. It has a copy of the value, encoded.
///
/// Errors of a wait: those of [`Communicator::send`]. After a full send buffer the send goes on: wait again.
///
/// ```
/// use tasuki::message::ObjectSendRequest;
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let (world, peer) = (job.world(), job.rank_after(1));
///     let mut name = String::from("one");
///     let mut send: ObjectSendRequest<String> = world.isend_object(&name, peer, Slot(0))?;
///     name.clear(); // the request has a copy
///     assert_eq!(world.recv_object::<String>(peer, Slot(0))?.0, "one");
///     send.wait()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// If the request is dropped, the send ends by itself, also while this rank leaves.
#[must_use = "wait() returns the errors"]
#[derive(Debug)]
pub struct ObjectSendRequest<T> {
    send: SendRequest<u8>,
    of: PhantomData<fn(&T)>,
}

/// A receive of an object that was begun by [`Communicator::irecv_object`]. [`wait`](Request::wait) or `.await` returns
/// the value, with what was received.
///
/// Errors of a wait: those of [`Communicator::recv_object`].
///
/// ```
/// use tasuki::message::ObjectRecvRequest;
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let (world, peer) = (job.world(), job.rank_after(1));
///     let mut receive: ObjectRecvRequest<Vec<String>> = world.irecv_object(peer, Slot(0))?;
///     world.send_object(&vec![format!("from {}", job.rank())], peer, Slot(0))?;
///     assert_eq!(receive.wait()?.0, [format!("from {peer}")]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping the request withdraws the receive and loses no message, as for [`RecvRequest`].
#[must_use = "wait() returns the object"]
#[derive(Debug)]
pub struct ObjectRecvRequest<T> {
    receive: RecvRequest<u8>,
    communicator: Communicator,
    /// The sender's number in the communicator.
    from: Rank,
    of: PhantomData<fn() -> T>,
}

impl Communicator {
    /// Begins to send a value of any serde type to `to` on a slot. Needs the cargo feature `serde`. Does not wait. A send
    /// to `None` is over at once ([`Peer`]).
    ///
    /// Errors: those of [`isend`](Self::isend); the value cannot be encoded. Cost: the encoding into a vector, and a
    /// send of as many bytes.
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(3, |job| {
    ///     let (world, next, previous) = (job.world(), job.rank_after(1), job.rank_after(-1));
    ///     let mut receive = world.irecv_object::<Option<String>>(previous, Slot(0))?;
    ///     let mut send = world.isend_object(&Some(format!("from {}", job.rank())), next, Slot(0))?;
    ///     let (text, received) = receive.wait()?;
    ///     assert_eq!((text, received.count), (Some(format!("from {previous}")), 1));
    ///     send.wait()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn isend_object<T: Serialize + 'static>(
        &self,
        value: &T,
        to: impl Peer,
        slot: Slot,
    ) -> Result<ObjectSendRequest<T>> {
        let messages = self.messages();
        let place = place_of(messages, to, "isend_object")?;
        let bytes = match place {
            None => Vec::new(),
            Some(place) => encode(value)
                .map_err(|cause| messages.call_failed(cause, ("isend_object", true), place, slot.word()))?,
        };
        let send = SendRequest::of_kind(messages, bytes, place, (slot, typed::<T>(slot)));
        Ok(ObjectSendRequest { send: send.map_err(|error| about(to, error))?, of: PhantomData })
    }

    /// Begins to receive a value of a serde type, which [`send_object`](Self::send_object) or
    /// [`isend_object`](Self::isend_object) sends from `from` on that slot, or on any slot ([`Slot::ANY`]). Needs the
    /// cargo feature `serde`. Does not wait.
    ///
    /// Errors: those of [`irecv_vec`](Self::irecv_vec); `from` is `None`.
    ///
    /// ```
    /// use tasuki::{Rank, Slot, block_on};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     if job.rank() == 0 {
    ///         return world.send_object(&vec![Some(1.5), None], Rank(1), Slot(3));
    ///     }
    ///     let (row, _) = block_on(async { world.irecv_object::<Vec<Option<f64>>>(Rank(0), Slot(3))?.await })?;
    ///     assert_eq!(row, [Some(1.5), None]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn irecv_object<T: DeserializeOwned + 'static>(
        &self,
        from: impl Peer,
        slot: Slot,
    ) -> Result<ObjectRecvRequest<T>> {
        let messages = self.messages();
        let place = sender_of(messages, from, "irecv_object")?;
        let receive = RecvRequest::of_any_length(messages, Some(place), (slot, typed::<T>(slot)));
        let receive = receive.map_err(|error| about(from, not_received::<Object<T>>(error)))?;
        Ok(ObjectRecvRequest { receive, communicator: self.clone(), from: place, of: PhantomData })
    }
}

impl<T> ObjectSendRequest<T> {
    /// Cancels the send if no receive has met it yet, as [`SendRequest::cancel`] does.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut send = job.world().isend_object(&Some(7), Rank(1), Slot(0))?;
    ///         assert!(send.cancel()); // rank 1 has not begun its receive
    ///         job.barrier()?;
    ///         job.world().send_object(&Some(8), Rank(1), Slot(0))?;
    ///     } else {
    ///         job.barrier()?;
    ///         assert_eq!(job.world().recv_object::<Option<i32>>(Rank(0), Slot(0))?.0, Some(8));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&mut self) -> bool {
        self.send.cancel()
    }
}

impl<T> ObjectRecvRequest<T> {
    /// Cancels the receive if no message has met it yet, as [`RecvRequest::cancel`] does.
    ///
    /// ```
    /// use tasuki::{Rank, Request, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut receive = job.world().irecv_object::<String>(Rank(1), Slot(0))?;
    ///         assert!(receive.cancel()); // rank 1 has not sent anything yet
    ///         job.barrier()?;
    ///         assert_eq!(job.world().recv_object::<Option<i32>>(Rank(1), Slot(0))?.0, Some(8));
    ///     } else {
    ///         job.barrier()?;
    ///         job.world().send_object(&Some(8), Rank(0), Slot(0))?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn cancel(&mut self) -> bool {
        self.receive.cancel()
    }
}

impl<T> Request for ObjectSendRequest<T> {
    type Value = ();

    fn test(&mut self) -> bool {
        self.send.test()
    }

    fn wait(&mut self) -> Result<()> {
        self.send.wait().map(drop).map_err(not_sent::<Object<T>>)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.send.poll_finished(context)
    }
}

impl<T: DeserializeOwned> Request for ObjectRecvRequest<T> {
    type Value = (T, Received);

    fn test(&mut self) -> bool {
        self.receive.test()
    }

    fn wait(&mut self) -> Result<(T, Received)> {
        let (bytes, got) = self.receive.wait().map_err(not_received::<Object<T>>)?;
        let slot = got.slot.word();
        let failed =
            |cause| self.communicator.messages().call_failed(cause, ("irecv_object", false), self.from, slot);
        Ok((decode_message(&bytes, failed)?, one(slot, self.from)))
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.receive.poll_finished(context)
    }
}

future_by_request!([T] ObjectSendRequest<T>);
future_by_request!([T: DeserializeOwned] ObjectRecvRequest<T>);
