//! The sending side of a receive queue.

use crate::progress::engine::ProgressEngine;
use crate::receive_queue::growing_pause::GrowingPause;
use crate::receive_queue::layout::{Header, INLINE_MAX, Place};
use crate::receive_queue::memory::{Description, QueueLines, QueueShare, ReceiveQueueAddress};
use crate::receive_queue::tickets::{SenderTickets, TicketMemory};
use crate::receive_queue::void_ticket::VoidTicket;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result, ValueKind};
use tasuki_core::engine::node_state::RankStage;
use tasuki_core::engine::{BufferView, Deadline, Registration, RevocableBuffer, WaitEvent, Worker};
use tasuki_core::fabric::{Refused, SlotWord, SlotWrite};
use tasuki_core::segment::GlobalAddress;

/// The first and the longest pause of a sender that waits for a buffer, in ns.
const PAUSE_NS: u64 = 2_000;
const PAUSE_MAX_NS: u64 = 1_000_000;

/// What a sender needs to write into the buffers of a share.
#[derive(Debug)]
pub(crate) struct QueueAccess {
    pub(crate) worker: Arc<Worker>,
    pub(crate) address: ReceiveQueueAddress,
    description: Description,
    lines: QueueLines,
    pub(crate) share: QueueShare,
}

impl QueueAccess {
    pub(crate) fn receiver(&self) -> Rank {
        self.address.rank()
    }

    /// Writes the line of a ticket, whose buffer is free.
    #[inline]
    pub(crate) fn write_line(&self, ticket: u64, header: &Header) -> Result<(), Refused> {
        let (slots, line) = self.lines.of(self.share.buffer(ticket));
        let (value, payload) = header.encode(ticket);
        slots.write(line, SlotWrite { word: SlotWord::Main, value, payload: &payload })
    }

    fn area_of(&self, ticket: u64) -> GlobalAddress {
        self.description.area_of(self.share.buffer(ticket))
    }

    /// Waits until the buffer of a ticket is free.
    #[cold]
    pub(crate) fn wait_for_room(
        self: &Arc<Self>,
        tickets: &mut SenderTickets,
        ticket: u64,
        deadline: Deadline,
    ) -> Result<()> {
        let worker = &self.worker;
        let counters = self.share.counters(worker);
        let call = || format!("send(to the {}, whose buffers are full)", self.address);
        let event = Arc::new(Room { access: self.clone(), ticket });
        let mut pause = GrowingPause::new(PAUSE_NS, PAUSE_MAX_NS);
        while !tickets.has_room(&counters, ticket)? {
            if self.is_closed()? {
                return Err(worker.fault(Cause::QueueClosed { peer: self.receiver() }, call));
            }
            pause.wait(worker, event.clone(), deadline, &call)?;
        }
        Ok(())
    }

    /// Returns true if the queue was dropped.
    pub(crate) fn is_closed(&self) -> Result<bool> {
        self.share.counters(&self.worker).is_closed(self.description.key)
    }
}

impl Drop for QueueAccess {
    fn drop(&mut self) {
        if !self.worker.fork_guard().is_forked() {
            let _ = self.share.counters(&self.worker).close(); // fails only if the job is over
        }
    }
}

/// Sends messages to a receive queue. Made for one thread; several threads of a rank open one each.
#[derive(Debug)]
pub struct ReceiveQueueSender {
    access: Arc<QueueAccess>,
    progress: Arc<ProgressEngine>,
    tickets: SenderTickets,
    /// A ticket that was drawn and not used, because the limit of its call was reached.
    drawn: Option<u64>,
    /// The ticket of its last message.
    last: Option<u64>,
}

impl ReceiveQueueSender {
    /// Opens the queue of that address.
    pub(crate) fn open(
        worker: &Arc<Worker>,
        progress: &Arc<ProgressEngine>,
        address: ReceiveQueueAddress,
    ) -> Result<ReceiveQueueSender> {
        let description = Description::read(worker, address)?;
        let lines = description.lines(worker, address.rank())?;
        // Neighbouring ranks use the same share, so that it can lie near them.
        let place = worker.rank().index() * description.shares.len() / worker.size();
        let share = description.shares[place];
        let counters = share.counters(worker);
        counters.open(address.key(), address.rank())?;
        // From here on, dropping it closes the queue.
        let access = QueueAccess { worker: worker.clone(), address, description, lines, share };
        let tickets = SenderTickets::new(share.slots, counters.consumed()?);
        Ok(ReceiveQueueSender {
            access: Arc::new(access),
            progress: progress.clone(),
            tickets,
            drawn: None,
            last: None,
        })
    }

    /// The queue that it sends to.
    pub fn address(&self) -> ReceiveQueueAddress {
        self.access.address
    }

    /// Sends a message of that kind. Returns when its bytes may be used again: if they fit in a buffer of the queue, when
    /// there is one and they are written there, otherwise when the receiver has fetched them. After an error the message
    /// was not sent.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], kind: ValueKind, slot: u32, context: u64) -> Result<()> {
        let call = || format!("send({} bytes to the {})", bytes.len(), self.access.address);
        if let Err(cause) = self.access.worker.check_alive() {
            return Err(self.access.worker.fault(cause, call));
        }
        if bytes.len() as u64 > self.access.description.bytes_per_slot && bytes.len() > INLINE_MAX {
            return self.offer(bytes, kind, slot, context);
        }
        let ticket = self.ticket()?;
        let place = if bytes.len() <= INLINE_MAX {
            Place::in_line(bytes)
        } else {
            let put = self.access.worker.put(self.access.area_of(ticket), bytes);
            put.inspect_err(|_| self.drawn = Some(ticket))?;
            Place::Area(bytes.len() as u64)
        };
        self.write(ticket, kind, slot, context, place)
    }

    /// Draws a ticket and waits until its buffer is free.
    #[inline]
    fn ticket(&mut self) -> Result<u64> {
        let access = &*self.access;
        let counters = access.share.counters(&access.worker);
        let ticket = match self.drawn.take() {
            Some(ticket) => ticket,
            None => counters.draw()?,
        };
        if self.tickets.is_free(ticket) {
            return Ok(ticket);
        }
        let deadline = access.worker.call_deadline();
        let waited = self.access.wait_for_room(&mut self.tickets, ticket, deadline);
        waited.inspect_err(|_| self.drawn = Some(ticket))?;
        Ok(ticket)
    }

    /// Writes the line of a ticket, also if the fabric refuses it at first.
    #[inline]
    fn write(&mut self, ticket: u64, kind: ValueKind, slot: u32, context: u64, place: Place) -> Result<()> {
        let before = self.last.map_or(0, |last| ticket.wrapping_sub(last));
        self.last = Some(ticket);
        let before = if before < self.access.share.slots { before as u16 } else { 0 };
        let header = Header { source: self.access.worker.rank(), slot, context, kind, before, place };
        match self.access.write_line(ticket, &header) {
            Ok(()) => Ok(()),
            Err(refused) => self.write_again(ticket, &header, refused),
        }
    }

    #[cold]
    fn write_again(&self, ticket: u64, header: &Header, mut refused: Refused) -> Result<()> {
        let worker = &self.access.worker;
        let call = || format!("send(to the {})", self.access.address);
        loop {
            if let Refused::Never(cause) = refused {
                return Err(worker.fault(*cause, call));
            }
            // Not ended by a limit: the ticket was drawn, and its buffer is free.
            worker.check().map_err(|cause| worker.fault(cause, call))?;
            worker.pause();
            match self.access.write_line(ticket, header) {
                Ok(()) => return Ok(()),
                Err(again) => refused = again,
            }
        }
    }

    /// Sends a message that is longer than a buffer: it stays here until the receiver has fetched it.
    #[cold]
    fn offer(&mut self, bytes: &[u8], kind: ValueKind, slot: u32, context: u64) -> Result<()> {
        let access = self.access.clone();
        let (worker, progress) = (&access.worker, self.progress.clone());
        let call = || format!("send({} bytes to the {})", bytes.len(), access.address);
        RevocableBuffer::lend(BufferView::of(bytes), &|| worker.pause(), |buffer| {
            let registered = Registration::new(buffer, worker).map_err(|cause| worker.fault(cause, call))?;
            let ticket = self.ticket()?;
            let offer = progress.offers.make(worker).inspect_err(|_| self.drawn = Some(ticket))?;
            let offered = offer.describe(registered.address(), bytes.len() as u64)?;
            self.write(ticket, kind, slot, context, Place::Offered(offered))?;
            offer.wait(access.receiver(), &|| access.is_closed(), &call)
        })
    }
}

impl Drop for ReceiveQueueSender {
    fn drop(&mut self) {
        let Some(ticket) = self.drawn.take() else { return };
        // Another call of the rank, or the rank when it leaves, tells the receiver that no message comes.
        VoidTicket::add(&self.access, &self.progress, ticket);
    }
}

/// Waits until the buffer of a ticket is free.
#[derive(Debug)]
struct Room {
    access: Arc<QueueAccess>,
    ticket: u64,
}

impl WaitEvent for Room {
    fn happened(&self) -> bool {
        // Where the counter cannot be read at once, the wait ends after a pause.
        let share = &self.access.share;
        let consumed = self.access.worker.peek_word(share.counters(&self.access.worker).consumed_at());
        consumed.is_some_and(|consumed| SenderTickets::new(share.slots, consumed).is_free(self.ticket))
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.receiver(), RankStage::Leaving))
    }

    fn call(&self) -> String {
        format!("send(to the {})", self.access.address)
    }
}
