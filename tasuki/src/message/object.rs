//! Objects: values of any serde type, encoded.

use crate::engine::Cause;
use crate::member::{about, place_of};
use crate::message::request::receive_vec;
use crate::message::slot::{Slot, not_received, not_sent, room_for};
use crate::message::{Peer, QueueReceived, ReceiveQueue, ReceiveQueueSender};
use crate::{Communicator, Error, Member, Rank, Received, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use tasuki_core::base::ValueKind;
use tasuki_message::{Context, TypedSlot};

/// A value of a serde type as the argument or the result of a [`Handler`](crate::Handler). Needs the cargo feature
/// `serde`.
///
/// A handler takes `&Object<A>`. One that is declared to return `Object<R>` returns an `R`, and so does the wait for
/// its reply. If the argument or the result cannot be encoded or decoded, the call fails with an error that says so,
/// like one whose handler has failed.
///
/// ```
/// use std::collections::BTreeMap;
/// use tasuki::message::Object;
/// use tasuki::{Handler, HandlerCx, Handlers, Request};
///
/// fn count(_: &HandlerCx<'_>, Object(words): &Object<Vec<String>>) -> BTreeMap<String, usize> {
///     let mut counts = BTreeMap::new();
///     words.iter().for_each(|word| *counts.entry(word.clone()).or_default() += 1);
///     counts
/// }
/// const COUNT: Handler<Object<Vec<String>>, Object<BTreeMap<String, usize>>> = Handler::new("count words", count);
///
/// tasuki::local_with(2, Handlers::new().add(COUNT), |job| {
///     let words = Object(["a", "rose", "is", "a", "rose"].map(String::from).to_vec());
///     let counts = COUNT.call(job, job.rank_after(1), &words)?.wait()?;
///     assert_eq!((counts.len(), counts["rose"]), (3, 2));
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// The encoding is that of the crate `postcard`: compact, and without names of fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Object<T>(pub T);

/// Encodes an object.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Cause> {
    postcard::to_stdvec(value).map_err(|error| {
        Cause::Argument(format!(
            "a value of type {} cannot be encoded ({error}); either its own `Serialize` has failed, or it does not know the \
             length of a sequence or map beforehand, as with `#[serde(flatten)]`",
            type_name::<T>()
        ))
    })
}

/// Decodes an object.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Cause> {
    let why = match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => return Ok(value),
        Ok((_, rest)) => format!("{} bytes are left over", rest.len()),
        Err(error) => error.to_string(),
    };
    Err(Cause::Undecodable(format!(
        "{} bytes that a `Serialize` of type {} has encoded do not decode ({why}); the encoding has no names of fields, so \
         `Serialize` and `Deserialize` of the type must agree on each of them: no `skip_serializing_if`, `untagged`, \
         `flatten` or `tag`",
        bytes.len(),
        type_name::<T>()
    )))
}

pub(crate) fn typed<T: 'static>(slot: Slot) -> TypedSlot {
    TypedSlot { slot: slot.word(), kind: ValueKind::of_object::<T>() }
}

/// Returns the member that sends an object. Error: there is none.
pub(crate) fn sender_of(messages: &Context, from: impl Peer, call: &'static str) -> Result<Rank> {
    place_of(messages, from, call)?.ok_or_else(|| {
        let text = "an object from None: nobody sends one";
        messages.worker().fault(Cause::Argument(text.into()), || call.into())
    })
}

/// Decodes a message, which was taken.
pub(crate) fn decode_message<T: DeserializeOwned>(
    bytes: &[u8],
    fault: impl FnOnce(Cause) -> Error,
) -> Result<T> {
    decode(bytes).map_err(|cause| fault(cause).note("the message was received, and is lost"))
}

impl Communicator {
    /// Sends a value of any serde type to `to` on a slot. [`recv_object`](Self::recv_object) of the same type receives
    /// it. Needs the cargo feature `serde`. A send to `None` returns at once ([`Peer`]).
    ///
    /// Derive `Serialize` and `Deserialize` for types of the program. An object matches no receive of plain values, nor
    /// of bytes: both sides get an error. Errors: those of [`send`](Self::send); the value cannot be encoded. Cost: the
    /// encoding into a vector, and a send of as many bytes.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use tasuki::{Rank, Slot};
    /// type Sizes = HashMap<String, Vec<Option<u64>>>;
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     let sizes = Sizes::from([("tree".into(), vec![Some(3), None])]);
    ///     if job.rank() == 0 {
    ///         world.send_object(&sizes, Rank(1), Slot(0))?;
    ///         world.send_object(&String::from("that is all"), Rank(1), Slot(0))?;
    ///     } else {
    ///         assert_eq!(world.recv_object::<Sizes>(Rank(0), Slot(0))?.0, sizes);
    ///         assert_eq!(world.recv_object::<String>(Rank(0), Slot(0))?.0, "that is all");
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_object<T: Serialize + 'static>(&self, value: &T, to: impl Peer, slot: Slot) -> Result<()> {
        let Some(place) = place_of(self.messages(), to, "send_object")? else { return Ok(()) };
        let _limit = self.limited();
        let bytes = encode(value)
            .map_err(|cause| self.messages().call_failed(cause, ("send_object", true), place, slot.word()))?;
        let sent = self.messages().send(&bytes, place, typed::<T>(slot));
        sent.map_err(|error| {
            let error = error.in_outer_call(format!("send_object(slot {} to rank {place})", slot.0));
            about(to, not_sent::<Object<T>>(error))
        })
    }

    /// Receives a value of a serde type, which [`send_object`](Self::send_object) has sent from `from` on that slot, or
    /// on any slot ([`Slot::ANY`]). Needs the cargo feature `serde`. The count of the result is 1.
    ///
    /// Errors: those of [`recv`](Self::recv), but for the length; the message is of another type, or no object; there
    /// is no memory; `from` is `None`. If the bytes do not decode, because `Serialize` and `Deserialize` of the type do
    /// not agree, the message is lost. Cost: that of [`recv_vec`](Self::recv_vec), and the decoding.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     if job.rank() == 0 {
    ///         return world.send_object(&(7_u8, vec![Some(1.5), None]), Rank(1), Slot(3));
    ///     }
    ///     let ((number, row), got) = world.recv_object::<(u8, Vec<Option<f64>>)>(Rank(0), Slot::ANY)?;
    ///     assert_eq!((number, row, got.slot), (7, vec![Some(1.5), None], Slot(3)));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_object<T: DeserializeOwned + 'static>(
        &self,
        from: impl Peer,
        slot: Slot,
    ) -> Result<(T, Received)> {
        let (messages, _limit) = (self.messages(), self.limited());
        let place = sender_of(messages, from, "recv_object")?;
        let received = receive_vec::<u8>("recv_object", messages, place, typed::<T>(slot));
        let (bytes, got) = received.map_err(|error| about(from, not_received::<Object<T>>(error)))?;
        let failed = |cause| messages.call_failed(cause, ("recv_object", false), place, got.slot);
        let value = decode_message(&bytes, failed)?;
        Ok((value, one(got.slot, got.source)))
    }

    /// Sends a value of any serde type to a member that receives from any member
    /// ([`recv_any_object`](Self::recv_any_object)). Needs the cargo feature `serde`. A send to `None` returns at once
    /// ([`Peer`]).
    ///
    /// Errors: those of [`send_any`](Self::send_any); the value cannot be encoded. Cost: the encoding into a vector, and
    /// a send of as many bytes.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), job.rank().0);
    ///     if me != 0 {
    ///         return world.send_any_object(&format!("from {me}"), Rank(0), Slot(2));
    ///     }
    ///     for _ in 1..job.size() {
    ///         let (text, got) = world.recv_any_object::<String>(Slot(2))?;
    ///         assert_eq!(text, format!("from {}", got.source));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_any_object<T: Serialize + 'static>(
        &self,
        value: &T,
        to: impl Peer,
        slot: Slot,
    ) -> Result<()> {
        let (messages, _limit) = (self.messages(), self.limited());
        let Some(place) = place_of(messages, to, "send_any_object")? else { return Ok(()) };
        let TypedSlot { slot, kind } = typed::<T>(slot);
        let bytes = encode(value)
            .map_err(|cause| messages.call_failed(cause, ("send_any_object", true), place, slot))?;
        let sent = messages.send_any(&bytes, place, slot, kind);
        sent.map_err(|error| {
            let error = error.in_outer_call(format!("send_any_object(slot {slot} to rank {place})"));
            about(to, not_sent::<Object<T>>(error))
        })
    }

    /// Receives the oldest object that any member has sent with [`send_any_object`](Self::send_any_object) on that slot,
    /// or on any slot ([`Slot::ANY`]). Needs the cargo feature `serde`. The count of the result is 1.
    ///
    /// Errors: those of [`recv_any`](Self::recv_any), but for the length. A message of another type, or one that is no
    /// object, stays in the queue. One that does not decode, because `Serialize` and `Deserialize` of its type do not
    /// agree, is lost. [`send_any_object`](Self::send_any_object) has an example.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     if job.rank() != 0 {
    ///         return world.send_any_object(&vec![Some(1.5), None], Rank(0), Slot(3));
    ///     }
    ///     let (row, got) = world.recv_any_object::<Vec<Option<f64>>>(Slot::ANY)?;
    ///     assert_eq!((row, got.source.index(), got.slot), (vec![Some(1.5), None], 1, Slot(3)));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_any_object<T: DeserializeOwned + 'static>(&self, slot: Slot) -> Result<(T, Received)> {
        let (messages, _limit) = (self.messages(), self.limited());
        let (TypedSlot { slot, kind }, mut bytes) = (typed::<T>(slot), Vec::new());
        let got = messages.recv_any(slot, kind, |len| room_for(&mut bytes, len));
        let got = got.map_err(not_received::<Object<T>>)?;
        let failed = |cause| messages.call_failed(cause, ("recv_any_object", false), got.source, got.slot);
        Ok((decode_message(&bytes, failed)?, one(got.slot, got.source)))
    }
}

/// What was received, if it is one object.
pub(crate) fn one(slot: u32, source: Rank) -> Received {
    Received { slot: Slot(slot as usize), source: Member(source.0), count: 1 }
}

impl ReceiveQueueSender {
    /// Sends a value of any serde type to the queue, with that slot. [`ReceiveQueue::recv_object`] of the same type
    /// receives it. Needs the cargo feature `serde`.
    ///
    /// Errors: those of [`send`](Self::send); the value cannot be encoded.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     job.open_receive_queue(inbox.address())?.send_object(&Some(String::from("in")), Slot(0))?;
    ///     assert_eq!(inbox.recv_object::<Option<String>>(Slot(0))?.0.as_deref(), Some("in"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_object<T: Serialize + 'static>(&mut self, value: &T, slot: Slot) -> Result<()> {
        let bytes = encode(value).map_err(|cause| self.fault(cause, "send_object"))?;
        self.send_bytes(&bytes, ValueKind::of_object::<T>(), slot)
    }
}

impl ReceiveQueue {
    /// Receives the oldest object with that slot, or of any slot ([`Slot::ANY`]). Needs the cargo feature `serde`.
    ///
    /// Errors: those of [`recv_vec`](Self::recv_vec). A message of another type stays in the queue. One that does not
    /// decode, because `Serialize` and `Deserialize` of its type do not agree, is lost.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     let mut to = job.open_receive_queue(inbox.address())?;
    ///     to.send_object(&vec![String::from("one"), String::from("two")], Slot(3))?;
    ///     assert!(inbox.recv_vec::<u8>(Slot(3)).is_err(), "it is an object");
    ///     let (words, received) = inbox.recv_object::<Vec<String>>(Slot(3))?;
    ///     assert_eq!((words.concat().as_str(), received.source), ("onetwo", tasuki::Rank(0)));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_object<T: DeserializeOwned + 'static>(&mut self, slot: Slot) -> Result<(T, QueueReceived)> {
        let (bytes, got) = self.recv_bytes(ValueKind::of_object::<T>(), slot)?;
        let fault = |cause| self.fault(cause, "recv_object").with_peer(Some(got.source));
        let value = decode_message(&bytes, fault)?;
        Ok((value, QueueReceived { slot: Slot(got.slot as usize), source: got.source, count: 1 }))
    }
}
