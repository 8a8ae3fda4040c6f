//! The any-source queue: a receive queue that every rank has, for the messages of all its communicators whose receiver
//! does not name the sender.
//!
//! It lies at a fixed place of each rank's arena, in pages that nobody has touched before its first message. So no rank
//! makes it, and no sender waits for the receiver's processor. Memory that is zero is an empty queue, but for its size:
//! who comes first, a sender or the receiver, writes that, and all others use what they find.
//!
//! | offset in the queue's place | holds |
//! |---|---|
//! | 0 | counters, as those of a [share](crate::receive_queue::counters); the key is the size: slots:32, bytes of each:32; senders are not counted |
//! | 4 Ki | lines of the buffers, 128 in the space of a unit |
//! | 8 Mi | areas of the buffers |
//!
//! The line of a message says of which communicator it is. There is one ticket counter for all communicators, so
//! messages that nobody receives move into the side store, where they stop nobody else.
//!
//! Threads. Any number of threads of a rank may send to one receiver and receive at once. A sender holds a lock for its
//! receiver while it draws its ticket. So the messages of a rank to another are in one order, that of their tickets,
//! whatever threads and requests send them; the receiver keeps that order, though they may be written in another one. The lock of the receiving side is held during a look at the queue, and while a message is copied from a
//! buffer. No thread holds it while it waits for a message, or fetches a long one from its sender.

use crate::context::{Context, Received};
use crate::progress::engine::ProgressEngine;
use crate::progress::finalize::UnreceivedMessages;
use crate::receive_queue::counters::Counters;
use crate::receive_queue::drawn_message::DrawnMessage;
use crate::receive_queue::layout::Header;
use crate::receive_queue::memory::{Description, QueueShare, UNIT_BUFFERS};
use crate::receive_queue::receiver::{
    Arrival, FoundMessage, Look, QueueReader, TakenMessage, Wanted, error_of_receive,
};
use crate::receive_queue::sender::{MessageLabel, QueueAccess, QueueWriter, error_of_send, send};
use crate::slot::arena::{ANY_SOURCE, ANY_SOURCE_BYTES, UNIT, at};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use tasuki_core::base::{Cause, Error, IdMap, Numbered, Rank, Result, ValueKind};
use tasuki_core::bootstrap::AnySourceSize;
use tasuki_core::engine::Worker;
use tasuki_core::node::node_state::RankStage;

const LINES: u64 = 4 << 10;
const AREAS: u64 = 8 << 20;
const _: () = assert!(LINES + AnySourceSize::SLOTS_MAX as u64 / UNIT_BUFFERS * UNIT <= AREAS);
const _: () = assert!(AREAS + AnySourceSize::BYTES_MAX <= ANY_SOURCE_BYTES);

/// A rank's any-source queue, and what it needs to send to those of others.
#[derive(Debug)]
pub(crate) struct AnySource {
    worker: Arc<Worker>,
    /// The size of queues to which this rank comes first.
    size: OnceLock<AnySourceSize>,
    /// Made when this rank looks at its queue for the first time.
    reader: OnceLock<Mutex<QueueReader>>,
    /// The queues to which this rank has sent.
    writers: IdMap<AnySourceWriter>,
}

/// The any-source queue of a receiver, for its senders of this rank.
#[derive(Debug)]
pub(crate) struct AnySourceWriter {
    pub(crate) access: Arc<QueueAccess>,
    writer: Mutex<QueueWriter>,
}

impl AnySourceWriter {
    /// Draws the ticket of the next message. Also returns true if its buffer is free.
    #[inline]
    pub(crate) fn draw(
        &self,
        worker: &Worker,
        label: MessageLabel,
        call: &dyn Fn() -> String,
    ) -> Result<(DrawnMessage, bool)> {
        match self.writer.try_lock() {
            Ok(mut writer) => writer.draw(label),
            Err(_) => lock(&self.writer, worker, &call())?.draw(label),
        }
    }
}

impl Numbered for AnySourceWriter {
    fn number(&self) -> u64 {
        self.access.receiver.index() as u64
    }
}

/// Takes a lock. Makes progress while another thread has it. Errors: those of a wait.
fn lock<'m, T>(mutex: &'m Mutex<T>, worker: &Worker, call: &str) -> Result<MutexGuard<'m, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => worker.relax(call)?,
        }
    }
}

impl AnySource {
    pub(crate) fn new(worker: &Arc<Worker>) -> AnySource {
        AnySource {
            worker: worker.clone(),
            size: OnceLock::new(),
            reader: OnceLock::new(),
            writers: IdMap::default(),
        }
    }

    /// Finds the queue of a rank, and its size if it has none yet.
    fn describe(&self, receiver: Rank) -> Result<Description> {
        let counters = Counters { worker: &self.worker, at: at(receiver, ANY_SOURCE) };
        let own = *self.size.get_or_init(AnySourceSize::default);
        let key = counters.key_or(u64::from(own.slots) << 32 | u64::from(own.bytes_per_slot))?;
        let (slots, bytes_per_slot) = (key >> 32, key & u64::from(u32::MAX));
        let lines =
            (0..slots.div_ceil(UNIT_BUFFERS)).map(|unit| at(receiver, ANY_SOURCE + LINES + unit * UNIT));
        Ok(Description {
            key,
            bytes_per_slot,
            area: at(receiver, ANY_SOURCE + AREAS),
            shares: vec![QueueShare { counters: counters.at, first: 0, slots }],
            lines: lines.collect(),
        })
    }

    fn open(&self, progress: &Arc<ProgressEngine>, receiver: Rank) -> Result<Arc<AnySourceWriter>> {
        self.writers.get_or_insert_with(receiver.index() as u64, || {
            self.worker.check_rank(receiver)?;
            let writer = QueueWriter::open(&self.worker, progress, receiver, self.describe(receiver)?, true)?;
            Ok(AnySourceWriter { access: writer.access().clone(), writer: Mutex::new(writer) })
        })
    }

    /// Locks this rank's queue.
    fn reader(&self, call: &str) -> Result<MutexGuard<'_, QueueReader>> {
        let reader = match self.reader.get() {
            Some(reader) => reader,
            None => {
                let description = self.describe(self.worker.rank())?;
                let made = QueueReader::new(&self.worker, description, 0)?;
                self.reader.get_or_init(|| Mutex::new(made)) // one that another thread has made is the same
            }
        };
        lock(reader, &self.worker, call)
    }

    /// Returns the queue of a rank, which is opened if it was not. `opened` keeps it then. Error: the call cannot succeed.
    #[inline]
    pub(crate) fn queue_of<'w>(
        &'w self,
        progress: &Arc<ProgressEngine>,
        to: Rank,
        opened: &'w mut Option<Arc<AnySourceWriter>>,
        call: &dyn Fn() -> String,
    ) -> Result<&'w AnySourceWriter> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, call))?;
        if self.worker.node_state().rank_state(to).stage() >= RankStage::Leaving {
            return Err(self.worker.fault(Cause::PeerLeft { peer: to }, call));
        }
        if let Some(queue) = self.writers.recent(to.index() as u64) {
            return Ok(queue);
        }
        let opening = self.open(progress, to);
        Ok(opened.insert(opening.map_err(|error| error.in_outer_call(call()).on_rank(self.worker.rank()))?))
    }

    fn send(
        &self,
        progress: &Arc<ProgressEngine>,
        bytes: &[u8],
        to: Rank,
        label: MessageLabel,
    ) -> Result<()> {
        let (call, mut opened) = (|| format!("send_any(slot {} to rank {to})", label.slot), None);
        let queue = self.queue_of(progress, to, &mut opened, &call)?;
        let (draw, idle) = (|| queue.draw(&self.worker, label, &call), || self.free_void_of_own(to));
        send(&queue.access, progress, bytes, label.slot, draw, &idle)
    }

    /// Frees the tickets that were given up, if the receiver is this rank: while it waits for room in its own queue,
    /// nobody else can.
    pub(crate) fn free_void_of_own(&self, receiver: Rank) {
        if receiver == self.worker.rank()
            && let Ok(mut reader) = self.reader("send_any")
        {
            let _ = reader.free_void(); // an error shows in the wait
        }
    }

    /// Bytes of this rank's queue, if this rank has looked at it, and of what this rank keeps to send to others. A look
    /// at a queue that nobody has used would take a page.
    fn bytes(&self) -> u64 {
        let own = match self.reader.get().map(Mutex::try_lock) {
            Some(Ok(reader)) => reader.bytes(),
            Some(Err(_)) => self.describe(self.worker.rank()).map_or(0, |queue| queue.buffer_bytes()),
            None => 0,
        };
        let one = (size_of::<AnySourceWriter>() + size_of::<QueueAccess>()) as u64;
        own + self.writers.items().iter().map(|writer| one + writer.access.deferred_bytes()).sum::<u64>()
    }
}

impl UnreceivedMessages for AnySource {
    /// A message that stays at its sender does not count: the sender waits for its end, and gets an error.
    fn unreceived(&self) -> Option<Cause> {
        let rank = self.worker.rank();
        if self.reader.get().is_none()
            && !(Counters { worker: &self.worker, at: at(rank, ANY_SOURCE) }.has_key().ok()?)
        {
            return None; // nobody has used it
        }
        let (messages, Header { source, slot, .. }) = self.reader("leave()").ok()?.left()?;
        Some(Cause::Unreceived { messages, peer: source, slot: slot as usize })
    }
}

/// What a look for a message from any member has found.
#[derive(Debug)]
pub enum AnyLook {
    /// A message, which was copied.
    Message(TakenMessage),
    /// None; the event that there may be one.
    Nothing(Arrival),
}

/// Whether a receive from any member ends because all others are leaving. A rank that leaves writes the messages of its
/// requests, so the receive goes on while a message that was drawn is not there, and looks once more when all are.
#[derive(Clone, Debug, Default)]
pub struct SendersLeft(Option<Error>);

impl SendersLeft {
    /// Called when a wait for a message has ended with an error. Returns it, unless the receive is to look again.
    pub fn note(&mut self, context: &Context, error: Error) -> Result<()> {
        if !matches!(error.cause(), Cause::PeerLeft { .. }) {
            return Err(error);
        }
        match context.any_source.reader("recv_any")?.is_ticket_out()? {
            true => context.worker.pause(),
            false => self.0 = Some(error), // all messages that ever come are there
        }
        Ok(())
    }

    /// Called when a look has found no message. Returns the error if it was the last look.
    pub fn none_found(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }

    /// Returns true if the next look is the last one.
    pub fn is_last_look(&self) -> bool {
        self.0.is_some()
    }
}

impl Context {
    /// Sets the size of the any-source queues to which this rank comes first, its own or those of others. Without
    /// effect after the first message.
    pub fn set_any_source_size(&self, size: AnySourceSize) {
        self.any_source.size.get_or_init(|| size);
    }

    /// Sends a message to a member, which receives it by [`Context::recv_any`]. Returns when its bytes may be used
    /// again: when they are in a buffer of the receiver's any-source queue or, if they are longer, when it has fetched
    /// them. After an error the message was not sent.
    pub fn send_any(&self, bytes: &[u8], to: Rank, slot: u32, kind: ValueKind) -> Result<()> {
        let (rank, label) = self.label_any("send_any", to, slot, kind)?;
        let sent = self.any_source.send(&self.progress, bytes, rank, label);
        sent.map_err(|error| error_of_send(error, || format!("send_any(slot {slot} to rank {to})")))
    }

    /// Returns the rank of a member, and what a message to it is labelled with.
    #[inline]
    pub(crate) fn label_any(
        &self,
        name: &str,
        to: Rank,
        slot: u32,
        kind: ValueKind,
    ) -> Result<(Rank, MessageLabel)> {
        if slot >= Context::NO_SLOT {
            let cause = Cause::Argument("a message needs a slot of 0 to 4,294,967,293".into());
            return Err(self.worker.fault(cause, || format!("{name}(to rank {to})")));
        }
        let call = || format!("{name}(slot {slot} to rank {to})");
        let rank = self.rank_of(to).ok_or_else(|| self.worker.fault(self.no_such_member(to), call))?;
        Ok((rank, MessageLabel { slot, kind, context: self.number }))
    }

    /// Receives the oldest message of this context that is on that slot, or on any slot, from any member; waits for it.
    /// `place` returns the memory for a message of that many bytes; if it returns an error, or the types do not match,
    /// the message stays in the queue.
    pub fn recv_any<'b>(
        &self,
        slot: u32,
        kind: ValueKind,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Received> {
        let wanted = self.wanted("recv_any", slot, kind)?;
        self.receive_any(wanted, place).map_err(|error| error_of_receive(error, wanted))
    }

    fn receive_any<'b>(
        &self,
        wanted: Wanted,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Received> {
        let head = self.any_source.reader(wanted.call)?.empty_head();
        if let Some(head) = head {
            head.spin(&self.worker);
        }
        let mut ends = SendersLeft::default();
        loop {
            let mut reader = self.any_source.reader(wanted.call)?;
            match reader.look(wanted, self.member_ranks())? {
                Look::Message(found, header) => {
                    let taken = self.take_any(reader, wanted, found, &header, place(header.place.len()))?;
                    return Ok(self.received_any(&taken));
                }
                Look::Nothing(arrival) => {
                    drop(reader);
                    ends.none_found()?;
                    arrival.wait(&self.worker).or_else(|error| ends.note(self, error))?;
                }
            }
        }
    }

    /// Like [`Context::recv_any`]. Returns `None` if no such message is there.
    pub fn try_recv_any<'b>(
        &self,
        slot: u32,
        kind: ValueKind,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<Option<Received>> {
        let wanted = self.wanted("try_recv_any", slot, kind)?;
        self.worker.progress_briefly();
        let look = || {
            let mut reader = self.any_source.reader(wanted.call)?;
            let Some((found, header)) = reader.find_now(wanted)? else { return Ok(None) };
            let taken = self.take_any(reader, wanted, found, &header, place(header.place.len()))?;
            Ok(Some(self.received_any(&taken)))
        };
        look().map_err(|error| error_of_receive(error, wanted))
    }

    /// Takes a message like [`Context::recv_any`], for a request that may [put it back](Context::put_back_any). Does
    /// not wait.
    pub fn look_any<'b>(
        &self,
        slot: u32,
        kind: ValueKind,
        place: impl FnOnce(u64) -> Result<&'b mut [u8], Cause>,
    ) -> Result<AnyLook> {
        let wanted = self.wanted("irecv_any", slot, kind)?;
        let look = || {
            let mut reader = self.any_source.reader(wanted.call)?;
            match reader.look(wanted, self.member_ranks())? {
                Look::Message(found, header) => self
                    .take_any(reader, wanted, found, &header, place(header.place.len()))
                    .map(AnyLook::Message),
                Look::Nothing(arrival) => Ok(AnyLook::Nothing(arrival)),
            }
        };
        look().map_err(|error| error_of_receive(error, wanted))
    }

    /// Takes a message that was found. Fetches it, if it has stayed at its sender, when other threads may use the queue
    /// again.
    fn take_any(
        &self,
        mut reader: MutexGuard<'_, QueueReader>,
        wanted: Wanted,
        found: FoundMessage,
        header: &Header,
        into: Result<&mut [u8], Cause>,
    ) -> Result<TakenMessage> {
        let taken = reader.take(wanted, found, header, into)?;
        drop(reader);
        taken.fetch(&self.worker, wanted)
    }

    /// Puts a message back: another receive gets it, as if it had never been taken.
    pub fn put_back_any(&self, message: &TakenMessage, bytes: &[u8]) {
        let is_over = self.worker.fork_guard().is_forked() || self.worker.check_alive().is_err();
        if !is_over && let Ok(mut reader) = self.any_source.reader("irecv_any") {
            reader.put_back(message, bytes);
        }
    }

    /// Returns what a receive returns about a message from any member.
    pub fn received_any(&self, message: &TakenMessage) -> Received {
        let got = message.received();
        Received { source: self.member_of(got.source).unwrap_or(got.source), ..got }
    }

    /// Bytes of this rank's any-source queue, if this rank has looked at it, and of what this rank keeps to send to
    /// others.
    pub fn any_source_bytes(&self) -> u64 {
        self.any_source.bytes()
    }

    fn wanted(&self, call: &'static str, slot: u32, kind: ValueKind) -> Result<Wanted> {
        if slot == Context::NO_SLOT {
            let cause = Cause::Argument("a message has a slot of 0 to 4,294,967,293".into());
            return Err(self.worker.fault(cause, || call.into()));
        }
        Ok(Wanted { call, slot: (slot != Context::ANY).then_some(slot), context: self.number, kind })
    }
}
