//! The receiving side of a receive queue.

use crate::context::Received;
use crate::progress::engine::ProgressEngine;
use crate::protocol::fit::type_mismatch;
use crate::receive_queue::layout::{Header, LineWords, Offered, Place, is_filled};
use crate::receive_queue::memory::{
    QueueLines, QueueMemory, QueueShare, ReceiveQueueAddress, ReceiveQueueOptions,
};
use crate::receive_queue::offer;
use crate::receive_queue::side_store::{SideStore, StoredMessage};
use crate::receive_queue::tickets::ReceiverTickets;
use std::sync::Arc;
use tasuki_core::base::{Cause, Error, Rank, Result, ValueKind};
use tasuki_core::engine::node_state::RankStage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};
use tasuki_core::fabric::SLOT_PAYLOAD;
use tasuki_core::segment::GlobalAddress;

/// Which messages a receive takes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// None: of any slot.
    pub slot: Option<u32>,
    /// The message space.
    pub context: u64,
    /// The type of the values.
    pub kind: ValueKind,
}

impl Wanted {
    fn is(&self, header: &Header) -> bool {
        header.place != Place::Void
            && header.context == self.context
            && self.slot.is_none_or(|slot| header.slot == slot)
    }
}

/// Receives messages from any rank, in a fixed number of buffers.
#[derive(Debug)]
pub struct ReceiveQueue {
    worker: Arc<Worker>,
    memory: QueueMemory,
    lines: Arc<QueueLines>,
    shares: Vec<(QueueShare, ReceiverTickets)>,
    /// The share that is looked at first, so that none is served less than others.
    next: usize,
    side_store: SideStore,
}

/// A message that is there.
#[derive(Clone, Copy, Debug)]
enum FoundMessage {
    /// In a buffer: the share, the ticket.
    Buffer(usize, u64),
    /// In the side store.
    Stored(usize),
}

impl ReceiveQueue {
    /// Makes a queue of this rank.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        progress: &ProgressEngine,
        options: &ReceiveQueueOptions,
    ) -> Result<ReceiveQueue> {
        let memory = QueueMemory::new(worker, &progress.retired_queues, options)?;
        let lines = Arc::new(memory.description.lines(worker, worker.rank())?);
        let tickets = |&share: &QueueShare| (share, ReceiverTickets::new(share.slots, options.first_ticket));
        let shares = memory.description.shares.iter().map(tickets).collect();
        let side_store = SideStore::new(memory.description.buffer_bytes());
        Ok(ReceiveQueue { worker: worker.clone(), memory, lines, shares, next: 0, side_store })
    }

    /// The address by which senders open the queue.
    pub fn address(&self) -> ReceiveQueueAddress {
        self.memory.address
    }

    /// Bytes that the queue takes: its buffers, and the messages that it has copied out of them.
    pub fn bytes(&self) -> u64 {
        self.memory.description.buffer_bytes() + self.side_store.bytes()
    }

    /// Receives the oldest message that is wanted; waits for it. `place` returns the memory for a message of that many
    /// bytes; if it returns an error, or the types do not match, the message stays in the queue.
    pub fn recv<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Received> {
        loop {
            if let Some((found, header)) = self.claim(wanted)? {
                return self.finish(wanted, found, &header, place(header.place.len()));
            }
            self.wait(wanted)?;
        }
    }

    /// Like [`ReceiveQueue::recv`]. Returns `None` if no such message is there.
    pub fn try_recv<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Option<Received>> {
        self.worker.progress_briefly();
        match self.claim(wanted)? {
            Some((found, header)) => self.finish(wanted, found, &header, place(header.place.len())).map(Some),
            None => self.publish(true).map(|()| None),
        }
    }

    /// Returns the words of a line that is filled.
    fn words(&self, share: usize, ticket: u64) -> LineWords {
        let buffer = self.shares[share].0.buffer(ticket);
        let (slots, line) = self.lines.of(buffer);
        (self.lines.main(buffer), std::array::from_fn::<_, SLOT_PAYLOAD, _>(|word| slots.payload(line, word)))
    }

    fn is_there(&self, share: usize, ticket: u64) -> bool {
        is_filled(self.lines.main(self.shares[share].0.buffer(ticket)), ticket)
    }

    fn header(&self, share: usize, ticket: u64) -> Header {
        Header::decode(self.words(share, ticket))
    }

    /// Finds the oldest message that is wanted. Takes void tickets on the way.
    fn find(&mut self, wanted: Wanted) -> Result<Option<FoundMessage>> {
        if !self.side_store.is_empty()
            && let Some((place, _)) = self.side_store.find(|header| wanted.is(header))
        {
            return Ok(Some(FoundMessage::Stored(place)));
        }
        for step in 0..self.shares.len() {
            let share = (self.next + step) % self.shares.len();
            let head = self.shares[share].1.head();
            // The head is nearly always the next message.
            let found = match self.is_there(share, head) && wanted.is(&self.header(share, head)) {
                true => Some(head),
                false => self.find_behind(share, wanted)?,
            };
            if let Some(ticket) = found {
                self.next = (share + 1) % self.shares.len();
                return Ok(Some(FoundMessage::Buffer(share, ticket)));
            }
        }
        Ok(None)
    }

    /// Finds the oldest message of a share that is wanted, also behind others.
    #[cold]
    fn find_behind(&mut self, share: usize, wanted: Wanted) -> Result<Option<u64>> {
        // More may arrive during the search, also of a sender whose later message was found already. They do not count.
        let tickets = &self.shares[share].1;
        let there: Vec<u64> = tickets.open().filter(|&ticket| self.is_there(share, ticket)).collect();
        for &ticket in &there {
            let header = self.header(share, ticket);
            if header.place == Place::Void {
                self.take(share, ticket)?;
            } else if wanted.is(&header) && self.follows(share, ticket, &header, &there) {
                return Ok(Some(ticket));
            }
        }
        Ok(None)
    }

    /// Returns true if all messages of the same sender before that one have arrived: lines may arrive in another order than
    /// they were written.
    fn follows(&self, share: usize, mut ticket: u64, header: &Header, there: &[u64]) -> bool {
        let tickets = &self.shares[share].1;
        let mut before = u64::from(header.before);
        while before != 0 && before <= ticket.wrapping_sub(tickets.head()) {
            ticket = ticket.wrapping_sub(before);
            if tickets.is_taken(ticket) {
                return true; // and so were those before it, or they are in the side store
            }
            if !there.contains(&ticket) {
                return false;
            }
            before = u64::from(self.header(share, ticket).before);
        }
        true
    }

    /// Finds the oldest message that is wanted, checks its type, and claims it if it stays at its sender. Passes over
    /// messages that their senders have taken back.
    fn claim(&mut self, wanted: Wanted) -> Result<Option<(FoundMessage, Header)>> {
        self.worker.check_alive().map_err(|cause| self.fault(cause, wanted))?;
        while let Some(found) = self.find(wanted)? {
            let header = match found {
                FoundMessage::Buffer(share, ticket) => self.header(share, ticket),
                FoundMessage::Stored(place) => self.side_store.get(place).header,
            };
            if !header.kind.matches(wanted.kind) {
                return Err(self.fault(type_mismatch(header.kind.class(), wanted.kind.class()), wanted));
            }
            match &header.place {
                Place::Offered(offered) if !offer::claim(&self.worker, offered)? => self.discard(found)?,
                _ => return Ok(Some((found, header))),
            }
        }
        Ok(None)
    }

    /// Copies a message that was claimed, and frees its buffer.
    fn finish(
        &mut self,
        wanted: Wanted,
        found: FoundMessage,
        header: &Header,
        into: Result<&mut [u8], Cause>,
    ) -> Result<Received> {
        let copied = match into {
            Ok(into) => self.copy(found, header, into).map_err(|error| error.in_call(|| call_text(wanted))),
            Err(cause) => Err(self.fault(cause, wanted)),
        };
        if let Place::Offered(offered) = &header.place {
            offer::end(&self.worker, offered, copied.is_ok())?;
        }
        copied?;
        self.discard(found)?;
        Ok(Received { source: header.source, slot: header.slot, len: header.place.len() })
    }

    fn fault(&self, cause: Cause, wanted: Wanted) -> Error {
        self.worker.fault(cause, || call_text(wanted))
    }

    fn area_of(&self, share: usize, ticket: u64) -> GlobalAddress {
        self.memory.description.area_of(self.shares[share].0.buffer(ticket))
    }

    fn copy(&self, found: FoundMessage, header: &Header, into: &mut [u8]) -> Result<()> {
        match (&header.place, found) {
            (Place::Void, _) => {}
            (Place::Line(words, len), _) => {
                into.copy_from_slice(&bytemuck::cast_slice(words)[..usize::from(*len)])
            }
            (Place::Area(_), FoundMessage::Buffer(share, ticket)) => {
                self.worker.get(self.area_of(share, ticket), into)?
            }
            (Place::Area(_), FoundMessage::Stored(place)) => {
                into.copy_from_slice(&self.side_store.get(place).bytes)
            }
            (Place::Offered(Offered { from, .. }), _) => self.worker.get(*from, into)?,
        }
        Ok(())
    }

    /// Frees the place of a message that is not needed any more.
    fn discard(&mut self, found: FoundMessage) -> Result<()> {
        match found {
            FoundMessage::Buffer(share, ticket) => self.take(share, ticket),
            FoundMessage::Stored(place) => {
                self.side_store.remove(place);
                Ok(())
            }
        }
    }

    fn take(&mut self, share: usize, ticket: u64) -> Result<()> {
        let (share, tickets) = &mut self.shares[share];
        tickets.take(ticket);
        tickets.publish(&share.counters(&self.worker), false)
    }

    /// Shows senders all buffers that are free.
    fn publish(&mut self, all: bool) -> Result<()> {
        let worker = &self.worker;
        self.shares.iter_mut().try_for_each(|(share, tickets)| tickets.publish(&share.counters(worker), all))
    }

    /// Waits for a message that is not there yet.
    #[cold]
    fn wait(&mut self, wanted: Wanted) -> Result<()> {
        self.publish(true)?;
        // First which buffers are not filled, and then a look at the others: a message that comes in between is in the list.
        let (mut awaited, mut full) = (Vec::new(), None);
        for (number, (share, tickets)) in self.shares.iter().enumerate() {
            let before = awaited.len();
            let buffers = tickets.open().map(|ticket| (share.buffer(ticket), ticket));
            awaited.extend(buffers.filter(|&(buffer, ticket)| !is_filled(self.lines.main(buffer), ticket)));
            if awaited.len() == before {
                full = Some(number);
            }
        }
        if self.find(wanted)?.is_some() {
            return Ok(());
        }
        if let Some(share) = full {
            let head = self.shares[share].1.head();
            // Unless the look has removed a void ticket.
            return if self.is_there(share, head) { self.store_oldest(share, wanted) } else { Ok(()) };
        }
        let event = Arrival { lines: self.lines.clone(), awaited: awaited.into(), wanted };
        for _ in 0..self.worker.spins(None) {
            if event.happened() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let deadline = self.worker.call_deadline();
        self.worker.wait(&Condition::Event(Arc::new(event)), deadline, &|| call_text(wanted))
    }

    /// Copies the oldest message of a share out, whose buffers are all filled with messages that are not wanted.
    #[cold]
    fn store_oldest(&mut self, share: usize, wanted: Wanted) -> Result<()> {
        let ticket = self.shares[share].1.head();
        let header = self.header(share, ticket);
        let len = if let Place::Area(len) = header.place { len } else { 0 };
        self.side_store.check_room(len).map_err(|cause| self.fault(cause, wanted))?;
        let mut bytes = vec![0; len as usize];
        self.worker.get(self.area_of(share, ticket), &mut bytes)?;
        self.side_store.push(StoredMessage { header, bytes: bytes.into() });
        self.take(share, ticket)?;
        self.publish(true)
    }
}

fn call_text(wanted: Wanted) -> String {
    match wanted.slot {
        None => "recv(any rank)".into(),
        Some(slot) => format!("recv(slot {slot} from any rank)"),
    }
}

/// Waits until a message is there that was not there before.
#[derive(Debug)]
struct Arrival {
    lines: Arc<QueueLines>,
    /// The buffers that may be filled next, and their tickets.
    awaited: Box<[(u64, u64)]>,
    wanted: Wanted,
}

impl WaitEvent for Arrival {
    fn happened(&self) -> bool {
        self.awaited.iter().any(|&(buffer, ticket)| is_filled(self.lines.main(buffer), ticket))
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }

    fn needs_another_rank(&self) -> bool {
        true
    }

    fn call(&self) -> String {
        call_text(self.wanted)
    }
}
