//! The requests of a scope.

use crate::engine::Cause;
use crate::message::scope::{finish, take};
use crate::message::scope_list::{ScopeList, ScopeMessage};
use crate::message::slot::{Received, Slot, received_values};
use crate::request::{Request, finish_limited, future_by_request};
use crate::{Error, Rank, Result};
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{self, Poll};
use tasuki_core::engine::{Awaited, Condition};
use tasuki_message::{Context, PostedRecv};

/// A message that a [`Scope`](crate::Scope) has begun. The wait for a send returns `()` (`V`), that for a receive what
/// was [`Received`].
///
/// It may be ignored: the end of the scope, and [`Scope::wait_all`](crate::Scope::wait_all), wait for all messages.
/// After that a wait is an error. Errors of a wait: those of the message; it was waited for already.
///
/// ```
/// use tasuki::{Request, Slot};
/// tasuki::local(2, |job| {
///     let (peer, mut got) = (job.rank_after(1), [0; 10]);
///     let count = job.world().scope(|s| {
///         let mut receive = s.recv(&mut got, peer, Slot(0))?;
///         s.send([7, 8, 9], peer, Slot(0))?; // its request may be ignored
///         Ok(receive.wait()?.count)
///     })?;
///     assert_eq!(got[..count], [7, 8, 9]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping it changes nothing.
// What a poll learns is kept in the list. A request that were more than numbers and references would cost a dozen
// stores for each message of a scope, though most scopes ignore it.
#[derive(Debug)]
pub struct ScopeRequest<'scope, V> {
    context: &'scope Arc<Context>,
    list: &'scope ScopeList<'scope>,
    /// `None`: the message is from or to nobody.
    peer: Option<Rank>,
    slot: Slot,
    values: &'static ValueType,
    /// The state of the list when the message was begun.
    generation: u32,
    is_over: bool,
    of: PhantomData<fn() -> V>,
}

/// The type of the values of a message.
#[derive(Debug)]
pub(super) struct ValueType {
    bytes: usize,
    name: fn() -> &'static str,
}

impl ValueType {
    pub(super) const fn of<T>() -> ValueType {
        ValueType { bytes: size_of::<T>(), name: std::any::type_name::<T> }
    }
}

impl<'scope, V> ScopeRequest<'scope, V> {
    #[inline(always)]
    pub(super) fn new(
        context: &'scope Arc<Context>,
        list: &'scope ScopeList<'scope>,
        peer: Option<Rank>,
        slot: Slot,
        values: &'static ValueType,
    ) -> ScopeRequest<'scope, V> {
        let generation = list.generation();
        ScopeRequest { context, list, peer, slot, values, generation, is_over: false, of: PhantomData }
    }

    /// The peer, if there is something to wait for.
    fn peer(&self) -> Option<Rank> {
        self.peer.filter(|_| !self.is_over && self.generation == self.list.generation())
    }

    /// Begins the only wait for the message. Returns the peer; `None` for nobody.
    fn begin_wait(&mut self) -> Result<Option<Rank>> {
        let peer = self.peer();
        if self.is_over || peer.is_none() && self.peer.is_some() {
            return Err(self.ended());
        }
        self.is_over = true;
        Ok(peer)
    }

    #[cold]
    fn ended(&self) -> Error {
        let with = self.peer.and_then(|peer| self.context.rank_of(peer));
        let with = with.map_or(String::new(), |rank| format!(" with rank {rank}"));
        let call = || format!("wait(slot {}{with} of a scope)", self.slot.0);
        self.context.worker().fault(Cause::AlreadyReturned { what: "the message" }, call)
    }
}

impl Request for ScopeRequest<'_, ()> {
    type Value = ();

    fn test(&mut self) -> bool {
        let Some(peer) = self.peer() else { return true };
        if self.list.has_sent(peer, self.slot.word()) {
            return true;
        }
        let mut send = self.list.find_send(peer, self.slot.word());
        match send.as_mut().and_then(|send| send.message()) {
            Some(ScopeMessage::Send(send, _)) => send.test(),
            _ => true,
        }
    }

    fn wait(&mut self) -> Result<()> {
        if self.context.worker().has_limit() {
            finish_limited(self)?;
        }
        let Some(peer) = self.begin_wait()? else { return Ok(()) };
        if let Some(sent) = self.list.find_sent(peer, self.slot.word()) {
            self.context.discard_sent(sent);
            return Ok(());
        }
        let send = self.list.find_send(peer, self.slot.word()).and_then(|send| send.take());
        let sent = finish(self.context, send.ok_or_else(|| self.ended())?);
        sent.map(drop).map_err(|error| error.name_type((self.values.name)(), true))
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        let Some(peer) = self.peer() else { return Poll::Ready(()) };
        if self.list.has_sent(peer, self.slot.word()) {
            return Poll::Ready(());
        }
        let mut send = self.list.find_send(peer, self.slot.word());
        match send.as_mut().and_then(|send| send.message()) {
            Some(ScopeMessage::Send(send, _)) => send.poll_end(context.waker()),
            _ => Poll::Ready(()),
        }
    }
}

future_by_request!(['scope] ScopeRequest<'scope, ()>);

impl<'scope> ScopeRequest<'scope, Received> {
    /// The short receive, posted again if necessary, and its place in the list.
    fn posted(&self, peer: Rank) -> Option<(usize, PostedRecv<'scope>)> {
        let (place, posted) = self.list.find_posted(peer, self.slot.word())?;
        let again = self.context.repost_if_unfit(&posted).ok()?;
        again.into_iter().for_each(|again| self.list.replace_posted(place, again));
        Some((place, again.unwrap_or(posted)))
    }
}

impl Request for ScopeRequest<'_, Received> {
    type Value = Received;

    fn test(&mut self) -> bool {
        let Some(peer) = self.peer() else { return true };
        if let Some((_, posted)) = self.posted(peer) {
            return self.context.test_posted(&posted);
        }
        let mut receive = self.list.find_receive(peer, self.slot.word());
        match receive.as_mut().and_then(|receive| receive.message()) {
            Some(ScopeMessage::Receive(receive, _)) => receive.test(),
            _ => true,
        }
    }

    fn wait(&mut self) -> Result<Received> {
        if self.context.worker().has_limit() {
            finish_limited(self)?;
        }
        let Some(peer) = self.begin_wait()? else { return Ok(Received::nothing(self.slot)) };
        let got = match self.list.find_posted(peer, self.slot.word()) {
            Some((place, _)) => {
                let posted = self.list.take_posted(place).flatten().ok_or_else(|| self.ended())?;
                take(self.context, posted).map(Some)
            }
            None => {
                let receive = self.list.find_receive(peer, self.slot.word());
                let receive = receive.and_then(|receive| receive.take()).ok_or_else(|| self.ended())?;
                finish(self.context, receive)
            }
        };
        let got = got.map_err(|error| error.name_type((self.values.name)(), false))?;
        received_values(self.context, got.ok_or_else(|| self.ended())?, self.values.bytes)
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        let Some(peer) = self.peer() else { return Poll::Ready(()) };
        let Some((place, posted)) = self.posted(peer) else {
            let mut receive = self.list.find_receive(peer, self.slot.word());
            return match receive.as_mut().and_then(|receive| receive.message()) {
                Some(ScopeMessage::Receive(receive, _)) => receive.poll(context.waker()),
                _ => Poll::Ready(()),
            };
        };
        if self.context.test_posted(&posted) {
            return Poll::Ready(());
        }
        let Some(arrival) = self.context.arrival(&posted) else { return Poll::Ready(()) };
        let arrival = Awaited::only(Condition::Event(Arc::new(arrival)));
        self.list.await_posted(place, self.context.worker(), arrival, context.waker());
        Poll::Pending
    }
}

future_by_request!(['scope] ScopeRequest<'scope, Received>);

const _: () = assert!(!std::mem::needs_drop::<ScopeRequest<'_, Received>>());
