//! Offers: long messages that stay at their sender until the receiver fetches them.
//!
//! The sender registers the bytes, and writes into a buffer of the queue where they are. The receiver claims the offer,
//! copies the bytes, and ends the offer. The sender may take an offer back that was not claimed: because the time limit
//! of its call was reached. The state of an offer is one word in the sender's arena, which both change by
//! compare-and-swap, so either the receiver gets the message or the sender has it back, and each knows which.
//!
//! | bits | hold |
//! |---|---|
//! | 32-63 | the number of the offer: how often its place was used |
//! | 0-31 | 0 free, 1 offered, 2 claimed, 3 fetched |
//!
//! After a change of the state the receiver raises a signal of the sender's rank, which all its offers share.

use crate::receive_queue::growing_pause::GrowingPause;
use crate::receive_queue::layout::Offered;
use crate::slot::arena::{at, atomic8};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tasuki_core::base::error_hint::LONG_TO_QUEUES;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Deadline, Registration, RevocableBuffer, WaitEvent, Worker};
use tasuki_core::fabric::{AtomicKind, SignalCell};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// Offset of the table of offers in the arena.
const OFFERS: u64 = 48 << 10;
/// Bytes of an entry: a cache line.
const ENTRY: u64 = 64;
/// The most offers of a rank at a time.
const OFFERS_MAX: u64 = 256;

/// The first and the longest pause between two looks whether the queue was dropped, in ns. Nothing else tells that.
const PAUSE_NS: u64 = 1_000_000;
const PAUSE_MAX_NS: u64 = 100_000_000;

const OFFERED: u64 = 1;
const CLAIMED: u64 = 2;
const FETCHED: u64 = 3;

fn state(number: u32, state: u64) -> u64 {
    u64::from(number) << 32 | state
}

/// The offers of a rank.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    places: Mutex<Places>,
    signal: OnceLock<(u32, SignalCell)>,
}

#[derive(Debug, Default)]
struct Places {
    free: Vec<u64>,
    fresh: u64,
    number: u32,
}

/// A message that was offered. Its bytes are registered.
#[derive(Debug)]
pub(crate) struct OfferedMessage {
    /// Dropped before the registration: a receiver that still claimed it would read memory that is not registered.
    offer: Offer,
    _registration: Registration,
    /// What the receiver must know about it.
    pub(crate) offered: Offered,
}

impl OfferedMessage {
    /// Offers the bytes of a buffer.
    pub(crate) fn new(
        buffer: &Arc<RevocableBuffer>,
        worker: &Arc<Worker>,
        offers: &Arc<Offers>,
        call: &dyn Fn() -> String,
    ) -> Result<OfferedMessage> {
        let registration = Registration::new(buffer, worker).map_err(|cause| worker.fault(cause, call))?;
        let offer = offers.make(worker)?;
        let offered = offer.describe(registration.address(), buffer.len() as u64)?;
        Ok(OfferedMessage { offer, _registration: registration, offered })
    }

    /// Returns the signal that is raised when the state of an offer of this rank has changed.
    pub(crate) fn signal(&self) -> Result<SignalCell> {
        self.offer.offers.signal(&self.offer.worker).map(|(_, cell)| *cell)
    }
}

/// The place of an offer in the table.
#[derive(Debug)]
struct Offer {
    offers: Arc<Offers>,
    worker: Arc<Worker>,
    place: u64,
    number: u32,
}

impl Offers {
    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, worker: &Worker) -> Result<&(u32, SignalCell)> {
        if let Some(signal) = self.signal.get() {
            return Ok(signal);
        }
        let index = worker.registry().private_signals(1)?;
        let cell = worker.fabric().own_signal(index)?;
        Ok(self.signal.get_or_init(|| (index, cell)))
    }

    /// Takes a place for an offer.
    fn make(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<Offer> {
        self.signal(worker)?;
        let mut places = self.places();
        let fresh = places.fresh;
        let place = places.free.pop().or_else(|| {
            places.fresh += u64::from(fresh < OFFERS_MAX);
            (fresh < OFFERS_MAX).then_some(fresh)
        });
        let full = Cause::Full { what: LONG_TO_QUEUES, capacity: OFFERS_MAX as usize };
        let place = place.ok_or(full)?;
        places.number = places.number.wrapping_add(1);
        let offer = Offer { offers: self.clone(), worker: worker.clone(), place, number: places.number };
        drop(places);
        worker.atomic(offer.address(), atomic8(AtomicKind::Swap, state(offer.number, OFFERED)))?;
        Ok(offer)
    }
}

impl Offer {
    fn address(&self) -> GlobalAddress {
        at(self.worker.rank(), OFFERS + self.place * ENTRY)
    }

    /// Describes the offer of these bytes to the receiver.
    fn describe(&self, from: GlobalAddress, len: u64) -> Result<Offered> {
        let (signal, _) = *self.offers.signal(&self.worker)?;
        Ok(Offered { len, from, state: self.address(), number: self.number, signal })
    }

    /// Takes the offer back. Returns false if the receiver has claimed it.
    fn take_back(&self) -> Result<bool> {
        let (offered, free) = (state(self.number, OFFERED), state(self.number, 0));
        let found =
            self.worker.atomic(self.address(), atomic8(AtomicKind::Cas { expected: offered }, free))?;
        Ok(found == offered)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let _ = self.take_back(); // it may still be offered
        self.offers.places().free.push(self.place);
    }
}

impl OfferedMessage {
    /// Returns true if the receiver has fetched the message.
    pub(crate) fn is_fetched(&self) -> Result<bool> {
        let Offer { worker, number, .. } = &self.offer;
        let now = worker.atomic(self.offer.address(), atomic8(AtomicKind::Load, 0))?;
        Ok(now == state(*number, FETCHED))
    }

    /// Waits until the receiver has fetched the message. If the limit of the call is reached first, or the queue was
    /// dropped, takes the offer back, unless the receiver has claimed it.
    pub(crate) fn wait(
        &self,
        receiver: Rank,
        why_closed: &dyn Fn() -> Result<Option<Cause>>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let Offer { offers, worker, .. } = &self.offer;
        let (mut deadline, mut ended) = (worker.call_deadline(), None);
        let mut pause = GrowingPause::new(PAUSE_NS, PAUSE_MAX_NS);
        loop {
            let (_, cell) = offers.signal(worker)?;
            let seen = worker.signal_value(cell);
            if self.is_fetched()? {
                return Ok(());
            }
            // Unless the receiver is copying the message: that ends soon.
            if ended.is_some() && self.take_back()? {
                return ended.map_or(Ok(()), Err);
            }
            let change = OfferChange { cell: *cell, seen, worker: worker.clone(), receiver };
            match pause.wait(worker, Arc::new(change), deadline, call) {
                Ok(true) => {}
                Ok(false) => ended = why_closed()?.map(|cause| worker.fault(cause, call)).or(ended),
                Err(error) => {
                    worker.check().map_err(|cause| worker.fault(cause, call))?;
                    (deadline, ended) = (Deadline::NEVER, Some(error));
                }
            }
        }
    }

    /// Takes the offer back. Returns false if the receiver has claimed it.
    pub(crate) fn take_back(&self) -> Result<bool> {
        self.offer.take_back()
    }
}

/// Waits until the state of an offer of this rank may have changed.
#[derive(Debug)]
struct OfferChange {
    worker: Arc<Worker>,
    cell: SignalCell,
    seen: u64,
    receiver: Rank,
}

impl WaitEvent for OfferChange {
    fn happened(&self) -> bool {
        self.worker.signal_value(&self.cell) != self.seen
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.receiver, RankStage::Leaving))
    }
}

/// Called by the receiver: claims an offer. Returns false if its sender has taken it back.
pub(crate) fn claim(worker: &Worker, offered: &Offered) -> Result<bool> {
    let (expected, claimed) = (state(offered.number, OFFERED), state(offered.number, CLAIMED));
    Ok(worker.atomic(offered.state, atomic8(AtomicKind::Cas { expected }, claimed))? == expected)
}

/// Called by the receiver, which has claimed the offer: tells the sender whether the message was fetched. If not, the
/// offer stands again.
pub(crate) fn end(worker: &Worker, offered: &Offered, was_fetched: bool) -> Result<()> {
    let new = state(offered.number, if was_fetched { FETCHED } else { OFFERED });
    worker.atomic(offered.state, atomic8(AtomicKind::Swap, new))?;
    worker.raise(GlobalAddress::new(offered.state.rank(), signal_offset(offered.signal)), 1)
}
