//! The receiving side of a receive queue.

use crate::context::Received;
use crate::progress::engine::ProgressEngine;
use crate::protocol::fit::type_mismatch;
use crate::receive_queue::layout::{Header, INLINE_MAX, LineWords, Place, has_reached, is_filled};
use crate::receive_queue::memory::{
    Description, QueueLines, QueueMemory, QueueShare, ReceiveQueueAddress, ReceiveQueueOptions,
};
use crate::receive_queue::offer;
use crate::receive_queue::side_store::{SideStore, StoredMessage, precedes};
use crate::receive_queue::tickets::ReceiverTickets;
use std::sync::Arc;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, Rank, Result, ValueKind};
use tasuki_core::engine::{Condition, OneOf, WaitEvent, Worker};
use tasuki_core::fabric::SLOT_PAYLOAD;
use tasuki_core::node::node_state::RankStage;
use tasuki_core::segment::GlobalAddress;

/// Which messages a receive takes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The name of the call.
    pub call: &'static str,
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
    reader: QueueReader,
    memory: QueueMemory,
}

/// Takes messages from the buffers of a queue. One thread at a time uses it.
#[derive(Debug)]
pub(crate) struct QueueReader {
    worker: Arc<Worker>,
    description: Description,
    lines: Arc<QueueLines>,
    shares: Vec<ReadShare>,
    /// The share that is looked at first, so that none is served less than others.
    next: usize,
    side_store: SideStore,
    /// How many messages were put back.
    put_back: Arc<AtomicU64>,
}

/// A share, as its reader sees it.
#[derive(Debug)]
struct ReadShare {
    share: QueueShare,
    tickets: ReceiverTickets,
    /// Where the last search behind the first buffer ended.
    searched: Searched,
}

/// A search for messages behind the first buffer, whose sender may have been interrupted between its ticket and its
/// message, for as long as the processor serves others. So that each receive need not look at all buffers again
/// meanwhile, the next search for the same messages goes on where the last one has found one.
#[derive(Clone, Copy, Debug)]
struct Searched {
    slot: Option<u32>,
    context: u64,
    /// The ticket behind that of the message that it has found.
    next: u64,
    /// How many searches may still go on there. So a message whose line has come late is not overtaken for ever.
    left: u64,
}

/// How many searches go on, at least; and the part of the buffers that a share may have.
const SEARCHES_MIN: u64 = 8;
const SEARCHES_PART: u64 = 8;

/// A message that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FoundMessage {
    /// In a buffer: the share, the ticket.
    Buffer(usize, u64),
    /// In the side store.
    Stored(usize),
}

/// What a look at a queue has found.
#[derive(Debug)]
pub(crate) enum Look {
    /// A message that is wanted, which was claimed if it stays at its sender.
    Message(FoundMessage, Header),
    /// None; the event that there may be one.
    Nothing(Arrival),
}

/// A message that was taken out of a queue.
#[derive(Debug)]
pub(crate) struct Taken<'b> {
    header: Header,
    ticket: u64,
    into: &'b mut [u8],
}

impl Taken<'_> {
    /// Copies the message, if it has stayed at its sender. Returns what is known about it.
    pub(crate) fn fetch(self, worker: &Worker, wanted: Wanted) -> Result<TakenMessage> {
        if let Place::Offered(offered) = &self.header.place {
            let copied = worker.get(offered.from, self.into);
            offer::end(worker, offered, copied.is_ok())?;
            copied.map_err(|error| error.in_call(|| call_text(wanted)))?;
        }
        Ok(TakenMessage { header: self.header, ticket: self.ticket })
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub struct TakenMessage {
    header: Header,
    ticket: u64,
}

impl TakenMessage {
    /// Returns what a receive returns about it.
    pub fn received(&self) -> Received {
        let Header { source, slot, .. } = self.header;
        Received { source, slot, len: self.header.place.len() }
    }
}

impl ReceiveQueue {
    /// Makes a queue of this rank.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        progress: &ProgressEngine,
        options: &ReceiveQueueOptions,
    ) -> Result<ReceiveQueue> {
        let memory = QueueMemory::new(worker, &progress.receive_queues, options)?;
        let reader = QueueReader::new(worker, memory.description.clone(), options.first_ticket)?;
        Ok(ReceiveQueue { reader, memory })
    }

    /// The address by which senders open the queue.
    pub fn address(&self) -> ReceiveQueueAddress {
        self.memory.address
    }

    /// Bytes that the queue takes: its buffers, and the messages that it has copied out of them.
    pub fn bytes(&self) -> u64 {
        self.reader.bytes()
    }

    /// Receives the oldest message that is wanted; waits for it. `place` returns the memory for a message of that many
    /// bytes; if it returns an error, or the types do not match, the message stays in the queue.
    pub fn recv<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Received> {
        self.receive(wanted, place).map_err(|error| error_of_receive(error, wanted))
    }

    fn receive<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Received> {
        let reader = &mut self.reader;
        if let Some(head) = reader.empty_head() {
            head.spin(&reader.worker);
        }
        loop {
            match reader.look(wanted, None)? {
                Look::Message(found, header) => {
                    let taken = reader.take(wanted, found, &header, place(header.place.len()))?;
                    return Ok(taken.fetch(&reader.worker, wanted)?.received());
                }
                Look::Nothing(arrival) => arrival.wait(&reader.worker)?,
            }
        }
    }

    /// Like [`ReceiveQueue::recv`]. Returns `None` if no such message is there.
    pub fn try_recv<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Option<Received>> {
        self.try_receive(wanted, place).map_err(|error| error_of_receive(error, wanted))
    }

    fn try_receive<'b>(
        &mut self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Option<Received>> {
        let reader = &mut self.reader;
        reader.worker.progress_briefly();
        let Some((found, header)) = reader.find_now(wanted)? else { return Ok(None) };
        let taken = reader.take(wanted, found, &header, place(header.place.len()))?;
        Ok(Some(taken.fetch(&reader.worker, wanted)?.received()))
    }
}

impl QueueReader {
    /// Opens the queue of this rank with that description.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        description: Description,
        first_ticket: u64,
    ) -> Result<QueueReader> {
        let lines = Arc::new(description.open_lines(worker)?);
        let searched = Searched { slot: None, context: 0, next: first_ticket, left: 0 };
        let read = |&share: &QueueShare| {
            let tickets = ReceiverTickets::new(share.slots, first_ticket);
            ReadShare { share, tickets, searched }
        };
        let shares = description.shares.iter().map(read).collect();
        let side_store = SideStore::new(description.buffer_bytes());
        let put_back = Arc::default();
        Ok(QueueReader { worker: worker.clone(), description, lines, shares, next: 0, side_store, put_back })
    }

    /// Bytes that the queue takes: its buffers, and the messages that it has copied out of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.description.buffer_bytes() + self.side_store.bytes()
    }

    /// Returns the buffers in which the next message nearly always comes, if they are not filled: the first one, and the
    /// one behind the last message that was found behind it. None also for a queue of several shares.
    pub(crate) fn empty_head(&self) -> Option<EmptyHead> {
        let [ReadShare { share, tickets, searched }] = &self.shares[..] else { return None };
        let head = tickets.head();
        let behind = if searched.left > 0 && tickets.is_open(searched.next) { searched.next } else { head };
        let is_empty = !self.is_there(0, head) && !self.is_there(0, behind);
        let next = [head, behind].map(|ticket| (share.buffer(ticket), ticket));
        is_empty.then(|| EmptyHead { lines: self.lines.clone(), next })
    }

    /// Looks for the oldest message that is wanted. `members`: the ranks that may send it, if they are not all ranks.
    pub(crate) fn look(&mut self, wanted: Wanted, members: Option<&Arc<[Rank]>>) -> Result<Look> {
        loop {
            if let Some((found, header)) = self.claim(wanted)? {
                return Ok(Look::Message(found, header));
            }
            if let Some(arrival) = self.arrival(wanted, members)? {
                return Ok(Look::Nothing(arrival));
            }
        }
    }

    /// Like [`QueueReader::look`]. If there is no such message, shows senders all buffers that are free.
    pub(crate) fn find_now(&mut self, wanted: Wanted) -> Result<Option<(FoundMessage, Header)>> {
        let claimed = self.claim(wanted)?;
        if claimed.is_none() {
            self.publish(true)?;
        }
        Ok(claimed)
    }

    /// Returns the words of a line that is filled.
    fn words(&self, share: usize, ticket: u64) -> LineWords {
        let buffer = self.shares[share].share.buffer(ticket);
        let (slots, line) = self.lines.of(buffer);
        (self.lines.main(buffer), std::array::from_fn::<_, SLOT_PAYLOAD, _>(|word| slots.payload(line, word)))
    }

    fn is_there(&self, share: usize, ticket: u64) -> bool {
        is_filled(self.lines.main(self.shares[share].share.buffer(ticket)), ticket)
    }

    fn header(&self, share: usize, ticket: u64) -> Header {
        Header::decode(self.words(share, ticket))
    }

    /// Finds the oldest message that is wanted. Takes void tickets on the way.
    fn find(&mut self, wanted: Wanted) -> Result<Option<FoundMessage>> {
        let mut stored = None;
        if !self.side_store.is_empty()
            && let Some((place, message)) = self.side_store.find(|header| wanted.is(header))
        {
            // All are older than those in the buffers, but for messages that were put back.
            if self.shares.len() > 1 || precedes(message.ticket, self.shares[0].tickets.head()) {
                return Ok(Some(FoundMessage::Stored(place)));
            }
            stored = Some((place, message.ticket));
        }
        for step in 0..self.shares.len() {
            let share = (self.next + step) % self.shares.len();
            let head = self.shares[share].tickets.head();
            // The head is nearly always the next message.
            let found = match self.is_there(share, head) && wanted.is(&self.header(share, head)) {
                true => Some(head),
                false => self.find_behind(share, wanted)?,
            };
            if let Some(ticket) =
                found.filter(|&found| stored.is_none_or(|(_, ticket)| precedes(found, ticket)))
            {
                self.next = (share + 1) % self.shares.len();
                return Ok(Some(FoundMessage::Buffer(share, ticket)));
            }
        }
        Ok(stored.map(|(place, _)| FoundMessage::Stored(place)))
    }

    /// Finds the oldest message of a share that is wanted, also behind others. Takes void tickets on the way.
    #[cold]
    fn find_behind(&mut self, share: usize, wanted: Wanted) -> Result<Option<u64>> {
        let ReadShare { tickets, searched, .. } = &self.shares[share];
        let (head, end) = (tickets.head(), tickets.head().wrapping_add(tickets.slots()));
        // A message that was found and not taken, because it did not fit, is the oldest one still.
        let is_taken = !tickets.is_open(searched.next.wrapping_sub(1));
        let goes_on = (searched.slot, searched.context) == (wanted.slot, wanted.context)
            && is_taken
            && tickets.is_open(searched.next)
            && searched.left > 0;
        let (begin, left) = match goes_on {
            true => (searched.next, searched.left - 1),
            false => (head, (tickets.slots() / SEARCHES_PART).max(SEARCHES_MIN)),
        };
        for from in [begin, head] {
            let mut ticket = from;
            while ticket != end {
                if let Some(found) = self.look_at(share, ticket, wanted)? {
                    let (slot, context, next) = (wanted.slot, wanted.context, found.wrapping_add(1));
                    self.shares[share].searched = Searched { slot, context, next, left };
                    return Ok(Some(found));
                }
                ticket = ticket.wrapping_add(1);
            }
            if begin == head {
                break;
            }
        }
        self.shares[share].searched.left = 0;
        Ok(None)
    }

    /// Returns that ticket, if its message is there and wanted, or that of an earlier message of the same sender that
    /// is wanted, too. Takes the ticket if it is void.
    fn look_at(&mut self, share: usize, ticket: u64, wanted: Wanted) -> Result<Option<u64>> {
        if !self.shares[share].tickets.is_open(ticket) || !self.is_there(share, ticket) {
            return Ok(None);
        }
        let header = self.header(share, ticket);
        if header.place == Place::Void {
            // Not before the message before it was taken: a later one finds that message through this ticket.
            let tickets = &self.shares[share].tickets;
            let before = ticket.wrapping_sub(u64::from(header.before));
            let may_free = header.before == 0 || !tickets.is_open(before);
            return if may_free { self.free(share, ticket).map(|()| None) } else { Ok(None) };
        }
        Ok(if wanted.is(&header) { self.first_of_sender(share, ticket, &header, wanted) } else { None })
    }

    /// Returns the first message that is wanted of the sender of this one. `None` if a message of that sender before
    /// this one has not arrived: lines may arrive in another order than they were written.
    fn first_of_sender(&self, share: usize, mut ticket: u64, header: &Header, wanted: Wanted) -> Option<u64> {
        let tickets = &self.shares[share].tickets;
        let (mut first, mut before) = (ticket, u64::from(header.before));
        while before != 0 && before <= ticket.wrapping_sub(tickets.head()) {
            ticket = ticket.wrapping_sub(before);
            if tickets.is_taken(ticket) {
                break; // and so were those before it, or they are in the side store
            }
            if !self.is_there(share, ticket) {
                return None;
            }
            let header = self.header(share, ticket);
            if wanted.is(&header) {
                first = ticket;
            }
            before = u64::from(header.before);
        }
        Some(first)
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
                let cause = type_mismatch(header.kind.class(), wanted.kind.class());
                return Err(from_sender(self.fault(cause, wanted), &header));
            }
            match &header.place {
                Place::Offered(offered) if !offer::claim(&self.worker, offered)? => self.discard(found)?,
                _ => return Ok(Some((found, header))),
            }
        }
        Ok(None)
    }

    /// Takes a message that was claimed out of the queue, and frees its buffer. Copies it, unless it stays at its
    /// sender. If `into` is an error, the message stays in the queue.
    pub(crate) fn take<'b>(
        &mut self,
        wanted: Wanted,
        found: FoundMessage,
        header: &Header,
        into: Result<&'b mut [u8], Cause>,
    ) -> Result<Taken<'b>> {
        let copied = match into {
            Ok(into) => self.copy(found, header, into).map_err(|error| error.in_call(|| call_text(wanted))),
            Err(cause) => Err(from_sender(self.fault(cause, wanted), header)),
        };
        if let (Place::Offered(offered), Err(_)) = (&header.place, &copied) {
            offer::end(&self.worker, offered, false)?;
        }
        let into = copied?;
        let ticket = match found {
            FoundMessage::Buffer(_, ticket) => ticket,
            FoundMessage::Stored(place) => self.side_store.get(place).ticket,
        };
        self.discard(found)?;
        Ok(Taken { header: *header, ticket, into })
    }

    /// Puts a message back that was taken: another receive gets it, as if it had never been taken. Only for queues of
    /// one share.
    pub(crate) fn put_back(&mut self, message: &TakenMessage, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let (place, bytes) = match bytes.len() <= INLINE_MAX {
            true => (Place::in_line(bytes), Box::default()),
            false => (Place::Area(len), bytes.into()),
        };
        let header = Header { place, ..message.header };
        self.side_store.insert(StoredMessage { ticket: message.ticket, header, bytes });
        self.put_back.fetch_add(1, Ordering::Release);
        self.worker.wake_own_threads();
    }

    fn fault(&self, cause: Cause, wanted: Wanted) -> Error {
        self.worker.fault(cause, || call_text(wanted))
    }

    fn area_of(&self, share: usize, ticket: u64) -> GlobalAddress {
        self.description.area_of(self.shares[share].share.buffer(ticket))
    }

    fn copy<'b>(&self, found: FoundMessage, header: &Header, into: &'b mut [u8]) -> Result<&'b mut [u8]> {
        match (&header.place, found) {
            (Place::Void | Place::Offered(_), _) => {}
            (Place::Line(words, len), _) => {
                into.copy_from_slice(&bytemuck::cast_slice(words)[..usize::from(*len)])
            }
            (Place::Area(_), FoundMessage::Buffer(share, ticket)) => {
                self.worker.get(self.area_of(share, ticket), into)?
            }
            (Place::Area(_), FoundMessage::Stored(place)) => {
                into.copy_from_slice(&self.side_store.get(place).bytes)
            }
        }
        Ok(into)
    }

    /// Frees the place of a message that is not needed any more.
    fn discard(&mut self, found: FoundMessage) -> Result<()> {
        match found {
            FoundMessage::Buffer(share, ticket) => self.free(share, ticket),
            FoundMessage::Stored(place) => {
                self.side_store.remove(place);
                Ok(())
            }
        }
    }

    fn free(&mut self, share: usize, ticket: u64) -> Result<()> {
        let ReadShare { share, tickets, .. } = &mut self.shares[share];
        tickets.take(ticket);
        tickets.publish(&share.counters(&self.worker), false)
    }

    /// Frees the first buffers if their tickets were given up, and shows senders all buffers that are free.
    pub(crate) fn free_void(&mut self) -> Result<()> {
        for share in 0..self.shares.len() {
            loop {
                let head = self.shares[share].tickets.head();
                if !self.is_there(share, head) || self.header(share, head).place != Place::Void {
                    break;
                }
                self.free(share, head)?;
            }
        }
        self.publish(true)
    }

    /// Returns true if the message of a ticket that was drawn is not there yet.
    pub(crate) fn is_ticket_out(&self) -> Result<bool> {
        for (number, ReadShare { share, tickets, .. }) in self.shares.iter().enumerate() {
            let drawn = share.counters(&self.worker).drawn()?;
            let waits_for_buffer = precedes(tickets.head().wrapping_add(tickets.slots()), drawn);
            if waits_for_buffer
                || tickets.open().any(|ticket| precedes(ticket, drawn) && !self.is_there(number, ticket))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns how many messages are in the queue, and one of the oldest. Those that stay at their senders do not count.
    pub(crate) fn left(&self) -> Option<(usize, Header)> {
        let stored = self.side_store.headers().copied();
        let of_share = |number: usize| {
            let there =
                self.shares[number].tickets.open().filter(move |&ticket| self.is_there(number, ticket));
            there.map(move |ticket| self.header(number, ticket))
        };
        let all = stored.chain((0..self.shares.len()).flat_map(of_share));
        let mut left = all.filter(|header| !matches!(header.place, Place::Void | Place::Offered(_)));
        let first = left.next()?;
        Some((1 + left.count(), first))
    }

    /// Shows senders all buffers that are free.
    fn publish(&mut self, all: bool) -> Result<()> {
        let worker = &self.worker;
        let publish = |read: &mut ReadShare| read.tickets.publish(&read.share.counters(worker), all);
        self.shares.iter_mut().try_for_each(publish)
    }

    /// Returns the event that a message is there which was not there before; `None` if one has come, or may have.
    #[cold]
    fn arrival(&mut self, wanted: Wanted, members: Option<&Arc<[Rank]>>) -> Result<Option<Arrival>> {
        self.publish(true)?;
        let put_back = (self.put_back.clone(), self.put_back.load(Ordering::Acquire));
        // First which buffers are not filled, and then a look at the others: a message that comes in between is in the
        // list.
        let (mut awaited, mut full) = (Vec::new(), None);
        for (number, ReadShare { share, tickets, .. }) in self.shares.iter().enumerate() {
            let before = awaited.len();
            let buffers = tickets.open().map(|ticket| (share.buffer(ticket), ticket));
            awaited.extend(buffers.filter(|&(buffer, ticket)| !is_filled(self.lines.main(buffer), ticket)));
            if awaited.len() == before {
                full = Some(number);
            }
        }
        let heads =
            |shares: &[ReadShare]| shares.iter().map(|read| read.tickets.head()).collect::<Vec<u64>>();
        let before = heads(&self.shares);
        if self.find(wanted)?.is_some() || heads(&self.shares) != before {
            return Ok(None); // where a void ticket was taken, other buffers may be filled next
        }
        if let Some(share) = full {
            let head = self.shares[share].tickets.head();
            if self.is_there(share, head) {
                self.store_oldest(share, wanted)?;
            } // else the look has removed a void ticket
            return Ok(None);
        }
        let (lines, members) = (self.lines.clone(), members.cloned());
        Ok(Some(Arrival { lines, awaited: awaited.into(), put_back, wanted, members }))
    }

    /// Copies the oldest message of a share out, whose buffers are all filled with messages that are not wanted.
    #[cold]
    fn store_oldest(&mut self, share: usize, wanted: Wanted) -> Result<()> {
        let ticket = self.shares[share].tickets.head();
        let header = self.header(share, ticket);
        let len = if let Place::Area(len) = header.place { len } else { 0 };
        self.side_store.check_room(len).map_err(|cause| self.fault(cause, wanted))?;
        let mut bytes = vec![0; len as usize];
        self.worker.get(self.area_of(share, ticket), &mut bytes)?;
        let stored = StoredMessage { ticket, header, bytes: bytes.into() };
        match self.shares.len() {
            1 => self.side_store.insert(stored), // messages that were put back may be later
            _ => self.side_store.push(stored),
        }
        self.free(share, ticket)?;
        self.publish(true)
    }
}

/// Returns the error of a receive from any rank. It names the sender of the message that the receive does not fit.
fn from_sender(error: Error, header: &Header) -> Error {
    match error.is_disagreement() {
        true => {
            error.note(format!("rank {} has sent the message", header.source)).with_peer(Some(header.source))
        }
        false => error,
    }
}

/// Makes the receive the call of an error of one of its steps.
#[cold]
pub(super) fn error_of_receive(error: Error, wanted: Wanted) -> Error {
    if error.call().starts_with(wanted.call) { error } else { error.in_outer_call(call_text(wanted)) }
}

fn call_text(Wanted { call, slot, .. }: Wanted) -> String {
    match slot {
        None => format!("{call}(any slot from any rank)"),
        Some(slot) => format!("{call}(slot {slot} from any rank)"),
    }
}

/// The buffers of a queue in which the next message nearly always comes, and their tickets. They were not filled.
pub(crate) struct EmptyHead {
    lines: Arc<QueueLines>,
    next: [(u64, u64); 2],
}

impl EmptyHead {
    /// Waits until one is filled, for as long as a call spins before its first pause. It is cheaper to look at these
    /// than at all buffers.
    pub(crate) fn spin(&self, worker: &Worker) {
        let is_filled = |&(buffer, ticket): &(u64, u64)| has_reached(self.lines.main(buffer), ticket);
        let mut attempts = worker.spins(None);
        while attempts > 0 && !self.next.iter().any(is_filled) {
            attempts -= 1;
            std::hint::spin_loop();
        }
    }
}

/// A message may be there that was not there before.
#[derive(Debug)]
pub struct Arrival {
    lines: Arc<QueueLines>,
    /// The buffers that may be filled next, and their tickets.
    awaited: Box<[(u64, u64)]>,
    /// How many messages were put back, and how many had been when the queue was looked at.
    put_back: (Arc<AtomicU64>, u64),
    wanted: Wanted,
    /// The ranks that may send the message; `None`: all.
    members: Option<Arc<[Rank]>>,
}

impl Arrival {
    /// Waits for it.
    pub(crate) fn wait(self, worker: &Worker) -> Result<()> {
        let wanted = self.wanted;
        let (event, deadline) = (Condition::Event(Arc::new(self)), worker.call_deadline());
        worker.wait(&event, deadline, &|| call_text(wanted))
    }
}

impl WaitEvent for Arrival {
    fn happened(&self) -> bool {
        // Another thread may have taken the message of such a ticket, and the buffer may hold a later one.
        let (put_back, before) = &self.put_back;
        self.awaited.iter().any(|&(buffer, ticket)| has_reached(self.lines.main(buffer), ticket))
            || put_back.load(Ordering::Acquire) != *before
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }

    fn needs_one_of(&self) -> OneOf<'_> {
        self.members.as_deref().map_or(OneOf::AllRanks, OneOf::Ranks)
    }

    fn call(&self) -> String {
        call_text(self.wanted)
    }
}
