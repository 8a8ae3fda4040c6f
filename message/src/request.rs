//! Nonblocking sends and receives.

use crate::blocking::{ShortArrival, is_of_kept};
use crate::buffer::{ArrivalBuffer, MessageBuffer};
use crate::call_info::CallInfo;
use crate::context::{Context, PostedRecv, Received};
use crate::progress::operation::MessageOp;
use crate::progress::poll_spin::{lets_spin, pause_in_spin};
use crate::protocol::kept::{KeptMessage, KeptSearch};
use crate::protocol::outcome::{Done, Outcome};
use crate::protocol::receiver::RecvProtocol;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::{ProtocolState, StepResult};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data, SHORT_MAX};
use crate::typed_slot::TypedSlot;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::thread::panicking;
use std::time::Duration;
use tasuki_core::base::sync::{AtomicU32, Ordering::Relaxed};
use tasuki_core::base::{Cause, Error, Rank, Result, ValueKind};
use tasuki_core::engine::{
    Awaited, BufferView, Condition, Deadline, RevocableBuffer, WaitEvent, may_spin, spun_in_vain,
    wait_in_call, waits_in_call,
};
use tasuki_core::segment::GlobalAddress;

/// How often a send that could complete at once looks for its receive, some 10 ns a look.
const SEND_LOOKS: u32 = 20;

/// A send that was begun. If it is dropped, it completes on its own.
#[derive(Debug)]
pub struct PendingSend {
    context: Arc<Context>,
    call: CallInfo,
    bank: Arc<SlotBank>,
    index: SlotIndex,
    /// `None` if the send completed at once.
    operation: Option<Arc<MessageOp>>,
    /// When it is buffered if it has not met its receive, in ns; `u64::MAX`: never.
    buffer_at_ns: u64,
    /// What became of a message that a poll has buffered, or for which it found no room. The next wait returns it.
    buffered: Option<Result<()>>,
    waited: bool,
}

/// A receive that was begun. Dropping it withdraws the receive: its message, whether it was sent before or is sent
/// later, goes to the next receive on the slot or of any slot. The drop waits for a transfer only if the buffer is job
/// memory or borrowed memory that the sender writes to.
#[derive(Debug)]
pub struct PendingRecv {
    context: Arc<Context>,
    call: CallInfo,
    bank: Arc<SlotBank>,
    index: SlotIndex,
    kind: RecvKind,
    /// The operation that watches for a short message on behalf of a task that awaits it.
    watch: Mutex<Option<Arc<MessageOp>>>,
    /// The size of which the length of the message must be a multiple. A message of another length is kept.
    value_bytes: u64,
    /// The kept message that a short receive gets instead of one in the line.
    kept: OnceLock<(KeptMessage, Done)>,
    waited: bool,
}

#[derive(Debug)]
enum RecvKind {
    /// The message arrives in the slot's line.
    Short {
        number: AtomicU32,
        room: usize,
    },
    Long(Arc<MessageOp>),
}

/// What came of the attempt to buffer a message that waits for its receive.
enum BufferAttempt {
    /// It is not its time, or the message is over.
    NotYet,
    /// There is no room, or the message has met its receive: it will not be buffered.
    Refused,
    Buffered,
}

impl Context {
    /// Begins a send that can complete at once and therefore need not keep `bytes`. Returns `None`, having done
    /// nothing, if it cannot.
    pub fn try_begin_send(
        self: &Arc<Self>,
        bytes: &[u8],
        to: Rank,
        slot: TypedSlot,
    ) -> Result<Option<PendingSend>> {
        let call = self.to("isend", to, slot);
        let (bank, index) = self.bank(call)?;
        let state = bank.state(index);
        let is_sent = state.sending.is_idle()
            && (bank.send_short(index, bytes, slot.kind) || self.send_soon(bytes, slot.kind, &bank, index));
        self.occupy_send(&bank, index, call)?;
        if is_sent || self.send_by_ring(BufferView::of(bytes), slot.kind, &bank, index) {
            return Ok(Some(self.pending_send(call, (bank, index), None, 0)));
        }
        state.sending.set_idle();
        Ok(None)
    }

    /// Sends a short message if its receive is posted within the time that it takes to make an operation for it. Looks
    /// only where that has helped before: a reply is often ready before the rank that asked has posted its receive.
    fn send_soon(&self, bytes: &[u8], kind: ValueKind, bank: &SlotBank, index: SlotIndex) -> bool {
        let send_spin = &self.progress.send_spin;
        if bytes.len() > SHORT_MAX || !lets_spin(&self.worker) || !send_spin.is_likely() {
            return false;
        }
        let is_sent = (0..SEND_LOOKS).any(|_| bank.send_short(index, bytes, kind) || pause_in_spin());
        send_spin.note(is_sent);
        is_sent
    }

    /// Begins a send.
    pub fn begin_send(
        self: &Arc<Self>,
        from: MessageBuffer,
        to: Rank,
        slot: TypedSlot,
    ) -> Result<PendingSend> {
        let call = self.to("isend", to, slot);
        let (bank, index) = self.bank(call)?;
        self.occupy_send(&bank, index, call)?;
        let len = from.len();
        let operation = self.start_send(SendProtocol::new(from, slot.kind), &bank, index);
        Ok(self.pending_send(call, (bank, index), operation, len))
    }

    fn pending_send(
        self: &Arc<Self>,
        call: CallInfo,
        (bank, index): (Arc<SlotBank>, SlotIndex),
        operation: Option<Arc<MessageOp>>,
        len: u64,
    ) -> PendingSend {
        let after = operation.as_ref().and_then(|_| self.buffers_after(len));
        let buffer_at_ns = after
            .map_or(u64::MAX, |after| Deadline::after(self.worker.platform().now_ns(), after).until_ns());
        PendingSend {
            context: self.clone(),
            call,
            bank,
            index,
            operation,
            buffer_at_ns,
            buffered: None,
            waited: false,
        }
    }

    /// Sends as much as possible at once. Returns the operation that waiting calls continue; `None` if the send has
    /// completed.
    fn start_send(
        &self,
        sending: SendProtocol,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
    ) -> Option<Arc<MessageOp>> {
        let (mut protocol, predecessor) = (ProtocolState::Send(sending), self.last_buffered(bank, index));
        if predecessor.is_none()
            && matches!(protocol.step(&self.worker, bank, index, &self.progress.rings), StepResult::Ended)
        {
            let failed = matches!(protocol.end(), Some(Outcome::Failed(_)));
            return failed.then(|| MessageOp::ended(&self.progress.rings, bank, index, protocol));
        }
        let operation = MessageOp::new(&self.progress.rings, bank, index, protocol, predecessor);
        self.progress.add(&operation);
        self.worker.notify_own_helper();
        self.worker.progress_briefly();
        Some(operation)
    }

    /// Begins a receive. A receive of at most [`SHORT_MAX`] bytes on a given slot needs no buffer yet:
    /// [`PendingRecv::take`] copies the bytes.
    pub fn begin_recv(
        self: &Arc<Self>,
        room: usize,
        into: impl FnOnce() -> MessageBuffer,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<PendingRecv> {
        if room > SHORT_MAX || slot.slot == CallInfo::ANY {
            return self.begin_long_recv(into(), from, slot);
        }
        let call = self.from("irecv", from, slot);
        let (bank, index) = self.bank(call)?;
        let Some(posted) = self.post_unless_kept(room, from, slot)? else {
            return self.begin_long_recv(into(), from, slot);
        };
        let number = AtomicU32::new(posted.number());
        let kind = RecvKind::Short { number, room };
        Ok(PendingRecv::new(self, call, (bank, index), kind, 1))
    }

    /// Begins a receive whose message is not taken from the slot's line by [`PendingRecv::take`].
    pub fn begin_long_recv(
        self: &Arc<Self>,
        into: MessageBuffer,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<PendingRecv> {
        self.begin_receive(into, self.from("irecv", from, slot), false)
    }

    /// Begins a receive of a message of any length.
    pub fn begin_recv_vec(
        self: &Arc<Self>,
        into: Arc<ArrivalBuffer>,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<PendingRecv> {
        self.begin_receive(MessageBuffer::OnArrival(into), self.from("irecv_vec", from, slot), false)
    }

    /// Receives a message of any length, by a call of that name. Blocks.
    pub fn recv_vec(
        self: &Arc<Self>,
        name: &'static str,
        into: Arc<ArrivalBuffer>,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<Received> {
        let call = self.from(name, from, slot);
        self.begin_receive(MessageBuffer::OnArrival(into), call, true)?.take(&mut [])
    }

    /// Begins a receive. `waits`: looks for its message as long as a blocking call does before others may step it.
    fn begin_receive(
        self: &Arc<Self>,
        into: MessageBuffer,
        call: CallInfo,
        waits: bool,
    ) -> Result<PendingRecv> {
        let (bank, index) = self.bank(call)?;
        self.occupy_receive(&bank, index, call)?;
        let value_bytes = into.value_bytes();
        let receiving =
            self.receiving(into, &bank, index, call).inspect_err(|_| self.suspect(&bank, index))?;
        let attempts = if waits { self.worker.spins(Some(bank.peer)) } else { 0 };
        let operation = self.start_receive(receiving, &bank, index, attempts);
        let kind = RecvKind::Long(operation.clone());
        let incoming = PendingRecv::new(self, call, (bank, index), kind, value_bytes);
        if !operation.is_over() {
            self.progress.add(&operation); // added after `incoming` exists, which withdraws it on an unwind
            self.look_for_kept(&operation);
            self.worker.notify_own_helper();
        }
        Ok(incoming)
    }

    /// Begins a send from job memory of this rank.
    pub fn begin_send_job(
        self: &Arc<Self>,
        from: GlobalAddress,
        len: u64,
        to: Rank,
        slot: TypedSlot,
    ) -> Result<PendingSend> {
        if let Some(bytes) = self.short_job(&mut [0; SHORT_MAX], from, len)? {
            return match self.try_begin_send(bytes, to, slot)? {
                Some(sent) => Ok(sent),
                None => self.begin_send(
                    MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes.to_vec())),
                    to,
                    slot,
                ),
            };
        }
        self.check_job(from, len, self.to("isend", to, slot))?;
        self.begin_send(MessageBuffer::Job(from, len), to, slot)
    }

    /// Begins a receive into job memory of this rank.
    pub fn begin_recv_job(
        self: &Arc<Self>,
        into: GlobalAddress,
        len: u64,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<PendingRecv> {
        self.check_job(into, len, self.from("irecv", from, slot))?;
        self.begin_long_recv(MessageBuffer::Job(into, len), from, slot)
    }

    /// Posts a receive. Returns an operation, which waiting calls continue if it has not ended.
    fn start_receive(
        &self,
        receiving: RecvProtocol,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        attempts: u32,
    ) -> Arc<MessageOp> {
        let (mut protocol, rings) = (ProtocolState::Receive(receiving), &self.progress.rings);
        match protocol.run(&self.worker, (bank, index), rings, attempts).is_some() {
            true => MessageOp::ended(rings, bank, index, protocol),
            false => MessageOp::new(rings, bank, index, protocol, None),
        }
    }

    /// Buffers a message that waits for its receive, if its time is over. Otherwise sets the time at which the task that
    /// awaits it is woken to do that.
    fn buffer_when_late(
        &self,
        operation: &Arc<MessageOp>,
        at_ns: u64,
        call: CallInfo,
    ) -> Result<BufferAttempt> {
        if at_ns == u64::MAX {
            return Ok(BufferAttempt::NotYet);
        }
        operation.buffer_at_ns().store(at_ns, Relaxed);
        if self.worker.platform().now_ns() < at_ns {
            return Ok(BufferAttempt::NotYet);
        }
        operation.buffer_at_ns().store(u64::MAX, Relaxed);
        self.progress.remove(&self.worker, operation);
        if operation.is_over() {
            return Ok(BufferAttempt::NotYet);
        }
        if operation.is_unmatched_send(&self.worker) && self.buffered(operation, call)? {
            return Ok(BufferAttempt::Buffered);
        }
        self.progress.add(operation);
        Ok(BufferAttempt::Refused)
    }

    /// Takes a send out of the progress engine. Returns true if it has not met a receive, and then nobody will ever
    /// receive it. Waits only until a claim of a receive is decided, which needs no help of the receiver; not during a
    /// panic.
    fn withdraw_send(&self, operation: &Arc<MessageOp>) -> bool {
        let worker = &self.worker;
        self.progress.remove(worker, operation);
        while operation.is_claiming_send(worker) && !panicking() && worker.check().is_ok() {
            if !self.progress.run(worker, operation) {
                worker.pause();
            }
        }
        operation.is_unmatched_send(worker)
    }

    /// Withdraws a send whose request was dropped. Returns false if it has met its receive, and goes on or has ended.
    pub(crate) fn withdraw_detached(&self, operation: &Arc<MessageOp>) -> bool {
        let is_withdrawn = self.withdraw_send(operation);
        match is_withdrawn {
            true => operation.free_slot(),
            false => self.resume(operation),
        }
        is_withdrawn
    }

    /// Lets waiting calls continue an operation that was not withdrawn.
    fn resume(&self, operation: &Arc<MessageOp>) {
        if !operation.is_over() {
            self.progress.add(operation);
            self.worker.notify_own_helper();
        }
    }

    /// Makes progress, and steps an operation. Returns true if it is over or can no longer complete.
    fn test(&self, operation: &Arc<MessageOp>) -> bool {
        self.worker.progress_briefly();
        if self.progress.step(&self.worker, operation) {
            operation.wake();
        }
        self.ends_wait(operation)
    }

    /// Returns true if an operation is over or can no longer complete.
    fn ends_wait(&self, operation: &MessageOp) -> bool {
        operation.is_over() || operation.cannot_finish(&self.worker) || self.worker.check().is_err()
    }

    /// Returns true if an operation is over or can no longer complete. Otherwise the task of `waker` is woken when that
    /// happens. A thread that polls with its own waker looks for the end as long as a blocking call does, and then
    /// waits for it itself.
    fn poll(&self, operation: &Arc<MessageOp>, waker: &Waker) -> bool {
        if !waits_in_call(waker, &self.worker) {
            if self.progress.poll_spin.run(&self.worker, || operation.happened()) {
                self.progress.run(&self.worker, operation);
            }
            if self.poll_in_wait(operation, waker) {
                return true;
            }
            self.progress.ensure_progress(&self.worker, waker);
            return false;
        }
        if may_spin(waker, &self.worker) && self.progress.poll_spin.is_likely() {
            // As often as a blocking call: on its fast path, before it enters the message, and before it waits.
            let is_over = (0..3).any(|_| self.progress.run(&self.worker, operation));
            self.progress.poll_spin.note(is_over);
            if is_over {
                return true;
            }
            spun_in_vain(waker, &self.worker);
        }
        if self.test(operation) {
            return true;
        }
        let condition = Condition::Event(operation.clone());
        let again_at_ns = operation.buffer_at_ns().load(Relaxed);
        wait_in_call(waker, &self.worker, Awaited { condition, again_at_ns, probe: (0, 0) });
        false
    }

    /// Like [`Context::poll`], but relies on the rank's waiting calls to make progress.
    fn poll_in_wait(&self, operation: &Arc<MessageOp>, waker: &Waker) -> bool {
        self.worker.progress_briefly();
        self.progress.step(&self.worker, operation);
        operation.set_waker(Some(waker)); // before the check: a thread that ends it later sees the waker
        let over = self.ends_wait(operation);
        if over {
            operation.set_waker(None);
        }
        over
    }

    /// Makes sure that a task makes progress even if no call of the program waits. A thread that polls with its own
    /// waker waits itself, and needs nothing else.
    pub fn ensure_progress(&self, waker: &Waker) {
        if !waits_in_call(waker, &self.worker) {
            self.progress.ensure_progress(&self.worker, waker);
        }
    }

    /// The condition that the message of a short receive has arrived.
    fn short_arrival(&self, bank: &Arc<SlotBank>, index: SlotIndex, number: u32) -> ShortArrival {
        ShortArrival { bank: bank.clone(), index, number, late_matches: self.late_matches.clone() }
    }

    /// Posts a short receive again if the message that arrived did not fit in an earlier receive, which was withdrawn.
    pub fn repost_if_unfit<'c>(&self, posted: &PostedRecv<'c>) -> Result<Option<PostedRecv<'c>>> {
        let (bank, index, old, room) = (posted.bank(), posted.index(), posted.number(), posted.room());
        let kind = posted.kind();
        let now = encoding::version(bank.state(index).version.load(Relaxed));
        match encoding::read_data(bank.data(index), old) {
            Data::Unfit { version } if version != now => {
                let again = self.post_again(bank, index, old, room, kind)?;
                Ok(Some(PostedRecv::new(bank, index, again, room, kind)))
            }
            _ => Ok(None),
        }
    }

    /// Returns true if the message of a short receive has arrived or can no longer arrive. Makes progress.
    pub fn test_posted(&self, posted: &PostedRecv<'_>) -> bool {
        self.worker.progress_briefly();
        let has_data = || posted.bank().has_data(posted.index(), posted.number());
        has_data() || self.arrival(posted).is_none_or(|arrival| self.worker.is_event_decided(&arrival))
    }

    /// The condition that the message of a short receive has arrived; `None` if the receive fails at once.
    pub fn arrival(&self, posted: &PostedRecv<'_>) -> Option<impl WaitEvent + use<>> {
        let (from, slot) = posted.on();
        let (bank, index) = self.bank(self.from("irecv", from, slot)).ok()?;
        Some(self.short_arrival(&bank, index, posted.number()))
    }
}

impl PendingSend {
    /// Returns the destination and the slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.call.peer, self.call.slot)
    }

    /// Returns true if this thread's calls have a time limit.
    #[inline]
    pub fn has_limit(&self) -> bool {
        self.context.worker.has_limit()
    }

    /// Returns true if the send has been waited for. A wait that found the send buffer full does not count.
    pub fn is_over(&self) -> bool {
        self.waited
    }

    /// Makes progress. Returns true if the send has ended or can no longer complete.
    pub fn test(&mut self) -> bool {
        let Some(operation) = self.operation.clone().filter(|_| self.buffered.is_none()) else {
            self.context.worker.progress_briefly();
            return true;
        };
        self.context.test(&operation) || self.is_buffered_when_late(&operation)
    }

    /// Returns true if the message was buffered because its time is over, or cannot be because of an error. Tries once.
    fn is_buffered_when_late(&mut self, operation: &Arc<MessageOp>) -> bool {
        match self.context.buffer_when_late(operation, self.buffer_at_ns, self.call) {
            Ok(BufferAttempt::NotYet) => return false,
            Ok(BufferAttempt::Refused) => {
                self.buffer_at_ns = u64::MAX;
                return false;
            }
            Ok(BufferAttempt::Buffered) => self.buffered = Some(Ok(())),
            Err(error) => self.buffered = Some(Err(error)),
        }
        true
    }

    /// Returns `Ready` with the result of the wait when the bytes may be reused; otherwise `waker` is woken when they
    /// may.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<()>> {
        self.poll_end(waker).map(|()| self.finish())
    }

    /// Returns `Ready` if a wait would not wait; otherwise `waker` is woken then. The slot stays busy until the wait.
    pub fn poll_end(&mut self, waker: &Waker) -> Poll<()> {
        let Some(operation) = self.operation.clone().filter(|_| self.buffered.is_none()) else {
            return Poll::Ready(());
        };
        if self.is_buffered_when_late(&operation) || self.context.poll(&operation, waker) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Like [`PendingSend::poll`], but relies on the rank's waiting calls to make progress. If pending, stores the
    /// operation in `awaited`.
    pub fn poll_in_wait(&mut self, waker: &Waker, awaited: &mut Option<Arc<MessageOp>>) -> Poll<Result<()>> {
        let Some(operation) = self.operation.clone() else { return Poll::Ready(self.finish()) };
        if self.context.poll_in_wait(&operation, waker) {
            return Poll::Ready(self.finish());
        }
        *awaited = Some(operation);
        Poll::Pending
    }

    /// Cancels the send if it is not matched yet; otherwise waits until the bytes may be reused. Never waits during a
    /// panic, since the rank is lost then.
    pub fn cancel(mut self) {
        self.waited = true;
        if let Some(operation) = &self.operation {
            let _guard = self.context.guard(operation);
            let is_withdrawn = self.context.withdraw_send(operation);
            if !is_withdrawn && !operation.is_over() && !panicking() {
                let _ = self.context.finish(operation, Deadline::NEVER, self.call); // the result does not matter
            }
        }
        self.bank.state(self.index).sending.set_idle();
    }

    /// Drops the request. Returns the operation, which goes on, if the send has not ended.
    pub(crate) fn detached(self) -> Option<Arc<MessageOp>> {
        self.operation.clone()
    }

    /// Withdraws the send if it has not met its receive. Returns true if it was withdrawn: its bytes are not read any
    /// more, and its slot is free. Otherwise the send goes on, or has ended.
    pub fn withdraw(&mut self) -> bool {
        let is_buffered = matches!(self.buffered, Some(Ok(())));
        if self.waited || is_buffered || self.context.worker.fork_guard().is_forked() {
            return false;
        }
        let Some(operation) = &self.operation else { return false };
        if !self.context.withdraw_send(operation) {
            self.context.resume(operation);
            return false;
        }
        operation.set_waker(None);
        self.waited = true;
        self.bank.state(self.index).sending.set_idle();
        true
    }

    /// Waits until the bytes may be reused.
    pub fn wait(mut self) -> Result<()> {
        self.finish()
    }

    /// Like [`PendingSend::wait`], but keeps the request. May be called once, or again after it found the send buffer
    /// full.
    pub fn finish(&mut self) -> Result<()> {
        let sent = match (&self.operation, self.buffered.take()) {
            (_, Some(buffered)) => buffered,
            (None, None) => Ok(()),
            (Some(operation), None) => {
                let left = || self.buffer_at_ns.saturating_sub(self.context.worker.platform().now_ns());
                let after = (self.buffer_at_ns < u64::MAX).then(|| Duration::from_nanos(left()));
                self.context.finish_send(operation, after, self.call)
            }
        };
        self.finished(sent)
    }

    /// Records the result of a wait. A message that found the send buffer full still waits for its receive.
    fn finished(&mut self, sent: Result<()>) -> Result<()> {
        let is_under_way =
            |error: &Error| matches!(error.cause(), Cause::SendBufferFull { .. } | Cause::Full { .. });
        match &self.operation {
            Some(operation) if sent.as_ref().is_err_and(is_under_way) => self.context.progress.add(operation),
            _ => {
                self.waited = true;
                self.bank.state(self.index).sending.set_idle();
            }
        }
        sent
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        if self.waited || self.context.worker.fork_guard().is_forked() {
            return;
        }
        match &self.operation {
            Some(operation) if !matches!(self.buffered, Some(Ok(()))) => {
                operation.set_waker(None);
                if matches!(self.buffered, Some(Err(_))) {
                    self.context.resume(operation); // it was not buffered, and goes on as a send that waits
                }
                if !self.context.is_of_program {
                    // A step of a call that was given up on all members: nobody will post a receive for it.
                    if self.context.withdraw_send(operation) {
                        return self.bank.state(self.index).sending.set_idle();
                    }
                    self.context.resume(operation);
                }
                operation.detach();
            }
            _ => self.bank.state(self.index).sending.set_idle(),
        }
    }
}

impl PendingRecv {
    fn new(
        context: &Arc<Context>,
        call: CallInfo,
        (bank, index): (Arc<SlotBank>, SlotIndex),
        kind: RecvKind,
        value_bytes: u64,
    ) -> PendingRecv {
        PendingRecv {
            context: context.clone(),
            call,
            bank,
            index,
            kind,
            watch: Mutex::default(),
            value_bytes,
            kept: OnceLock::new(),
            waited: false,
        }
    }

    /// Returns the source and the slot.
    pub fn on(&self) -> (Rank, u32) {
        (self.call.peer, self.call.slot)
    }

    /// Returns true if this thread's calls have a time limit.
    #[inline]
    pub fn has_limit(&self) -> bool {
        self.context.worker.has_limit()
    }

    /// Returns the context in which the receive was begun.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns true if the message arrives in the slot's line. [`PendingRecv::take`] needs the buffer then.
    pub fn is_short(&self) -> bool {
        matches!(self.kind, RecvKind::Short { .. })
    }

    /// Makes progress. Returns true if the message has arrived or can no longer arrive.
    pub fn test(&self) -> bool {
        match &self.kind {
            RecvKind::Short { number, room } => {
                self.context.worker.progress_briefly();
                self.is_decided(number, *room)
            }
            RecvKind::Long(operation) => self.context.test(operation),
        }
    }

    /// Returns true if [`PendingRecv::take`] would not wait: the message has arrived or can no longer arrive. Makes no
    /// progress.
    pub(crate) fn is_decided_now(&self) -> bool {
        match &self.kind {
            RecvKind::Short { number, room } => self.is_decided(number, *room),
            RecvKind::Long(operation) => self.context.ends_wait(operation),
        }
    }

    /// Returns the condition that the message has arrived, or that the receive must be looked at again.
    pub(crate) fn awaited(&self) -> Condition {
        match &self.kind {
            RecvKind::Short { number, .. } => Condition::Event(Arc::new(self.arrival(number.load(Relaxed)))),
            RecvKind::Long(operation) => Condition::Event(operation.clone()),
        }
    }

    /// Returns true if the message of a short receive has arrived or can no longer arrive. `take` reports errors.
    fn is_decided(&self, number: &AtomicU32, room: usize) -> bool {
        match self.repost_if_unfit(number, room) {
            Ok(true) => false,
            Err(_) => true,
            Ok(false) => {
                let number = number.load(Relaxed);
                self.bank.has_data(self.index, number)
                    || self.has_kept(room)
                    || self.context.worker.is_event_decided(&self.arrival(number))
            }
        }
    }

    fn arrival(&self, number: u32) -> ShortArrival {
        self.context.short_arrival(&self.bank, self.index, number)
    }

    /// Returns true if the receive has a kept message: one of its slot that met a dropped receive of any slot. Takes
    /// the message, so that no other receive gets it.
    fn has_kept(&self, room: usize) -> bool {
        if self.kept.get().is_some() || self.context.late_matches.kept.is_empty() {
            return self.kept.get().is_some();
        }
        let (kept, member, slot) =
            (&self.context.late_matches.kept, self.bank.member, self.bank.slot(self.index));
        match kept.take(member, Some(slot), (self.call.kind, room as u64)) {
            KeptSearch::Nothing => false,
            KeptSearch::Unfit(_) => true, // `take` returns the error
            KeptSearch::Found(message, done) => {
                if let Err((message, _)) = self.kept.set((message, done)) {
                    kept.put_back(member, slot, message); // another thread tests the same receive
                }
                true
            }
        }
    }

    /// Copies the kept message, and withdraws the receive that waits for one in the line.
    #[cold]
    fn take_kept(&self, (message, done): (KeptMessage, Done), into: &mut [u8]) -> Result<Received> {
        if let RecvKind::Short { number, .. } = &self.kind {
            self.context.withdraw_short(&self.bank, self.index, number.load(Relaxed));
        }
        let room = into.len() as u64;
        let (Ok(bytes), Some(into)) = (message.bytes.enter(), into.get_mut(..done.len as usize)) else {
            return Err(self.context.fault(Cause::Truncated { len: done.len, room }, self.call));
        };
        bytes.read(into).map_err(|cause| self.context.fault(cause, self.call))?;
        Ok(Received { slot: done.slot, source: self.bank.member, len: done.len })
    }

    /// Reposts a short receive if the message that arrived did not fit in an earlier, withdrawn receive. Returns true
    /// if it did.
    fn repost_if_unfit(&self, number: &AtomicU32, room: usize) -> Result<bool> {
        let kind = self.call.kind;
        let posted = PostedRecv::new(&self.bank, self.index, number.load(Relaxed), room, kind);
        let again = self.context.repost_if_unfit(&posted)?;
        again.iter().for_each(|again| number.store(again.number(), Relaxed));
        Ok(again.is_some())
    }

    /// Returns `Ready` if [`PendingRecv::take`] would not wait: the message has arrived, or can no longer arrive.
    /// Otherwise the task of `waker` is woken then. A thread that polls with its own waker looks for the message as
    /// long as a blocking call does, and then waits for it itself.
    pub fn poll(&self, waker: &Waker) -> Poll<()> {
        let worker = &self.context.worker;
        if let RecvKind::Short { number, room } = &self.kind
            && waits_in_call(waker, worker)
        {
            return self.poll_short_in_call(number, *room, waker);
        }
        if let RecvKind::Short { number, room } = &self.kind {
            let has_come = || self.bank.has_data(self.index, number.load(Relaxed));
            if self.context.progress.poll_spin.run(worker, has_come) && self.is_decided(number, *room) {
                return Poll::Ready(());
            }
        }
        match self.operation() {
            Ok(operation) if !self.context.poll(&operation, waker) => Poll::Pending,
            _ => Poll::Ready(()), // `take` reports an error
        }
    }

    fn poll_short_in_call(&self, number: &AtomicU32, room: usize, waker: &Waker) -> Poll<()> {
        let worker = &self.context.worker;
        let poll_spin = &self.context.progress.poll_spin;
        if may_spin(waker, worker) && poll_spin.is_likely() {
            let has_come = || self.bank.has_data(self.index, number.load(Relaxed));
            let found = (0..worker.spins(Some(self.bank.peer))).any(|_| has_come() || pause_in_spin());
            poll_spin.note(found);
            if found {
                return Poll::Ready(());
            }
            spun_in_vain(waker, worker);
        }
        worker.progress_briefly();
        if self.is_decided(number, room) {
            return Poll::Ready(());
        }
        let arrival = Condition::Event(Arc::new(self.arrival(number.load(Relaxed))));
        wait_in_call(waker, worker, Awaited::only(arrival));
        Poll::Pending
    }

    /// Returns `Ready` with the message, which is copied to `into` if the receive is short. Otherwise `waker` is woken
    /// when it has arrived, if the rank's waiting calls make progress. If pending, stores the operation in `awaited`.
    pub fn poll_in_wait(
        &mut self,
        into: &mut [u8],
        waker: &Waker,
        awaited: &mut Option<Arc<MessageOp>>,
    ) -> Poll<Result<Received>> {
        let operation = match self.operation() {
            Ok(operation) => operation,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if self.context.poll_in_wait(&operation, waker) {
            return Poll::Ready(self.take(into));
        }
        *awaited = Some(operation);
        Poll::Pending
    }

    /// Returns the operation that ends when the message has arrived.
    fn operation(&self) -> Result<Arc<MessageOp>> {
        let (number, room) = match &self.kind {
            RecvKind::Long(operation) => return Ok(operation.clone()),
            RecvKind::Short { number, room } => (number, *room),
        };
        if self.repost_if_unfit(number, room)? {
            self.forget_watch();
        }
        let number = number.load(Relaxed);
        let watch = self.watch(number);
        if !watch.is_over() || self.bank.has_data(self.index, number) || self.has_kept(room) {
            return Ok(watch);
        }
        self.forget_watch(); // it saw a kept message, which another receive has taken
        Ok(self.watch(number))
    }

    /// Returns the operation that watches for the short message of that number.
    fn watch(&self, number: u32) -> Arc<MessageOp> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            let (progress, bank) = (&self.context.progress, &self.bank);
            let watch = MessageOp::new(&progress.rings, bank, self.index, ProtocolState::watch(number), None);
            progress.add(&watch);
            self.context.look_for_kept(&watch);
            watch
        };
        watch.get_or_insert_with(begin).clone()
    }

    fn forget_watch(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            self.context.progress.remove(&self.context.worker, &watch);
        }
    }

    /// Withdraws the receive, unless a message has met it or it has failed. Returns true if it was withdrawn: nobody
    /// writes to its buffer any more, its slot is free, and the next receive gets its message. Otherwise the receive
    /// goes on.
    pub fn withdraw(&mut self) -> bool {
        if self.waited || self.context.worker.fork_guard().is_forked() {
            return false;
        }
        match &self.kind {
            RecvKind::Short { number, room } => {
                if self.is_decided(number, *room) {
                    return false;
                }
                self.forget_watch();
                self.context.withdraw_short(&self.bank, self.index, number.load(Relaxed));
            }
            RecvKind::Long(operation) if !self.context.withdraw_receive(operation) => return false,
            RecvKind::Long(_) => {}
        }
        self.waited = true;
        true
    }

    /// Waits for the message, which is copied to `into` if the receive is short.
    pub fn take(&mut self, into: &mut [u8]) -> Result<Received> {
        self.waited = true;
        if let Some(kept) = self.kept.take() {
            return self.take_kept(kept, into);
        }
        match &self.kind {
            RecvKind::Short { number, .. } => {
                let kind = self.call.kind;
                let posted = PostedRecv::new(&self.bank, self.index, number.load(Relaxed), into.len(), kind);
                self.context.take("irecv", posted, into)
            }
            RecvKind::Long(operation) => {
                let received = self.context.finish_receive(operation, self.call);
                if let Ok(got) = &received
                    && !got.len.is_multiple_of(self.value_bytes)
                {
                    self.context.abandon_receive(operation);
                    let (len, size) = (got.len, self.value_bytes);
                    let cause = Cause::PartialValue { len, size, is_kept: true };
                    return Err(self.context.fault(cause, self.call));
                }
                match &received {
                    Ok(_) if !operation.end().is_some_and(|end| is_of_kept(&end)) => operation.free_slot(),
                    _ => self.context.suspect(&self.bank, self.index),
                }
                received
            }
        }
    }
}

impl Drop for PendingRecv {
    /// Does nothing in a forked child: the receive belongs to the rank, which still uses it.
    fn drop(&mut self) {
        if self.context.worker.fork_guard().is_forked() {
            return;
        }
        if self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.forget_watch();
        }
        if self.waited {
            return;
        }
        if let Some((message, done)) = self.kept.take() {
            self.context.late_matches.kept.put_back(self.bank.member, done.slot, message);
        }
        match &self.kind {
            RecvKind::Short { number, .. } => {
                self.context.withdraw_short(&self.bank, self.index, number.load(Relaxed));
            }
            RecvKind::Long(operation) => self.context.abandon_receive(operation),
        }
    }
}
