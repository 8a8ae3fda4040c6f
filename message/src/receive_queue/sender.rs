//! The sending side of a receive queue.

use crate::progress::engine::ProgressEngine;
use crate::receive_queue::deferred::{DeferredContent, DeferredMessages};
use crate::receive_queue::drawn_message::{Content, DrawnMessage};
use crate::receive_queue::layout::{Header, INLINE_MAX};
use crate::receive_queue::memory::{Description, QueueLines, QueueShare, ReceiveQueueAddress};
use crate::receive_queue::offer::OfferedMessage;
use crate::receive_queue::tickets::{SenderTickets, TicketMemory};
use std::sync::{Arc, Weak};
use tasuki_core::base::{Cause, Error, Rank, Result, ValueKind};
use tasuki_core::engine::{BufferView, RevocableBuffer, Worker};
use tasuki_core::fabric::{Refused, SlotWord, SlotWrite};
use tasuki_core::segment::GlobalAddress;

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
    pub(crate) deferred: DeferredMessages,
    pub(crate) progress: Weak<ProgressEngine>,
}

impl QueueAccess {
    /// Opens a queue of that description.
    fn open(
        (worker, progress): (&Arc<Worker>, &Arc<ProgressEngine>),
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
        let (worker, progress, deferred) =
            (worker.clone(), Arc::downgrade(progress), DeferredMessages::default());
        Ok(QueueAccess { worker, receiver, is_any_source, description, lines, share, deferred, progress })
    }

    /// Describes a send of a message with that slot, or of one that is not known.
    pub(crate) fn call(&self, slot: Option<u32>, why: &str) -> String {
        let slot = slot.map(|slot| format!("slot {slot} ")).unwrap_or_default();
        match self.is_any_source {
            true => format!("send_any({slot}to rank {}{why})", self.receiver),
            false => format!("send({slot}to the receive queue of rank {}{why})", self.receiver),
        }
    }

    /// Returns the bytes of a message that a buffer holds, at most.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.description.bytes_per_slot.max(INLINE_MAX as u64)
    }

    /// Returns true if messages of that many bytes stay at their sender.
    #[inline]
    pub(crate) fn is_long(&self, bytes: usize) -> bool {
        bytes as u64 > self.description.bytes_per_slot && bytes > INLINE_MAX
    }

    /// Writes the line of a ticket, whose buffer is free.
    #[inline]
    pub(crate) fn write_line(&self, ticket: u64, header: &Header) -> Result<(), Refused> {
        let (slots, line) = self.lines.of(self.share.buffer(ticket));
        let (value, payload) = header.encode(ticket);
        slots.write(line, SlotWrite { word: SlotWord::Main, value, payload: &payload })
    }

    pub(crate) fn area_of(&self, ticket: u64) -> GlobalAddress {
        self.description.area_of(self.share.buffer(ticket))
    }

    /// Returns the number of shares.
    pub(crate) fn shares(&self) -> u64 {
        self.description.shares.len() as u64
    }

    /// Returns true if the buffer of a ticket is free, and this thread can read the counter at once.
    pub(crate) fn peeks_room(&self, ticket: u64) -> bool {
        let consumed = self.worker.peek_word(self.share.counters(&self.worker).consumed_at());
        consumed.is_some_and(|consumed| SenderTickets::new(self.share.slots, consumed).is_free(ticket))
    }

    /// Returns an error's cause if the queue was dropped.
    pub(crate) fn why_closed(&self) -> Result<Option<Cause>> {
        let is_closed = self.share.counters(&self.worker).is_closed(self.description.key)?;
        Ok(is_closed.then_some(Cause::QueueClosed { peer: self.receiver }))
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

/// Draws tickets of a queue. One thread at a time uses it.
#[derive(Debug)]
pub(crate) struct QueueWriter {
    access: Arc<QueueAccess>,
    tickets: SenderTickets,
    /// The last ticket that it drew.
    last: Option<u64>,
}

impl QueueWriter {
    /// Opens a queue of that description.
    pub(crate) fn open(
        worker: &Arc<Worker>,
        progress: &Arc<ProgressEngine>,
        receiver: Rank,
        description: Description,
        is_any_source: bool,
    ) -> Result<QueueWriter> {
        let access = QueueAccess::open((worker, progress), receiver, description, is_any_source)?;
        let tickets = SenderTickets::new(access.share.slots, access.share.counters(worker).consumed()?);
        Ok(QueueWriter { access: Arc::new(access), tickets, last: None })
    }

    pub(crate) fn access(&self) -> &Arc<QueueAccess> {
        &self.access
    }

    /// Draws the ticket of the next message. Also returns true if its buffer is free.
    #[inline]
    pub(crate) fn draw(&mut self, label: MessageLabel) -> Result<(DrawnMessage, bool)> {
        let access = &*self.access;
        let counters = access.share.counters(&access.worker);
        let ticket = counters.draw()?;
        let has_room = self.tickets.has_room(&counters, ticket)?;
        let before = self.last.replace(ticket).map_or(0, |last| ticket.wrapping_sub(last));
        let before = if before < access.share.slots { before as u16 } else { 0 };
        let message = DrawnMessage { ticket, label, before, tickets: self.tickets, is_in_area: false };
        Ok((message, has_room))
    }
}

/// Sends a message, whose ticket `draw` draws. A longer one than a buffer stays here until the receiver has fetched it.
/// Calls `idle` before each pause in which it waits for a buffer.
#[inline]
pub(crate) fn send(
    access: &Arc<QueueAccess>,
    progress: &Arc<ProgressEngine>,
    bytes: &[u8],
    slot: u32,
    draw: impl FnOnce() -> Result<(DrawnMessage, bool)>,
    idle: &dyn Fn(),
) -> Result<()> {
    if let Err(cause) = access.worker.check_alive() {
        return Err(access.worker.fault(cause, || access.call(Some(slot), "")));
    }
    if access.is_long(bytes.len()) {
        send_long(access, progress, bytes, slot, draw, idle)
    } else {
        write(access, progress, draw()?, Content::Bytes(bytes), idle)
    }
}

/// Writes a message whose ticket was drawn. Waits for its buffer.
#[inline]
fn write(
    access: &Arc<QueueAccess>,
    progress: &Arc<ProgressEngine>,
    (mut message, has_room): (DrawnMessage, bool),
    content: Content<'_>,
    idle: &dyn Fn(),
) -> Result<()> {
    if has_room && !access.deferred.waits_for_room() {
        match message.write(access, content) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return give_up(access, progress, message, error),
        }
    }
    match message.write_when_free(access, content, idle) {
        Ok(()) => Ok(()),
        Err(error) => give_up(access, progress, message, error),
    }
}

/// Lets the rank tell the receiver that no message comes for a ticket: nobody may wait for a ticket of a call that has
/// ended. Returns the error.
#[cold]
fn give_up(
    access: &Arc<QueueAccess>,
    progress: &Arc<ProgressEngine>,
    message: DrawnMessage,
    error: Error,
) -> Result<()> {
    access.defer(progress, message, DeferredContent::Void);
    Err(error)
}

#[cold]
fn send_long(
    access: &Arc<QueueAccess>,
    progress: &Arc<ProgressEngine>,
    bytes: &[u8],
    slot: u32,
    draw: impl FnOnce() -> Result<(DrawnMessage, bool)>,
    idle: &dyn Fn(),
) -> Result<()> {
    let worker = &access.worker;
    let call = || access.call(Some(slot), "");
    RevocableBuffer::lend(BufferView::of(bytes), &|| worker.pause(), |buffer| {
        let message = OfferedMessage::new(buffer, worker, &progress.offers, &call)?;
        write(access, progress, draw()?, Content::Offered(message.offered), idle)?;
        message.wait(access.receiver, &|| access.why_closed(), &call)
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
        let writer = QueueWriter::open(worker, progress, address.rank(), description, false)?;
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
        send(&access, &self.progress, bytes, slot, || self.writer.draw(label), &|| ())
    }
}
