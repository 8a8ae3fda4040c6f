//! The sending end of a channel.

use super::counter::{OwnCounter, PeerCounter, not_made};
use super::early_drop::EarlyDrop;
use super::handshake::{Accept, RingOffer};
use super::{ChannelElement, DroppedEnd, End};
use crate::buffer::MessageBuffer;
use crate::context::Context;
use crate::request::PendingRecv;
use crate::typed_slot::TypedSlot;
use bytemuck::Zeroable;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::panicking;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank, Result, ValueKind};
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition, RevocableBuffer, Worker};
use tasuki_core::fabric::LinePayload;
use tasuki_core::segment::GlobalAddress;

/// Returns the slot of offers. No message of the program matches it, not even bytes.
pub(super) fn slot_of_offers(slot: u32) -> TypedSlot {
    TypedSlot { slot, kind: ValueKind::of_object::<RingOffer>() }
}

/// How far a sender is.
#[derive(Debug)]
enum Stage {
    /// The offer is awaited. Its bytes go to the buffer if a message waited for the receive when it began.
    Offered(PendingRecv, Arc<RevocableBuffer>),
    Open(PeerCounter),
    /// It said that no element comes.
    Closed,
    /// The handshake has failed.
    Failed(Error),
}

/// The sending end of a channel, in numbers of elements. The caller has their memory.
#[derive(Debug)]
pub struct ChannelSender {
    end: End,
    stage: Stage,
    released: OwnCounter,
    ring: GlobalAddress,
    capacity: u64,
    /// How many elements may be committed in all, as far as this end knows.
    limit: u64,
    sent: u64,
    /// The place in the ring of the next element.
    position: u64,
    /// The value of `released` that was read last.
    seen: u64,
}

impl ChannelSender {
    /// Makes the sending end of a channel to a member. Waits for nothing.
    pub fn new(
        context: &Arc<Context>,
        to: Rank,
        slot: u32,
        element: ChannelElement,
        limit: Option<Duration>,
    ) -> Result<ChannelSender> {
        let end = End::new(context, (to, "to"), slot, element, limit)?;
        let worker = end.worker();
        context.progress.channels.sweep(worker)?;
        let call = || end.call("channel_to");
        let buffer = RevocableBuffer::zeroed(size_of::<RingOffer>());
        let into = || MessageBuffer::Unregistered(buffer.clone());
        let offer = context.begin_recv(size_of::<RingOffer>(), into, to, slot_of_offers(slot));
        let offer = offer.map_err(|error| error.in_outer_call(call()))?;
        let released = OwnCounter::new(worker).map_err(|error| not_made(error, worker, call()))?;
        let mut sender = ChannelSender {
            end,
            stage: Stage::Offered(offer, buffer),
            released,
            ring: GlobalAddress::NULL,
            capacity: 0,
            limit: 0,
            sent: 0,
            position: 0,
            seen: 0,
        };
        sender.add_bytes(OwnCounter::BYTES);
        Ok(sender)
    }

    /// Counts memory that the caller has taken for the channel.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.end.add_bytes(bytes);
    }

    /// Stops to count memory that the caller has freed.
    pub fn subtract_bytes(&mut self, bytes: u64) {
        self.end.subtract_bytes(bytes);
    }

    /// Returns the worker of the rank.
    pub fn worker(&self) -> &Worker {
        self.end.worker()
    }

    /// Returns the ring and its number of elements. Null until a wait for room has returned.
    pub fn ring(&self) -> (GlobalAddress, u64) {
        (self.ring, self.capacity)
    }

    /// Returns true if a commit makes visible what stores have written into the ring.
    pub fn is_direct(&self) -> bool {
        matches!(&self.stage, Stage::Open(committed) if committed.is_direct())
    }

    /// Returns how many elements may be filled from the next place on, as far as this end knows.
    #[inline(always)]
    pub fn room(&self) -> u64 {
        (self.limit - self.sent).min(self.capacity - self.position)
    }

    /// Returns the place of the next element in the ring.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Waits until an element may be filled.
    #[cold]
    pub fn wait_for_room(&mut self) -> Result<()> {
        let _limit = self.end.limited();
        while !self.look("reserve")? {
            let (worker, call) = (self.end.worker(), || self.end.call("reserve"));
            match &self.stage {
                Stage::Offered(offer, _) => worker.wait(&offer.awaited(), worker.call_deadline(), &call)?,
                _ => worker.wait_signal(self.released.cell, self.threshold(), Some(self.end.peer), &call)?,
            }
        }
        Ok(())
    }

    /// Returns true if an element may be filled. Makes progress.
    #[cold]
    pub fn try_room(&mut self) -> Result<bool> {
        self.end.worker().progress_briefly();
        if self.look("try_reserve")? {
            return Ok(true);
        }
        if let Stage::Offered(..) = self.stage {
            return Ok(false);
        }
        self.end.worker().test(&self.condition(), &|| self.end.call("try_reserve"))?;
        self.look("try_reserve")
    }

    /// Returns `Ready` if a wait for room would not wait; otherwise the task of `waker` is woken then.
    pub fn poll_room(&mut self, awaited: &mut AwaitedCondition, waker: &Waker) -> Poll<()> {
        loop {
            if self.room() > 0 || !matches!(self.try_room(), Ok(false)) {
                return Poll::Ready(());
            }
            match &self.stage {
                Stage::Offered(offer, _) if offer.poll(waker).is_ready() => {}
                Stage::Offered(..) => return Poll::Pending,
                _ => {
                    awaited.set(self.end.worker(), Awaited::only(self.condition()), waker);
                    return Poll::Pending;
                }
            }
        }
    }

    /// The value of the counter that brings room, or says that the receiver was dropped.
    fn threshold(&self) -> u64 {
        self.released.base.wrapping_add(self.seen + 1)
    }

    fn condition(&self) -> Condition {
        Condition::Signal(self.released.cell, self.threshold(), Some(self.end.peer))
    }

    /// Looks at what the receiver has said. Returns true if an element may be filled. Never waits.
    fn look(&mut self, call: &str) -> Result<bool> {
        match &self.stage {
            Stage::Offered(offer, _) if offer.is_decided_now() => self.open(call, false)?,
            Stage::Offered(..) => return Ok(false),
            Stage::Open(_) => {}
            Stage::Closed => {
                return Err(self.end.fault(Cause::AlreadyReturned { what: "the channel" }, call));
            }
            Stage::Failed(error) => return Err(error.clone()),
        }
        self.seen = self.released.read(self.end.worker());
        self.limit = self.seen / 2 + self.capacity;
        if self.seen % 2 == 1 {
            self.limit = self.sent;
            return Err(self.end.fault(Cause::ChannelDropped { peer: self.end.peer }, call));
        }
        Ok(self.room() > 0)
    }

    /// Takes the offer, which has come or cannot come any more, and accepts or refuses it. `closes`: says in the same
    /// raise that no element comes. Two raises would not do for a rank that leaves: a receiver that sees the first one
    /// waits for elements, and gives up because the rank leaves.
    fn open(&mut self, call: &str, closes: bool) -> Result<()> {
        let opened = self.take_offer().and_then(|offer| self.answer(&offer, call, closes));
        opened.inspect_err(|error| self.stage = Stage::Failed(error.clone()))
    }

    fn take_offer(&mut self) -> Result<RingOffer> {
        let mut offer = RingOffer::zeroed();
        let Stage::Offered(receive, buffer) = &mut self.stage else { return Ok(offer) };
        let is_short = receive.is_short();
        let got = receive.take(bytemuck::bytes_of_mut(&mut offer));
        got.map_err(|error| self.end.fault(error.cause().clone(), "reserve"))?;
        if !is_short {
            let bytes = buffer.enter().map_err(|cause| self.end.fault(cause, "reserve"))?;
            bytes.view().read(0, bytemuck::bytes_of_mut(&mut offer));
        }
        Ok(offer)
    }

    fn answer(&mut self, offer: &RingOffer, name: &str, closes: bool) -> Result<()> {
        let (end, refusal) = (&self.end, offer.refusal(&self.end.element));
        let (worker, call) = (end.worker(), || end.call(name));
        let accept = Accept::new(&end.element, refusal.is_some(), (self.released.signal, self.released.base));
        let committed = PeerCounter::new(worker, end.peer, offer.counter(), LinePayload::of(&accept));
        let committed = committed.map_err(|cause| end.fault(cause, name))?;
        committed.begin(worker, 2 + u64::from(closes || refusal.is_some()), &call)?;
        if let Some(cause) = refusal {
            return Err(end.fault(cause, name));
        }
        if closes {
            self.stage = Stage::Closed;
            return Ok(());
        }
        (self.ring, self.capacity) = (offer.ring(end.peer), offer.capacity());
        self.stage = Stage::Open(committed);
        Ok(())
    }

    /// Makes the next `count` elements visible to the receiver. `copy`: their bytes, if they are not in the ring.
    #[inline(always)]
    pub fn commit(&mut self, count: u64, copy: Option<&[u8]>) -> Result<()> {
        self.end.check("commit")?;
        let Stage::Open(committed) = &self.stage else { return Err(self.not_open()) };
        let worker = self.end.worker();
        if let Some(bytes) = copy {
            worker.put(self.ring.add(self.position * self.end.element.size), bytes)?;
        }
        committed.write(worker, 2 * (self.sent + count) + 2, &|| self.end.call("commit"))?;
        self.sent += count;
        self.position += count;
        if self.position == self.capacity {
            self.position = 0;
        }
        Ok(())
    }

    /// Returns the error of a call that names too many elements.
    #[cold]
    pub fn too_many(&self, count: usize, reserved: usize) -> Error {
        let text = format!("{count} elements to commit, of {reserved} that are reserved");
        self.end.fault(Cause::Argument(text), "commit")
    }

    #[cold]
    fn not_open(&self) -> Error {
        self.end.fault(Cause::AlreadyReturned { what: "the channel" }, "commit")
    }

    /// Tells the receiver that no more elements come. Returns false if the offer has not come: it cannot be told yet.
    pub(super) fn close(&mut self) -> Result<bool> {
        if let Stage::Offered(offer, _) = &self.stage {
            if !offer.is_decided_now() {
                return Ok(false);
            }
            self.open("finish", true)?;
        }
        if let Stage::Open(committed) = &self.stage {
            committed.write(self.end.worker(), 2 * self.sent + 3, &|| self.end.call("finish"))?;
            self.stage = Stage::Closed;
        }
        Ok(true)
    }

    /// Ends the channel, and frees what belongs to this end when the receiver was dropped, too. A thread that panics
    /// does not end it: the receiver learns of the death of the rank, and takes no end for a proper one.
    pub fn retire(mut self) -> Result<()> {
        let worker = self.end.worker().clone();
        if worker.check_alive().is_err() || panicking() {
            return Ok(());
        }
        let (context, bytes) = (self.end.context.clone(), self.end.bytes);
        let closed = self.close();
        if let Ok(false) = closed {
            EarlyDrop::add(&context, Box::new(self));
            return Ok(());
        }
        // Also if the handshake has failed: the receiver is gone, or it was told of the types that differ.
        let end = DroppedEnd::new(self.released, bytes, None);
        context.progress.channels.free(&worker, [end])?;
        closed.map(drop)
    }
}

impl super::early_drop::EarlyEnd for ChannelSender {
    fn can_end(&self) -> bool {
        matches!(&self.stage, Stage::Offered(offer, _) if offer.is_decided_now())
    }

    fn awaited(&self) -> Option<Condition> {
        match &self.stage {
            Stage::Offered(offer, _) => Some(offer.awaited()),
            _ => None,
        }
    }

    fn end(self: Box<Self>) {
        let _ = self.retire(); // an error is of the receiver, which has left
    }
}
