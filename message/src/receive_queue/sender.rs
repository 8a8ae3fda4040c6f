//! The sending side of a receive queue.

use crate::progress::engine::ProgressEngine;
use crate::receive_queue::growing_pause::GrowingPause;
use crate::receive_queue::layout::{Header, INLINE_MAX, Offered, Place};
use crate::receive_queue::memory::{Description, QueueLines, QueueShare, ReceiveQueueAddress};
use crate::receive_queue::tickets::{SenderTickets, TicketMemory};
use crate::receive_queue::void_ticket::VoidTicket;
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result, ValueKind};
use tasuki_core::engine::{BufferView, Deadline, Registration, RevocableBuffer, WaitEvent, Worker};
use tasuki_core::fabric::{Refused, SlotWord, SlotWrite};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

/// The shortest pause of a sender that waits for a buffer, and the longest while nothing is received, in ns.
const PAUSE_NS: u64 = 2_000;
const PAUSE_MAX_NS: u64 = 1_000_000;
/// The time in ns in which a receiver takes a message, at best.
const TAKE_NS: u64 = 50;

/// What a sender needs to write into the buffers of a share.
#[derive(Debug)]
pub(crate) struct QueueAccess {
    pub(crate) worker: Arc<Worker>,
    pub(crate) receiver: Rank,
    /// True if it is the receiver's any-source queue.
    is_any_source: bool,
    description: Description,
    lines: QueueLines,
    pub(crate) share: QueueShare,
}

impl QueueAccess {
    /// Opens a queue of that description.
    fn open(
        worker: &Arc<Worker>,
        receiver: Rank,
        description: Description,
        is_any_source: bool,
    ) -> Result<QueueAccess> {
        let lines = description.open_lines(worker)?;
        // Neighbouring ranks use the same share, so that it can lie near them.
        let place = worker.rank().index() * description.shares.len() / worker.size();
        let share = description.shares[place];
        if !is_any_source {
            share.counters(worker).open(description.key, receiver)?;
        } // else the queue lives as long as the receiver
        // From here on, dropping it closes the queue.
        Ok(QueueAccess { worker: worker.clone(), receiver, is_any_source, description, lines, share })
    }

    /// Describes a send of a message with that slot, or of one that is not known.
    fn call(&self, slot: Option<u32>, why: &str) -> String {
        let slot = slot.map(|slot| format!("slot {slot} ")).unwrap_or_default();
        match self.is_any_source {
            true => format!("send_any({slot}to rank {}{why})", self.receiver),
            false => format!("send({slot}to the receive queue of rank {}{why})", self.receiver),
        }
    }

    /// Returns true if messages of that many bytes stay at their sender.
    #[inline]
    fn is_long(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 > self.description.bytes_per_slot && bytes.len() > INLINE_MAX
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

    /// Waits until the buffer of a ticket is free. Calls `idle` before each pause.
    #[cold]
    pub(crate) fn wait_for_room(
        self: &Arc<Self>,
        tickets: &mut SenderTickets,
        ticket: u64,
        deadline: Deadline,
        idle: &dyn Fn(),
    ) -> Result<()> {
        let worker = &self.worker;
        let counters = self.share.counters(worker);
        let call = || self.call(None, ", whose buffers are full");
        let event = Arc::new(Room { access: self.clone(), ticket });
        let mut pause = GrowingPause::new(PAUSE_NS, PAUSE_MAX_NS);
        let (shares, mut before) = (self.description.shares.len() as u64, None);
        while !tickets.has_room(&counters, ticket)? {
            // A receiver that goes on is looked at when the turn of this ticket can come; one that does not, ever more
            // seldom (docs/design/communication/many-to-one.md).
            let taken_before = tickets.taken_before(ticket);
            if before.replace(taken_before) != Some(taken_before) {
                pause.begin_again(PAUSE_NS.max(taken_before.saturating_mul(TAKE_NS * shares)));
            }
            if self.is_closed()? {
                return Err(worker.fault(Cause::QueueClosed { peer: self.receiver }, call));
            }
            idle();
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
        if !self.is_any_source && !self.worker.fork_guard().is_forked() {
            let _ = self.share.counters(&self.worker).close(); // fails only if the job is over
        }
    }
}

/// A message without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageLabel {
    pub(crate) slot: u32,
    pub(crate) kind: ValueKind,
    pub(crate) context: u64,
}

/// Writes messages into the buffers of a queue. One thread at a time uses it.
#[derive(Debug)]
pub(crate) struct QueueWriter {
    access: Arc<QueueAccess>,
    tickets: SenderTickets,
    /// A ticket that was drawn and not used, because the limit of its call was reached.
    drawn: Option<u64>,
    /// The ticket of its last message.
    last: Option<u64>,
}

impl QueueWriter {
    /// Opens a queue of that description.
    pub(crate) fn open(
        worker: &Arc<Worker>,
        receiver: Rank,
        description: Description,
        is_any_source: bool,
    ) -> Result<QueueWriter> {
        let access = QueueAccess::open(worker, receiver, description, is_any_source)?;
        let tickets = SenderTickets::new(access.share.slots, access.share.counters(worker).consumed()?);
        Ok(QueueWriter { access: Arc::new(access), tickets, drawn: None, last: None })
    }

    pub(crate) fn access(&self) -> &Arc<QueueAccess> {
        &self.access
    }

    /// Writes a message that a buffer holds.
    #[inline]
    pub(crate) fn write_bytes(&mut self, bytes: &[u8], label: MessageLabel, idle: &dyn Fn()) -> Result<()> {
        let ticket = self.ticket(idle)?;
        let place = if bytes.len() <= INLINE_MAX {
            Place::in_line(bytes)
        } else {
            let put = self.access.worker.put(self.access.area_of(ticket), bytes);
            put.inspect_err(|_| self.drawn = Some(ticket))?;
            Place::Area(bytes.len() as u64)
        };
        self.write(ticket, label, place)
    }

    /// Writes where a message is that stays at its sender.
    pub(crate) fn write_offered(
        &mut self,
        offered: Offered,
        label: MessageLabel,
        idle: &dyn Fn(),
    ) -> Result<()> {
        let ticket = self.ticket(idle)?;
        self.write(ticket, label, Place::Offered(offered))
    }

    /// Draws a ticket and waits until its buffer is free.
    #[inline]
    fn ticket(&mut self, idle: &dyn Fn()) -> Result<u64> {
        let access = &*self.access;
        let counters = access.share.counters(&access.worker);
        let ticket = counters.draw()?;
        if self.tickets.is_free(ticket) {
            return Ok(ticket);
        }
        let deadline = access.worker.call_deadline();
        let waited = self.access.wait_for_room(&mut self.tickets, ticket, deadline, idle);
        waited.inspect_err(|_| self.drawn = Some(ticket))?;
        Ok(ticket)
    }

    /// Writes the line of a ticket, also if the fabric refuses it at first.
    #[inline]
    fn write(&mut self, ticket: u64, label: MessageLabel, place: Place) -> Result<()> {
        let before = self.last.map_or(0, |last| ticket.wrapping_sub(last));
        self.last = Some(ticket);
        let before = if before < self.access.share.slots { before as u16 } else { 0 };
        let MessageLabel { slot, kind, context } = label;
        let header = Header { source: self.access.worker.rank(), slot, context, kind, before, place };
        match self.access.write_line(ticket, &header) {
            Ok(()) => Ok(()),
            Err(refused) => self.write_again(ticket, &header, refused),
        }
    }

    #[cold]
    fn write_again(&self, ticket: u64, header: &Header, mut refused: Refused) -> Result<()> {
        let worker = &self.access.worker;
        let call = || self.access.call(Some(header.slot), "");
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

    /// Lets the rank tell the receiver that no message comes for a ticket that was not used. Another call of the rank
    /// does that, or the rank when it leaves.
    pub(crate) fn give_up(&mut self, progress: &Arc<ProgressEngine>) {
        if let Some(ticket) = self.drawn.take() {
            VoidTicket::add(&self.access, progress, ticket);
        }
    }
}

/// Sends a message: `write_bytes` writes one that a buffer holds. A longer one stays here until the receiver has
/// fetched it; `write_offered` writes where it is.
#[inline]
pub(crate) fn send<W>(
    access: &Arc<QueueAccess>,
    progress: &ProgressEngine,
    bytes: &[u8],
    slot: u32,
    writer: &mut W,
    write_bytes: impl FnOnce(&mut W) -> Result<()>,
    write_offered: impl FnOnce(&mut W, Offered) -> Result<()>,
) -> Result<()> {
    if let Err(cause) = access.worker.check_alive() {
        return Err(access.worker.fault(cause, || access.call(Some(slot), "")));
    }
    if access.is_long(bytes) {
        send_long(access, progress, bytes, slot, |offered| write_offered(writer, offered))
    } else {
        write_bytes(writer)
    }
}

#[cold]
fn send_long(
    access: &Arc<QueueAccess>,
    progress: &ProgressEngine,
    bytes: &[u8],
    slot: u32,
    write_offered: impl FnOnce(Offered) -> Result<()>,
) -> Result<()> {
    let worker = &access.worker;
    let call = || access.call(Some(slot), "");
    RevocableBuffer::lend(BufferView::of(bytes), &|| worker.pause(), |buffer| {
        let registered = Registration::new(buffer, worker).map_err(|cause| worker.fault(cause, call))?;
        let offer = progress.offers.make(worker)?;
        write_offered(offer.describe(registered.address(), bytes.len() as u64)?)?;
        offer.wait(access.receiver, &|| access.is_closed(), &call)
    })
}

/// Sends messages to a receive queue. Made for one thread; several threads of a rank open one each.
#[derive(Debug)]
pub struct ReceiveQueueSender {
    address: ReceiveQueueAddress,
    progress: Arc<ProgressEngine>,
    writer: QueueWriter,
}

impl ReceiveQueueSender {
    /// Opens the queue of that address.
    pub(crate) fn open(
        worker: &Arc<Worker>,
        progress: &Arc<ProgressEngine>,
        address: ReceiveQueueAddress,
    ) -> Result<ReceiveQueueSender> {
        let description = Description::read(worker, address)?;
        let writer = QueueWriter::open(worker, address.rank(), description, false)?;
        Ok(ReceiveQueueSender { address, progress: progress.clone(), writer })
    }

    /// The queue that it sends to.
    pub fn address(&self) -> ReceiveQueueAddress {
        self.address
    }

    /// Sends a message of that kind. Returns when its bytes may be used again: if they fit in a buffer of the queue,
    /// when there is one and they are written there, otherwise when the receiver has fetched them. After an error the
    /// message was not sent.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], kind: ValueKind, slot: u32) -> Result<()> {
        let (access, label) = (self.writer.access.clone(), MessageLabel { slot, kind, context: 0 });
        let sent = send(
            &access,
            &self.progress,
            bytes,
            slot,
            &mut self.writer,
            |writer| writer.write_bytes(bytes, label, &|| ()),
            |writer, offered| writer.write_offered(offered, label, &|| ()),
        );
        // Nobody may wait for a ticket of a call that has ended.
        sent.inspect_err(|_| self.writer.give_up(&self.progress))
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
        Some((self.access.receiver, RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.call(None, "")
    }
}
