//! A message that did not complete at once, as the progress engine keeps it.

use crate::buffer::MessageBuffer;
use crate::buffered::budget::BufferRoom;
use crate::call_info::CallInfo;
use crate::protocol::kept::Transfer;
use crate::protocol::late_match::LateMatches;
use crate::protocol::outcome::{Outcome, OutcomeCell};
use crate::protocol::ring::Rings;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::{Awaits, AwaitsCell, ProtocolState};
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::task::Waker;
use tasuki_core::base::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use tasuki_core::base::{Cause, Rank, ValueKind};
use tasuki_core::engine::{RevocableBuffer, WaitEvent, Worker};
use tasuki_core::node::node_state::RankStage;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpKind {
    Send,
    Receive,
    Watch,
}

/// A message in the send buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedMessage {
    /// What it occupies.
    pub(crate) room: BufferRoom,
    /// Its number in the order of its pair.
    pub(crate) number: u64,
}

/// The receive is to be withdrawn.
const WITHDRAW: u8 = 1;
/// The receive is to look for a kept message.
const LOOK: u8 = 2;

/// An unfinished message. A step may call the fabric, which on some platforms lets other threads of the rank run
/// before it returns. So no thread waits for the lock of `protocol` inside a step, and what other threads need is
/// stored beside it.
#[derive(Debug)]
pub struct MessageOp {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    rings: Arc<Rings>,
    kind: OpKind,
    protocol: Mutex<ProtocolState>,
    /// The number of the message that a receive is for.
    number: AtomicU32,
    /// An earlier message on the slot that must go first.
    predecessor: Mutex<Option<Arc<MessageOp>>>,
    /// True if there ever was one.
    had_predecessor: bool,
    /// Set if it is buffered.
    buffered: Option<BufferedMessage>,
    outcome: OutcomeCell,
    /// Its number in the progress engine's queue; 0: not queued. Changed under the queue's lock.
    pub(crate) ticket: AtomicU64,
    /// Its index among the queued messages that can step. Used under the queue's lock.
    pub(crate) place: AtomicUsize,
    /// What it waits for. While a thread steps it: anything.
    awaits: AwaitsCell,
    waker: Mutex<Option<Waker>>,
    /// When to wake the waker although the message has not ended, so that the task can buffer it.
    buffer_at_ns: AtomicU64,
    /// What the next step of a receive does first.
    requests: AtomicU8,
    /// The late matches of the context, for a receive that was dropped or that looks for a kept message.
    late_matches: OnceLock<Weak<LateMatches>>,
    /// The receive was dropped, and its message is kept.
    kept: AtomicBool,
    /// Nobody will ask for the outcome.
    detached: AtomicBool,
    /// Its slot was freed and may be in use or closed: this message must not touch it any more.
    freed: AtomicBool,
}

impl MessageOp {
    pub(crate) fn new(
        rings: &Arc<Rings>,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        protocol: ProtocolState,
        predecessor: Option<Arc<MessageOp>>,
    ) -> Arc<MessageOp> {
        Arc::new(MessageOp::make(rings, (bank, index), protocol, predecessor))
    }

    /// Makes an operation that has already ended.
    pub(crate) fn ended(
        rings: &Arc<Rings>,
        bank: &Arc<SlotBank>,
        index: SlotIndex,
        protocol: ProtocolState,
    ) -> Arc<MessageOp> {
        let outcome = OutcomeCell::default();
        protocol.end().into_iter().for_each(|end| outcome.set(end));
        let mut operation = MessageOp::make(rings, (bank, index), protocol, None);
        operation.outcome = outcome;
        Arc::new(operation)
    }

    fn make(
        rings: &Arc<Rings>,
        (bank, index): (&Arc<SlotBank>, SlotIndex),
        protocol: ProtocolState,
        predecessor: Option<Arc<MessageOp>>,
    ) -> MessageOp {
        let had_predecessor = predecessor.is_some();
        let awaits = AwaitsCell::new(protocol.awaits());
        let (kind, number) = match &protocol {
            ProtocolState::Send(_) => (OpKind::Send, 0),
            ProtocolState::Receive(receiving) => (OpKind::Receive, receiving.number()),
            ProtocolState::Watch { number, .. } => (OpKind::Watch, *number),
        };
        MessageOp {
            bank: bank.clone(),
            index,
            rings: rings.clone(),
            kind,
            protocol: Mutex::new(protocol),
            number: AtomicU32::new(number),
            predecessor: Mutex::new(predecessor),
            had_predecessor,
            buffered: None,
            outcome: OutcomeCell::default(),
            ticket: AtomicU64::new(0),
            place: AtomicUsize::new(0),
            awaits,
            waker: Mutex::default(),
            buffer_at_ns: AtomicU64::new(u64::MAX),
            requests: AtomicU8::new(0),
            late_matches: OnceLock::new(),
            kept: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        }
    }

    /// Makes an operation for a buffered message, which nobody waits for. `room`: what it occupies in the send buffer.
    pub(crate) fn buffered(
        (rings, bank, index): (&Arc<Rings>, &Arc<SlotBank>, SlotIndex),
        (bytes, kind): (Vec<u8>, ValueKind),
        room: BufferRoom,
        predecessor: Option<Arc<MessageOp>>,
    ) -> Arc<MessageOp> {
        let from = MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes));
        let (order, pair) = bank.buffered_order();
        let number = order.enter(pair);
        let protocol = ProtocolState::Send(SendProtocol::new(from, kind).buffered(number));
        let mut operation = MessageOp::make(rings, (bank, index), protocol, predecessor);
        operation.buffered = Some(BufferedMessage { room, number });
        Arc::new(operation)
    }

    /// Describes the call, for a task that awaits it.
    pub(crate) fn call(&self) -> String {
        let (bank, slot) = (&self.bank, self.bank.slot(self.index));
        let rank = (bank.peer != bank.member).then_some(bank.peer);
        let own = || match self.kind {
            OpKind::Send => CallInfo::to("isend", bank.member, slot),
            OpKind::Receive | OpKind::Watch => CallInfo::from("irecv", bank.member, slot),
        };
        bank.program_call(slot).unwrap_or_else(|| own().of_member(rank).to_string())
    }

    /// Returns true if it is a send.
    pub(crate) fn is_send(&self) -> bool {
        self.kind == OpKind::Send
    }

    /// Returns true if it is a receive that is not short.
    pub(crate) fn is_receive(&self) -> bool {
        self.kind == OpKind::Receive
    }

    /// Returns true if it is a send that has not ended.
    pub(crate) fn is_sending(&self) -> bool {
        self.kind == OpKind::Send && !self.is_over()
    }

    /// What the send buffer knows of it, if it is buffered.
    pub(crate) fn buffered_message(&self) -> Option<BufferedMessage> {
        self.buffered
    }

    /// Returns true if it is buffered.
    pub(crate) fn is_buffered(&self) -> bool {
        self.buffered.is_some()
    }

    /// Returns true if it is a send that nobody waits for.
    pub(crate) fn is_detached(&self) -> bool {
        self.buffered.is_some() || self.detached.load(Ordering::SeqCst) && self.kind == OpKind::Send
    }

    /// Steps it like [`ProtocolState::run`]. Returns true if this call ended it; then the caller wakes the task that
    /// waits for it. Does nothing if another thread steps it.
    pub(crate) fn run(&self, worker: &Worker, attempts: u32) -> bool {
        self.run_if(worker, attempts, || true)
    }

    /// Steps it once for the progress engine, unless it was removed from the queue meanwhile.
    pub(crate) fn advance(&self, worker: &Worker) -> bool {
        self.run_if(worker, 0, || self.ticket.load(Ordering::Relaxed) != 0)
    }

    /// Evaluates `is_ours` under the lock of `protocol`: no thread touches an operation that was removed from the
    /// queue and settled.
    fn run_if(&self, worker: &Worker, attempts: u32, is_ours: impl FnOnce() -> bool) -> bool {
        if self.is_over() || self.has_predecessor() {
            return false;
        }
        let Some(mut protocol) = try_lock(&self.protocol) else { return false };
        if self.is_over() || !is_ours() {
            return false;
        }
        if self.requests.load(Ordering::SeqCst) != 0 {
            self.begin_requested(&mut protocol);
        }
        self.awaits.set(Awaits::Anything);
        let ended = protocol.run(worker, (&self.bank, self.index), &self.rings, attempts).is_some();
        if let ProtocolState::Receive(receiving) = &*protocol {
            self.number.store(receiving.number(), Ordering::Relaxed);
        }
        if !ended && self.is_lost(&protocol) {
            self.outcome.set(&Outcome::Withdrawn);
        } else if !ended {
            self.awaits.set(protocol.awaits());
            return false;
        }
        protocol.end().into_iter().for_each(|end| self.outcome.set(end));
        drop(protocol);
        if self.detached.load(Ordering::SeqCst) {
            self.free_slot();
        }
        true
    }

    /// Returns true if it is a step of a call that was given up, and has met a receive that was withdrawn since. No
    /// other receive takes it.
    fn is_lost(&self, protocol: &ProtocolState) -> bool {
        let (bank, index) = (&self.bank, self.index);
        self.detached.load(Ordering::SeqCst)
            && bank.is_of_calls()
            && bank.is_withdrawn(index, bank.next_number(index))
            && matches!(protocol, ProtocolState::Send(sending) if sending.is_stuck(bank, index, &self.rings))
    }

    /// Does what was requested of a receive.
    #[cold]
    fn begin_requested(&self, protocol: &mut ProtocolState) {
        let requests = self.requests.swap(0, Ordering::SeqCst);
        if requests & WITHDRAW != 0 {
            protocol.withdraw();
        }
        if requests & LOOK != 0
            && let Some(late_matches) = self.late_matches()
        {
            protocol.look_for_kept(&self.bank, self.index, &late_matches);
        }
    }

    /// Returns true if a look at its slot shows that a step would achieve nothing. Makes no call of the fabric and
    /// takes no lock. `is_ring_free`: a ring may be available.
    #[inline]
    pub(crate) fn is_quiet(&self, is_ring_free: bool) -> bool {
        let bank = &self.bank;
        bank.is_directly_readable()
            && match self.awaits.get() {
                Awaits::Anything => false,
                Awaits::Data => {
                    // SYNC message-awaits: `number` is the one for which it waits.
                    !bank.has_data(self.index, self.number.load(Ordering::Relaxed))
                        && self.requests.load(Ordering::SeqCst) == 0
                }
                Awaits::Posting => !bank.is_recv_posted(self.index) && !bank.first_bank().is_recv_posted(ANY),
                Awaits::Ring => !is_ring_free,
            }
    }

    /// Returns true if it waits for a ring.
    pub(crate) fn awaits_ring(&self) -> bool {
        self.awaits.get() == Awaits::Ring
    }

    /// Returns true if an earlier message on the slot has not ended. Drops the reference to one that has.
    pub(crate) fn has_predecessor(&self) -> bool {
        if !self.had_predecessor {
            return false;
        }
        let mut predecessor = lock(&self.predecessor);
        if predecessor.as_ref().is_some_and(|earlier| earlier.is_over()) {
            *predecessor = None;
        }
        predecessor.is_some()
    }

    /// Returns the earlier message that must go first.
    pub(crate) fn predecessor(&self) -> Option<Arc<MessageOp>> {
        lock(&self.predecessor).clone()
    }

    /// Returns the outcome, if it has ended.
    #[inline]
    pub(crate) fn end(&self) -> Option<Outcome> {
        self.outcome.get()
    }

    /// Returns true if it has ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.outcome.is_set()
    }

    /// Detaches a send: nobody will wait for it, and its slot is freed when it ends.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::SeqCst);
        if self.is_over() {
            self.free_slot();
        }
    }

    /// Frees the slot's direction. Only the first call has an effect.
    pub(crate) fn free_slot(&self) {
        if self.freed.swap(true, Ordering::SeqCst) {
            return;
        }
        let state = self.bank.state(self.index);
        match self.kind {
            OpKind::Send => state.sending.set_idle(),
            OpKind::Receive => state.receiving.set_idle(),
            OpKind::Watch => {}
        }
    }

    /// Requests to withdraw a receive. Has no effect if its message is already being transferred.
    pub(crate) fn withdraw(&self) {
        self.requests.fetch_or(WITHDRAW, Ordering::SeqCst);
    }

    /// Lets a receive that names its slot look for a kept message when it is stepped next.
    pub(crate) fn look_for_kept(&self, late_matches: &Arc<LateMatches>) {
        self.late_matches.get_or_init(|| Arc::downgrade(late_matches));
        self.requests.fetch_or(LOOK, Ordering::SeqCst);
    }

    /// Records that the receive was dropped and its message is kept.
    pub(crate) fn set_kept(&self, late_matches: &Arc<LateMatches>) {
        self.late_matches.get_or_init(|| Arc::downgrade(late_matches));
        self.kept.store(true, Ordering::SeqCst);
    }

    /// Returns true if the receive was dropped and its message is kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::SeqCst)
    }

    /// Returns the late matches of the context, if the receive was dropped or was told to look for a kept message.
    pub(crate) fn late_matches(&self) -> Option<Arc<LateMatches>> {
        self.late_matches.get()?.upgrade()
    }

    /// Returns true if it is a receive that would take a message of that slot from the peer of `other`.
    pub(crate) fn may_take(&self, other: &MessageOp, slot: u32) -> bool {
        let is_same_pair = || Arc::ptr_eq(self.bank.first_bank(), other.bank.first_bank());
        self.kind != OpKind::Send
            && self.index != ANY
            && self.bank.slot(self.index) == slot
            && is_same_pair()
            && !self.is_kept()
    }

    /// Returns the slot of the message that a receive gets; `None` if that is not known.
    pub(crate) fn sent_on(&self, worker: &Worker) -> Option<u32> {
        match &*self.lock_protocol(worker) {
            ProtocolState::Receive(receiving) => receiving.sent_on(&self.bank, self.index),
            _ => None,
        }
    }

    /// Moves a receive to memory that it owns, and returns that memory. `None`: a peer may write to the memory it has.
    pub(crate) fn own_buffer(&self, worker: &Worker) -> Option<MessageBuffer> {
        match &mut *self.lock_protocol(worker) {
            ProtocolState::Receive(receiving) => receiving.own_buffer(&self.bank, self.index),
            _ => None,
        }
    }

    /// Copies the message of a receive that is over.
    pub(crate) fn received_copy(&self, worker: &Worker, len: u64) -> Result<MessageBuffer, Cause> {
        let into = match &*self.lock_protocol(worker) {
            ProtocolState::Receive(receiving) => receiving.into().clone(),
            _ => return Err(Cause::Bug("only a receive has received a message".into())),
        };
        let bytes = into.copied(worker, len)?;
        Ok(MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes)))
    }

    /// Returns when no thread is in a step. The caller makes sure that no thread begins one.
    pub(crate) fn settle(&self, worker: &Worker) {
        drop(self.lock_protocol(worker));
    }

    /// Locks the protocol state once no other thread uses it. Even where no thread may step it, one may inspect it.
    fn lock_protocol(&self, worker: &Worker) -> MutexGuard<'_, ProtocolState> {
        loop {
            if let Some(protocol) = try_lock(&self.protocol) {
                return protocol;
            }
            worker.pause();
        }
    }

    /// Returns true if it is a send that has not met its receive. The caller makes sure that no thread steps it.
    pub(crate) fn is_unmatched_send(&self, worker: &Worker) -> bool {
        matches!(&*self.lock_protocol(worker), ProtocolState::Send(sending) if sending.is_unmatched())
    }

    /// Returns true if it is a send that is claiming a receive. The caller makes sure that no other thread steps it.
    pub(crate) fn is_claiming_send(&self, worker: &Worker) -> bool {
        matches!(&*self.lock_protocol(worker), ProtocolState::Send(sending) if sending.is_claiming())
    }

    /// Returns true if a message has met the receive, which was to be withdrawn and now goes on. Returns false if that
    /// is not known yet.
    pub(crate) fn goes_on_with_message(&self, worker: &Worker) -> bool {
        let mut protocol = self.lock_protocol(worker);
        match &mut *protocol {
            _ if self.requests.load(Ordering::SeqCst) & WITHDRAW != 0 => false, // no step has seen the request
            ProtocolState::Receive(receiving) => receiving.goes_on_with_message(&self.bank, self.index),
            _ => true,
        }
    }

    /// Returns true if it is a send that cannot complete at the stage its peer has reached.
    pub(crate) fn cannot_complete(&self, worker: &Worker) -> bool {
        let stage = worker.node_state().rank_state(self.bank.peer).stage();
        if stage < RankStage::Leaving || self.is_over() {
            return false;
        }
        let Some(protocol) = try_lock(&self.protocol) else { return false };
        let ProtocolState::Send(sending) = &*protocol else { return false };
        let is_stuck = || self.has_predecessor() || sending.is_stuck(&self.bank, self.index, &self.rings);
        (stage >= RankStage::Left || sending.is_unmatched()) && is_stuck()
    }

    /// Returns the stage of the peer from which on the send may be unable to complete.
    pub(crate) fn impossible_from(&self) -> RankStage {
        let protocol = try_lock(&self.protocol);
        let is_unmatched = protocol.is_none_or(
            |protocol| matches!(&*protocol, ProtocolState::Send(sending) if sending.is_unmatched()),
        );
        if is_unmatched { RankStage::Leaving } else { RankStage::Left }
    }

    /// Returns the length of a send.
    pub(crate) fn send_len(&self, worker: &Worker) -> u64 {
        match &*self.lock_protocol(worker) {
            ProtocolState::Send(sending) => sending.from().len(),
            _ => 0,
        }
    }

    /// Copies an unmatched message. The caller makes sure that no thread steps it.
    pub(crate) fn copied(&self, worker: &Worker) -> Result<Vec<u8>, Cause> {
        let bug = || Cause::Bug("only a waiting send can be buffered".into());
        let protocol = self.lock_protocol(worker);
        let ProtocolState::Send(sending) = &*protocol else { return Err(bug()) };
        let from = sending.from();
        from.copied(worker, from.len())
    }

    /// Sets the waker to wake when it has ended or can no longer end.
    pub(crate) fn set_waker(&self, waker: Option<&Waker>) {
        let before = std::mem::replace(&mut *lock(&self.waker), waker.cloned());
        drop(before); // not under the lock: dropping runs code of the program
    }

    /// When the waker is to be woken to buffer the message, in ns; `u64::MAX`: never.
    pub(crate) fn buffer_at_ns(&self) -> &AtomicU64 {
        &self.buffer_at_ns
    }

    /// Takes the waker.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    /// Returns true if it has a waker.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.waker).is_some()
    }

    /// Wakes the waker, if there is one.
    pub(crate) fn wake(&self) {
        self.take_waker().into_iter().for_each(Waker::wake);
    }

    /// Returns true if the peer has gone and the operation will not end by itself.
    pub fn cannot_finish(&self, worker: &Worker) -> bool {
        let gone = |(peer, stage): (Rank, RankStage)| worker.node_state().rank_state(peer).stage() >= stage;
        self.impossible_after().is_some_and(|from| from.0 != worker.rank() && gone(from)) && !self.happened()
    }

    /// Returns true if the message of a receive arrives even though its sender is leaving.
    fn will_come(&self) -> bool {
        let (number, promise) = (self.number.load(Ordering::Relaxed), self.bank.promised(self.index));
        let is_promised = match self.index {
            ANY => encoding::is_any_promised(promise),
            _ => encoding::is_promised(promise, number),
        };
        // A leaving sender waits until messages it has begun were taken out of its ring.
        is_promised || self.bank.has_data(self.index, number)
    }

    /// Returns true if a step would make progress. False while another thread steps it.
    pub(crate) fn can_step(&self) -> bool {
        self.looks_like_work(false)
    }

    /// Like [`MessageOp::can_step`], for the check before the rank sleeps. True while another thread steps it: that
    /// thread may have looked too early, and may sleep, too.
    pub(crate) fn may_step(&self) -> bool {
        self.looks_like_work(true)
    }

    fn looks_like_work(&self, is_busy: bool) -> bool {
        if self.is_over() || self.has_predecessor() {
            return false;
        }
        let Some(protocol) = try_lock(&self.protocol) else { return is_busy };
        match &*protocol {
            ProtocolState::Send(sending) => {
                sending.can_step(&self.bank, self.index, &self.rings) || self.is_lost(&protocol)
            }
            ProtocolState::Receive(receiving) => {
                let requests = self.requests.load(Ordering::SeqCst);
                requests & LOOK != 0 || receiving.can_step(&self.bank, self.index, requests & WITHDRAW != 0)
            }
            ProtocolState::Watch { number, .. } => {
                self.requests.load(Ordering::SeqCst) != 0 || self.bank.has_data(self.index, *number)
            }
        }
    }
}

impl Drop for MessageOp {
    /// A chain of predecessors can be as long as the send buffer allows, so drop it in a loop instead of recursively.
    fn drop(&mut self) {
        let mut next = self.predecessor.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        while let Some(mut earlier) = next.and_then(Arc::into_inner) {
            next = earlier.predecessor.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

impl Transfer for MessageOp {
    fn outcome(&self) -> Option<Outcome> {
        self.end()
    }
}

impl WaitEvent for MessageOp {
    fn happened(&self) -> bool {
        self.can_step() || self.is_over()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        // The fabric reports the next event; or another thread is just finding out.
        if self.kind == OpKind::Receive
            && try_lock(&self.protocol).is_none_or(|protocol| protocol.is_under_way())
        {
            return None;
        }
        let stage =
            if self.kind != OpKind::Send && self.will_come() { RankStage::Left } else { RankStage::Leaving };
        Some((self.bank.peer, stage))
    }

    fn call(&self) -> String {
        MessageOp::call(self)
    }

    fn needs_message_of(&self) -> Option<Rank> {
        self.impossible_after().map(|(peer, _)| peer)
    }
}

/// For locks that are held briefly, and never during a call of the fabric.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
