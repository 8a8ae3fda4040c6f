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
    /// Opens the share of that number of a queue.
    fn open(
        (worker, progress): (&Arc<Worker>, &Arc<ProgressEngine>),
        receiver: Rank,
        (description, share): (Description, usize),
        is_any_source: bool,
    ) -> Result<QueueAccess> {
        let lines = description.open_lines(worker)?;
        let share = description.shares[share];
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

    /// Reads the counters of a share. Returns how many of its buffers are free, and the number of tickets consumed.
    fn look_at(&self, share: &QueueShare) -> Result<(u64, u64)> {
        let counters = share.counters(&self.worker);
        let drawn = counters.drawn()?; // before `consumed`, which only grows
        let consumed = counters.consumed()?;
        Ok((share.slots.saturating_sub(drawn.wrapping_sub(consumed).cast_signed().max(0) as u64), consumed))
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
    /// The number of the share.
    share: usize,
    tickets: SenderTickets,
    /// The last ticket that it has used.
    last: Option<u64>,
    /// The first of the tickets that were drawn together and not used yet, and their number.
    reserved: (u64, u64),
    /// How many other shares it has looked at since the last ticket found no room. None: there was room.
    looked_elsewhere: Option<usize>,
}

/// Returns the share that a rank uses first. Neighbouring ranks use the same one, so that it can lie near them.
pub(crate) fn own_share(worker: &Worker, shares: usize) -> usize {
    worker.rank().index() * shares / worker.size()
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
        let share = own_share(worker, description.shares.len());
        QueueWriter::open_share((worker, progress), receiver, (description, share), is_any_source)
    }

    fn open_share(
        of: (&Arc<Worker>, &Arc<ProgressEngine>),
        receiver: Rank,
        (description, share): (Description, usize),
        is_any_source: bool,
    ) -> Result<QueueWriter> {
        let access = Arc::new(QueueAccess::open(of, receiver, (description, share), is_any_source)?);
        let tickets = SenderTickets::new(access.share.slots, access.share.counters(of.0).consumed()?);
        Ok(QueueWriter { access, share, tickets, last: None, reserved: (0, 0), looked_elsewhere: None })
    }

    /// Goes to another share that has room if the last ticket found none, the share is full still, and all messages of
    /// this sender in it were consumed, so that none can be overtaken. Looks at one other share in each call, so that a
    /// crowd of senders does not read all counters each time.
    #[cold]
    fn borrow(&mut self, progress: &Arc<ProgressEngine>) -> Result<()> {
        let looked = self.looked_elsewhere.unwrap_or(0);
        let (access, shares) = (self.access.clone(), &self.access.description.shares);
        let (free, consumed) = access.look_at(&access.share)?;
        let is_last_consumed = self.last.is_none_or(|last| consumed.wrapping_sub(last).cast_signed() > 0);
        if free > 0 {
            self.looked_elsewhere = None;
        } else if is_last_consumed {
            let other = (self.share + 1 + looked % (shares.len() - 1)) % shares.len();
            self.looked_elsewhere = Some(looked + 1);
            if access.look_at(&shares[other])?.0 > 0 {
                let place = (access.description.clone(), other);
                *self = QueueWriter::open_share((&access.worker, progress), access.receiver, place, false)?;
            }
        }
        Ok(())
    }

    pub(crate) fn access(&self) -> &Arc<QueueAccess> {
        &self.access
    }

    /// Draws the ticket of the next message. Also returns true if its buffer is free.
    #[inline]
    pub(crate) fn draw(&mut self, label: MessageLabel) -> Result<(DrawnMessage, bool)> {
        let access = &*self.access;
        let counters = access.share.counters(&access.worker);
        let ticket = match self.reserved {
            (_, 0) => counters.draw(1)?,
            (ticket, count) => {
                self.reserved = (ticket.wrapping_add(1), count - 1);
                ticket
            }
        };
        let has_room = self.tickets.has_room(&counters, ticket)?;
        if !has_room && access.description.shares.len() > 1 {
            self.looked_elsewhere.get_or_insert(0);
        }
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

/// Makes the send the call of an error of one of its steps.
#[cold]
pub(super) fn error_of_send(error: Error, call: impl FnOnce() -> String) -> Error {
    if error.call().starts_with("send") { error } else { error.in_outer_call(call()) }
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

    /// The number of the share whose buffers it uses.
    pub fn share(&self) -> usize {
        self.writer.share
    }

    /// Sends a message of that kind. Returns when its bytes may be used again: if they fit in a buffer of the queue,
    /// when there is one and they are written there, otherwise when the receiver has fetched them. After an error the
    /// message was not sent.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], kind: ValueKind, slot: u32) -> Result<()> {
        if self.writer.looked_elsewhere.is_some() {
            self.writer.borrow(&self.progress)?;
        }
        self.send_in_share(bytes, kind, slot)
    }

    #[inline]
    fn send_in_share(&mut self, bytes: &[u8], kind: ValueKind, slot: u32) -> Result<()> {
        let (access, label) = (self.writer.access.clone(), MessageLabel { slot, kind, context: 0 });
        let sent = send(&access, &self.progress, bytes, slot, || self.writer.draw(label), &|| ());
        sent.map_err(|error| error_of_send(error, || access.call(Some(slot), "")))
    }

    /// Sends messages one after the other. One atomic operation draws the tickets of as many as a share has buffers.
    /// After an error returns how many were sent, too.
    pub fn send_many<'b>(
        &mut self,
        messages: impl ExactSizeIterator<Item = &'b [u8]>,
        kind: ValueKind,
        slot: u32,
    ) -> Result<(), (usize, Error)> {
        let count = messages.len();
        for (sent, bytes) in messages.enumerate() {
            let drawn = match self.writer.reserved.1 {
                0 => self.reserve((count - sent) as u64),
                _ => Ok(()),
            };
            if let Err(error) = drawn.and_then(|()| self.send_in_share(bytes, kind, slot)) {
                self.give_up_reserved(MessageLabel { slot, kind, context: 0 });
                return Err((sent, error));
            }
        }
        Ok(())
    }

    /// Draws the tickets of the next messages, of so many or of as many as a share has buffers, by one atomic operation.
    fn reserve(&mut self, messages: u64) -> Result<()> {
        let writer = &mut self.writer;
        if writer.looked_elsewhere.is_some() {
            writer.borrow(&self.progress)?;
        }
        let (share, worker) = (&writer.access.share, &writer.access.worker);
        let count = messages.min(share.slots);
        writer.reserved = (share.counters(worker).draw(count)?, count);
        Ok(())
    }

    /// Lets the receiver know that no messages come for the tickets that were drawn for them.
    #[cold]
    fn give_up_reserved(&mut self, label: MessageLabel) {
        while self.writer.reserved.1 > 0 {
            let Ok((message, _)) = self.writer.draw(label) else { return }; // the job is over
            self.writer.access.defer(&self.progress, message, DeferredContent::Void);
        }
    }
}
