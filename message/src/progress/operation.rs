//! A message that did not end at once: what a waiting call moves on.

use crate::buffer::MessageBuffer;
use crate::call_info::CallInfo;
use crate::protocol::ring::Rings;
use crate::protocol::sender::SendProtocol;
use crate::protocol::state_machine::{Outcome, OutcomeCell, ProtocolState};
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{RevocableBuffer, WaitEvent, Worker};

/// Which direction a message has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpKind {
    Send,
    Receive,
    Watch,
}

/// A message under way. A step may make calls of the fabric, which on some hosts let other threads of the rank run
/// before they return: so nobody waits for the lock of `way`, and what others must know stands beside it.
#[derive(Debug)]
pub struct MessageOp {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) block: SlotIndex,
    rings: Arc<Rings>,
    kind: OpKind,
    way: Mutex<ProtocolState>,
    /// The message that a receive is for.
    number: AtomicU32,
    /// An earlier message on the slot that has to go first.
    behind: Mutex<Option<Arc<MessageOp>>>,
    /// Whether there ever was one.
    was_behind: bool,
    /// Bytes of the spool that it takes, if it lies there.
    buffered: Option<u64>,
    ending: OutcomeCell,
    /// Where it stands in the progress's queue, 0 if it does not; changed under the lock of that.
    pub(crate) ticket: AtomicU64,
    waker: Mutex<Option<Waker>>,
    /// When its waker is to be woken though it has not ended: it can go into the spool then.
    buffer_at_ns: AtomicU64,
    /// A receive is to be taken back.
    unwanted: AtomicBool,
    /// Nobody will ask how it ended.
    detached: AtomicBool,
    /// Its slot can be used again, and may be in use, or closed: no business of this message any more.
    freed: AtomicBool,
}

impl MessageOp {
    pub(crate) fn new(
        rings: &Arc<Rings>,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        way: ProtocolState,
        behind: Option<Arc<MessageOp>>,
    ) -> Arc<MessageOp> {
        Arc::new(MessageOp::make(rings, (bank, block), way, behind))
    }

    /// A message that has ended already.
    pub(crate) fn ended(
        rings: &Arc<Rings>,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        way: ProtocolState,
    ) -> Arc<MessageOp> {
        let ending = OutcomeCell::default();
        way.end().into_iter().for_each(|end| ending.set(end));
        let mut operation = MessageOp::make(rings, (bank, block), way, None);
        operation.ending = ending;
        Arc::new(operation)
    }

    fn make(
        rings: &Arc<Rings>,
        (bank, block): (&Arc<SlotBank>, SlotIndex),
        way: ProtocolState,
        behind: Option<Arc<MessageOp>>,
    ) -> MessageOp {
        let was_behind = behind.is_some();
        let (kind, number) = match &way {
            ProtocolState::Send(_) => (OpKind::Send, 0),
            ProtocolState::Receive(receiving) => (OpKind::Receive, receiving.number()),
            ProtocolState::Watch { number, .. } => (OpKind::Watch, *number),
        };
        MessageOp {
            bank: bank.clone(),
            block,
            rings: rings.clone(),
            kind,
            way: Mutex::new(way),
            number: AtomicU32::new(number),
            behind: Mutex::new(behind),
            was_behind,
            buffered: None,
            ending: OutcomeCell::default(),
            ticket: AtomicU64::new(0),
            waker: Mutex::default(),
            buffer_at_ns: AtomicU64::new(u64::MAX),
            unwanted: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        }
    }

    /// A message that lies in the spool, for which nobody waits.
    pub(crate) fn buffered(
        rings: &Arc<Rings>,
        bank: &Arc<SlotBank>,
        block: SlotIndex,
        bytes: Vec<u8>,
        behind: Option<Arc<MessageOp>>,
    ) -> Arc<MessageOp> {
        let len = bytes.len() as u64;
        let way = ProtocolState::Send(SendProtocol::new(MessageBuffer::Own(RevocableBuffer::of(bytes))));
        let mut operation = MessageOp::make(rings, (bank, block), way, behind);
        operation.buffered = Some(len);
        Arc::new(operation)
    }

    /// What it is called where a task awaits it.
    pub(crate) fn call(&self) -> String {
        let (bank, slot) = (&self.bank, self.bank.slot(self.block));
        let rank = (bank.peer != bank.member).then_some(bank.peer);
        let own = || match self.kind {
            OpKind::Send => CallInfo::to("isend", bank.member, slot),
            OpKind::Receive | OpKind::Watch => CallInfo::from("irecv", bank.member, slot),
        };
        bank.larger_call(slot).unwrap_or_else(|| own().of_member(rank).to_string())
    }

    /// Whether it is a send that has not ended.
    pub(crate) fn is_sending(&self) -> bool {
        self.kind == OpKind::Send && !self.is_over()
    }

    /// Bytes of the spool that it takes, if it lies there.
    pub(crate) fn buffered_bytes(&self) -> Option<u64> {
        self.buffered
    }

    /// Whether it lies in the spool.
    pub(crate) fn is_buffered(&self) -> bool {
        self.buffered.is_some()
    }

    /// Whether it is a send of which nobody waits for the end.
    pub(crate) fn is_detached(&self) -> bool {
        self.buffered.is_some() || self.detached.load(Ordering::SeqCst) && self.kind == OpKind::Send
    }

    /// Moves it on as [`ProtocolState::run`] does. True if it has ended now: then whoever called this wakes who waits for it.
    /// Nothing if another thread is at it.
    pub(crate) fn run(&self, worker: &Worker, looks: u32) -> bool {
        self.run_if(worker, looks, || true)
    }

    /// The same by one step, for the progress, which may have lost it since it was looked up.
    pub(crate) fn advance(&self, worker: &Worker) -> bool {
        self.run_if(worker, 0, || self.ticket.load(Ordering::Relaxed) != 0)
    }

    /// `is_ours` is asked under the lock of the way: what is no longer queued, and settled, is touched by nobody.
    fn run_if(&self, worker: &Worker, looks: u32, is_ours: impl FnOnce() -> bool) -> bool {
        if self.is_over() || self.is_behind() {
            return false;
        }
        let Some(mut way) = try_lock(&self.way) else { return false };
        if self.is_over() || !is_ours() {
            return false;
        }
        if self.unwanted.load(Ordering::SeqCst) && self.unwanted.swap(false, Ordering::SeqCst) {
            way.withdraw();
        }
        let ended = way.run(worker, (&self.bank, self.block), &self.rings, looks).is_some();
        if let ProtocolState::Receive(receiving) = &*way {
            self.number.store(receiving.number(), Ordering::Relaxed);
        }
        if !ended {
            return false;
        }
        way.end().into_iter().for_each(|end| self.ending.set(end));
        drop(way);
        if self.detached.load(Ordering::SeqCst) {
            self.free_slot();
        }
        true
    }

    /// Whether an earlier message is not over. One that is over is forgotten.
    pub(crate) fn is_behind(&self) -> bool {
        if !self.was_behind {
            return false;
        }
        let mut behind = lock(&self.behind);
        if behind.as_ref().is_some_and(|earlier| earlier.is_over()) {
            *behind = None;
        }
        behind.is_some()
    }

    /// The earlier message that goes first.
    pub(crate) fn behind(&self) -> Option<Arc<MessageOp>> {
        lock(&self.behind).clone()
    }

    /// How it ended, if it has.
    #[inline]
    pub(crate) fn end(&self) -> Option<Outcome> {
        self.ending.get()
    }

    /// Whether it has ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_set()
    }

    /// Nobody will ask for a send again: its slot is free when it has ended.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::SeqCst);
        if self.is_over() {
            self.free_slot();
        }
    }

    /// The slot's direction can be used again. Only once, by whoever comes first.
    pub(crate) fn free_slot(&self) {
        if self.freed.swap(true, Ordering::SeqCst) {
            return;
        }
        let state = self.bank.state(self.block);
        match self.kind {
            OpKind::Send => state.sending.set_idle(),
            OpKind::Receive => state.receiving.set_idle(),
            OpKind::Watch => {}
        }
    }

    /// A receive is to be taken back, if its message is not on its way already.
    pub(crate) fn withdraw(&self) {
        self.unwanted.store(true, Ordering::SeqCst);
    }

    /// Returns when no thread is taking a step of it. For one that nobody will begin to step.
    pub(crate) fn settle(&self, worker: &Worker) {
        drop(self.way(worker));
    }

    /// Its way, when no other thread is at it. Where nobody may step it, some may still look at it.
    fn way(&self, worker: &Worker) -> MutexGuard<'_, ProtocolState> {
        loop {
            if let Some(way) = try_lock(&self.way) {
                return way;
            }
            worker.pause();
        }
    }

    /// Whether it is a send of which nobody knows yet. For one that nobody steps.
    pub(crate) fn is_unmatched_send(&self, worker: &Worker) -> bool {
        matches!(&*self.way(worker), ProtocolState::Send(sending) if sending.is_looking())
    }

    /// Whether it is a send that its peer, as far as that has come, will not bring to its end.
    pub(crate) fn cannot_complete(&self, worker: &Worker) -> bool {
        let stage = worker.node_state().rank_state(self.bank.peer).stage();
        if stage < Stage::Leaving || self.is_over() {
            return false;
        }
        let Some(way) = try_lock(&self.way) else { return false };
        let ProtocolState::Send(sending) = &*way else { return false };
        let is_stuck = || self.is_behind() || sending.is_stuck(&self.bank, self.block, &self.rings);
        (stage >= Stage::Left || sending.is_looking()) && is_stuck()
    }

    /// The stage of its peer from which on it may be in vain.
    pub(crate) fn fails_from(&self) -> Stage {
        let way = try_lock(&self.way);
        let is_looking =
            way.is_none_or(|way| matches!(&*way, ProtocolState::Send(sending) if sending.is_looking()));
        if is_looking { Stage::Leaving } else { Stage::Left }
    }

    /// A copy of a message of which nobody knows yet. For one that nobody steps.
    pub(crate) fn copied(&self, worker: &Worker) -> Result<Vec<u8>, Cause> {
        let bug = || Cause::Bug("only a send that waits goes into the spool".into());
        let way = self.way(worker);
        let ProtocolState::Send(sending) = &*way else { return Err(bug()) };
        let from = sending.from();
        let mut bytes = vec![0; from.len() as usize];
        match from {
            MessageBuffer::Own(_) => from.enter()?.read(&mut bytes)?,
            MessageBuffer::Job(at, _) => {
                worker.get(*at, &mut bytes).map_err(|error| error.cause().clone())?
            }
        }
        Ok(bytes)
    }

    /// Whom to wake when it has ended, or cannot any more.
    pub(crate) fn set_waker(&self, waker: Option<&Waker>) {
        let before = std::mem::replace(&mut *lock(&self.waker), waker.cloned());
        drop(before); // not under the lock: it is the program's code
    }

    /// When whoever is to be woken can have it go into the spool; `u64::MAX`: never.
    pub(crate) fn buffer_at_ns(&self) -> &AtomicU64 {
        &self.buffer_at_ns
    }

    /// Takes whom to wake.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    /// Whether somebody is to be woken.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.waker).is_some()
    }

    /// Wakes whoever asked for it.
    pub(crate) fn wake(&self) {
        self.take_waker().into_iter().for_each(Waker::wake);
    }

    /// Whether the peer has gone and will not bring it on.
    pub fn is_hopeless(&self, worker: &Worker) -> bool {
        let gone = |(peer, stage): (Rank, Stage)| worker.node_state().rank_state(peer).stage() >= stage;
        self.impossible_after().is_some_and(|from| from.0 != worker.rank() && gone(from)) && !self.happened()
    }

    /// Whether the message of a receive comes even if its sender is leaving.
    fn will_come(&self) -> bool {
        let (number, promise) = (self.number.load(Ordering::Relaxed), self.bank.promised(self.block));
        let is_promised = match self.block {
            ANY => encoding::is_any_promised(promise),
            _ => encoding::is_promised(promise, number),
        };
        // A sender that leaves waits until what it has begun was taken out of its ring.
        is_promised || self.bank.is_about(self.block, number)
    }

    /// Whether a step would bring it on. False while another thread is at it.
    pub(crate) fn can_step(&self) -> bool {
        self.looks_like_work(false)
    }

    /// The same before the rank sleeps: another thread that is at it may have looked too early, and sleeps, too.
    pub(crate) fn may_step(&self) -> bool {
        self.looks_like_work(true)
    }

    fn looks_like_work(&self, is_busy: bool) -> bool {
        if self.is_over() || self.is_behind() {
            return false;
        }
        let Some(way) = try_lock(&self.way) else { return is_busy };
        match &*way {
            ProtocolState::Send(sending) => sending.can_step(&self.bank, self.block, &self.rings),
            ProtocolState::Receive(receiving) => {
                let unwanted = self.unwanted.load(Ordering::SeqCst);
                receiving.can_step(&self.bank, self.block, unwanted)
            }
            ProtocolState::Watch { number, .. } => self.bank.is_about(self.block, *number),
        }
    }
}

impl Drop for MessageOp {
    /// One behind the other there may be as many as the spool holds: not one call within the other.
    fn drop(&mut self) {
        let mut next = self.behind.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        while let Some(mut earlier) = next.and_then(Arc::into_inner) {
            next = earlier.behind.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

impl WaitEvent for MessageOp {
    fn happened(&self) -> bool {
        self.can_step() || self.is_over()
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        // What comes next is the fabric's to tell; or another thread is just finding out.
        if self.kind == OpKind::Receive && try_lock(&self.way).is_none_or(|way| way.is_under_way()) {
            return None;
        }
        let stage = if self.kind != OpKind::Send && self.will_come() { Stage::Left } else { Stage::Leaving };
        Some((self.bank.peer, stage))
    }

    fn needs_message_of(&self) -> Option<Rank> {
        self.impossible_after().map(|(peer, _)| peer)
    }
}

/// For locks that are held a moment, and never during a call of the fabric.
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
