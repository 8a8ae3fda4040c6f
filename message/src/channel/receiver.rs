//! The receiving end of a channel.

use super::counter::{OwnCounter, PeerCounter, not_made};
use super::early_drop::{EarlyDrop, EarlyEnd};
use super::handshake::{Accept, RingOffer};
use super::sender::slot_of_offers;
use super::{ChannelElement, DroppedEnd, End, KeptMemory};
use crate::buffer::MessageBuffer;
use crate::context::Context;
use crate::progress::operation::MessageOp;
use crate::protocol::outcome::Outcome;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::panicking;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition, RevocableBuffer, WaitEvent, Worker};
use tasuki_core::fabric::LinePayload;
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

/// The receiving end of a channel, in numbers of elements. The caller has their memory.
#[derive(Debug)]
pub struct ChannelReceiver {
    end: End,
    /// The offer, until the sender's rank has received it.
    offer: Option<Arc<MessageOp>>,
    committed: OwnCounter,
    /// The sender's counter, when it has accepted the offer.
    released: Option<PeerCounter>,
    capacity: u64,
    /// How many elements were committed in all, as far as this end knows.
    until: u64,
    read: u64,
    /// The place in the ring of the next element.
    position: u64,
    /// The value of `committed` that was read last.
    seen: u64,
    is_dropped: bool,
    failed: Option<Error>,
    /// Bytes of the ring, until it was freed.
    ring_bytes: u64,
    /// The ring, when its owner has dropped it.
    kept: Option<KeptMemory>,
}

impl ChannelReceiver {
    /// Makes the receiving end of a channel from a member, with a ring of `capacity` elements. Waits for nothing.
    pub fn new(
        context: &Arc<Context>,
        from: Rank,
        slot: u32,
        element: ChannelElement,
        (ring, capacity): (GlobalAddress, u64),
        limit: Option<Duration>,
    ) -> Result<ChannelReceiver> {
        let mut end = End::new(context, (from, "from"), slot, element, limit)?;
        let worker = end.worker();
        context.progress.channels.sweep(worker)?;
        let call = || end.call("channel_from");
        let committed = OwnCounter::new(worker).map_err(|error| not_made(error, worker, call()))?;
        let offer = RingOffer::new(&element, ring, capacity, (committed.signal, committed.base));
        let offer = send_offer(context, &offer, from, slot).map_err(|error| {
            committed.free(worker);
            error.in_outer_call(call())
        })?;
        let ring_bytes = capacity * element.size;
        end.add_bytes(OwnCounter::BYTES + ring_bytes);
        Ok(ChannelReceiver {
            end,
            offer,
            committed,
            released: None,
            capacity,
            until: 0,
            read: 0,
            position: 0,
            seen: 0,
            is_dropped: false,
            failed: None,
            ring_bytes,
            kept: None,
        })
    }

    /// Returns the number of elements that lie in a row from the next one on, as far as this end knows.
    #[inline(always)]
    pub fn available(&self) -> u64 {
        (self.until - self.read).min(self.capacity - self.position)
    }

    /// Returns the place of the next element in the ring.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns how many elements were released.
    pub fn released(&self) -> u64 {
        self.read
    }

    /// Counts memory that the caller has taken for the channel.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.end.add_bytes(bytes);
    }

    /// Stops to count memory that the caller has freed.
    pub fn subtract_bytes(&mut self, bytes: u64) {
        self.end.subtract_bytes(bytes);
    }

    /// Waits until there is an element, or none will come.
    #[cold]
    pub fn wait_for_element(&mut self) -> Result<()> {
        let _limit = self.end.limited();
        while !self.look("peek")? {
            self.wait_for_change("peek")?;
        }
        Ok(())
    }

    /// Returns true if there is an element, or none will come. Makes progress.
    #[cold]
    pub fn try_element(&mut self) -> Result<bool> {
        self.end.worker().progress_briefly();
        if self.look("try_peek")? {
            return Ok(true);
        }
        let tested = self.end.worker().test(&self.condition(), &|| self.end.call("try_peek"));
        tested.map_err(|error| self.after_failed_wait(error))?;
        self.look("try_peek")
    }

    /// Returns `Ready` if a wait for an element would not wait; otherwise the task of `waker` is woken then.
    pub fn poll_element(&mut self, awaited: &mut AwaitedCondition, waker: &Waker) -> Poll<()> {
        if self.available() > 0 || !matches!(self.try_element(), Ok(false)) {
            return Poll::Ready(());
        }
        awaited.set(self.end.worker(), Awaited::only(self.condition()), waker);
        Poll::Pending
    }

    /// Waits until the sender says something that was not seen yet, or has received the offer.
    fn wait_for_change(&mut self, name: &str) -> Result<()> {
        let (worker, call) = (self.end.worker(), || self.end.call(name));
        let waited = match self.condition() {
            Condition::Signal(cell, threshold, from) => worker.wait_signal(cell, threshold, from, &call),
            other => worker.wait(&other, worker.call_deadline(), &call),
        };
        waited.map_err(|error| self.after_failed_wait(error))
    }

    /// Withdraws the offer if the sender's rank has left without having made its end: the caller learns that now, and
    /// the end of this rank need not report a message that nobody has received.
    #[cold]
    fn after_failed_wait(&mut self, error: Error) -> Error {
        if let (Cause::PeerLeft { .. }, Some(offer)) = (error.cause(), &self.offer)
            && self.end.context.withdraw_detached(offer)
        {
            (self.offer, self.failed) = (None, Some(error.clone()));
        }
        error
    }

    /// The sender says something that was not seen yet, or has received the offer. A rank that leaves receives no offer
    /// for which it has no sender. A sender that was dropped before it had accepted the offer says so while its rank
    /// leaves.
    fn condition(&self) -> Condition {
        let threshold = self.committed.base.wrapping_add(self.seen + 1);
        match self.released {
            Some(_) => Condition::Signal(self.committed.cell, threshold, Some(self.end.peer)),
            None => Condition::Event(Arc::new(Accepted {
                worker: self.end.worker().clone(),
                offer: self.offer.clone(),
                committed: self.committed,
                peer: self.end.peer,
                call: self.end.call("peek"),
            })),
        }
    }

    fn is_closed(&self) -> bool {
        self.seen % 2 == 1
    }

    /// Returns true if the offer was withdrawn or refused: no sender will ever use the ring.
    fn is_unused(&self) -> bool {
        self.released.is_none() && self.failed.is_some()
    }

    /// Looks at what the sender has said. Returns true if there is an element, or none will come. Never waits.
    fn look(&mut self, call: &str) -> Result<bool> {
        if self.is_dropped {
            return Err(self.end.fault(Cause::AlreadyReturned { what: "the channel" }, call));
        }
        self.note()?;
        self.note_offer(call);
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.until > self.read || self.is_closed()),
        }
    }

    /// Notes whether the sender's rank has received the offer, or has refused it: it has another receive on the slot.
    fn note_offer(&mut self, call: &str) {
        let Some(offer) = &self.offer else { return };
        self.end.context.progress.step(self.end.worker(), offer);
        if let Some(outcome) = offer.end() {
            if let Outcome::Failed(cause) = outcome {
                self.failed = Some(self.end.fault(cause, call));
            }
            self.offer = None;
        }
    }

    /// Reads the counter. Takes the answer to the offer when it has come.
    fn note(&mut self) -> Result<()> {
        self.seen = self.committed.read(self.end.worker());
        if self.seen < 2 {
            return Ok(());
        }
        if self.released.is_none() {
            let accept: Result<Accept, Cause> = self.committed.payload(self.end.worker());
            let accept = accept.map_err(|cause| self.end.fault(cause, "peek"))?;
            let counter =
                PeerCounter::new(self.end.worker(), self.end.peer, accept.counter(), LinePayload::default());
            self.released = Some(counter.map_err(|cause| self.end.fault(cause, "peek"))?);
            self.failed = accept.refusal(&self.end.element).map(|cause| self.end.fault(cause, "peek"));
        }
        self.until = self.seen / 2 - 1;
        Ok(())
    }

    /// Lets the sender use the places of the first `count` elements again.
    #[inline(always)]
    pub fn release(&mut self, count: u64) -> Result<()> {
        self.end.check("release")?;
        if count > self.available() {
            return Err(self.too_many(count));
        }
        // Nothing is there to release before the sender has accepted, and after the end was freed.
        let Some(released) = self.released.as_ref().filter(|_| count > 0) else { return Ok(()) };
        released.write(self.end.worker(), 2 * (self.read + count), &|| self.end.call("release"))?;
        self.read += count;
        self.position += count;
        if self.position == self.capacity {
            self.position = 0;
        }
        Ok(())
    }

    #[cold]
    fn too_many(&self, count: u64) -> Error {
        let text = format!("{count} elements to release, of {} that are there in a row", self.available());
        self.end.fault(Cause::Argument(text), "release")
    }

    /// Tells the sender that nobody reads any more. Returns false if it has not accepted the offer: it cannot be told
    /// yet.
    fn drop_end(&mut self) -> Result<bool> {
        self.note()?;
        let Some(released) = &self.released else { return Ok(false) };
        if !self.is_dropped {
            released.write(self.end.worker(), 2 * self.read + 1, &|| self.end.call("free"))?;
            self.is_dropped = true;
        }
        self.until = self.read; // nothing is read any more
        Ok(true)
    }

    /// Tells the sender that nobody reads any more, and waits until it is closed: then it writes into the ring no more,
    /// and the ring is the caller's again.
    pub fn free(&mut self) -> Result<()> {
        let _limit = self.end.limited();
        while !self.is_unused() && (!self.drop_end()? || !self.is_closed()) {
            self.wait_for_change("free")?;
            self.note_offer("free");
        }
        let ring_bytes = std::mem::take(&mut self.ring_bytes);
        self.subtract_bytes(ring_bytes);
        Ok(())
    }

    /// The error of a second `free`: the ring was returned.
    #[cold]
    pub fn already_freed(&self) -> Error {
        self.end.fault(Cause::AlreadyReturned { what: "the ring" }, "free")
    }

    /// Ends the channel, and frees the ring, which is `memory`, when the sender is closed. A thread that panics does
    /// not end it: the sender learns of the death of the rank. It may still write into the ring, so that stays until it
    /// is closed.
    pub fn retire(mut self, memory: Option<KeptMemory>) {
        self.kept = memory.or(self.kept.take());
        let worker = self.end.worker().clone();
        let context = self.end.context.clone();
        if !panicking() {
            if worker.check_alive().is_err() {
                return;
            }
            if self.is_unused() {
                self.committed.free(&worker);
                let bytes = self.end.bytes;
                self.end.subtract_bytes(bytes);
                return;
            }
            // An error says that the job is over, or the sender's rank has gone.
            if let Ok(false) = self.drop_end() {
                EarlyDrop::add(&context, Box::new(self));
                return;
            }
        }
        let dropped = [DroppedEnd::new(self.committed, self.end.bytes, self.kept)];
        match panicking() {
            true => context.progress.channels.keep(dropped),
            false => drop(context.progress.channels.free(&worker, dropped)), // never fails
        }
    }
}

impl EarlyEnd for ChannelReceiver {
    fn can_end(&self) -> bool {
        self.committed.read(self.end.worker()) >= 2
    }

    fn awaited(&self) -> Option<Condition> {
        None // a sender that this rank leaves without an answer learns that the rank has left
    }

    fn end(self: Box<Self>) {
        self.retire(None);
    }
}

/// Sends the offer, by a send that ends by itself. Returns it unless it has ended.
fn send_offer(
    context: &Arc<Context>,
    offer: &RingOffer,
    to: Rank,
    slot: u32,
) -> Result<Option<Arc<MessageOp>>> {
    let (bytes, slot) = (bytemuck::bytes_of(offer), slot_of_offers(slot));
    if context.try_begin_send(bytes, to, slot)?.is_some() {
        return Ok(None);
    }
    let buffer = MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes.to_vec()));
    Ok(context.begin_send(buffer, to, slot)?.detached())
}

/// The sender has accepted or refused the offer, or its rank has received it.
#[derive(Debug)]
struct Accepted {
    worker: Arc<Worker>,
    /// The offer, if it was not received yet.
    offer: Option<Arc<MessageOp>>,
    committed: OwnCounter,
    peer: Rank,
    call: String,
}

impl WaitEvent for Accepted {
    fn happened(&self) -> bool {
        self.committed.read(&self.worker) >= 2 || self.offer.as_ref().is_some_and(|offer| offer.is_over())
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.peer, if self.offer.is_some() { RankStage::Leaving } else { RankStage::Left }))
    }

    fn needs_message_of(&self) -> Option<Rank> {
        Some(self.peer)
    }

    fn call(&self) -> String {
        self.call.clone()
    }
}
