//! Messages whose tickets were drawn, and for whose buffers no call waits: those of requests, and the tickets of calls and
//! requests that have given up, which are written as void.
//!
//! The messages of a rank to one queue wait in the order of their tickets, so only the first must be looked at. Any
//! waiting call of the rank writes it when its buffer is free, and a call that sends to the same queue, before its own
//! message; a leaving rank writes all. A message that stays at its sender is kept until the receiver has fetched it.

use crate::progress::engine::ProgressEngine;
use crate::progress::{Continuation, FinalizeHook};
use crate::receive_queue::drawn_message::{Content, DrawnMessage, PAUSE_NS, RoomPause};
use crate::receive_queue::offer::OfferedMessage;
use crate::receive_queue::sender::QueueAccess;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use tasuki_core::base::error_hint::BEGUN_TO_ANY_SOURCE;
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Condition, Deadline, TryLock, WaitEvent, Worker};
use tasuki_core::fabric::SignalCell;
use tasuki_core::node::node_state::RankStage;

/// How long a rank waits between two looks whether the receiver of a long message is still there, in ns. It is told of
/// everything else.
const LOOK_EVERY_NS: u64 = 10_000_000;

/// Most messages of a rank to one queue that wait for buffers, of requests that are awaited or were dropped.
const DEFERRED_MAX: usize = 4096;

/// The deferred messages of a rank to one queue.
#[derive(Debug)]
pub(crate) struct DeferredMessages {
    /// True if there are any; for readers without the lock.
    is_any: AtomicBool,
    lists: Mutex<Lists>,
    /// Taken by the thread that looks at the messages. Nobody waits for it.
    looking: TryLock,
    /// When the next look is due, in ns.
    look_at_ns: AtomicU64,
    /// The first ticket that waits for its buffer, if any does.
    first: AtomicU64,
    waits_for_room: AtomicBool,
}

impl Default for DeferredMessages {
    fn default() -> DeferredMessages {
        DeferredMessages {
            is_any: AtomicBool::new(false),
            lists: Mutex::default(),
            looking: TryLock::default(),
            look_at_ns: AtomicU64::new(u64::MAX),
            first: AtomicU64::new(0),
            waits_for_room: AtomicBool::new(false),
        }
    }
}

#[derive(Debug, Default)]
struct Lists {
    /// Those without a buffer, in the order of their tickets.
    for_room: VecDeque<Arc<DeferredMessage>>,
    /// Those whose receiver has not fetched them yet. A rank has a few hundred offers at most.
    for_fetch: Vec<Arc<DeferredMessage>>,
    /// The signal that offers raise, and its value at the last look.
    fetched: Option<(SignalCell, u64)>,
    has_hook: bool,
}

/// A deferred message.
#[derive(Debug)]
pub(crate) struct DeferredMessage {
    ticket: u64,
    state: Mutex<MessageState>,
    is_over: AtomicBool,
}

#[derive(Debug)]
struct MessageState {
    message: DrawnMessage,
    content: DeferredContent,
    /// True if its line was written: the message stays here until the receiver has fetched it.
    is_written: bool,
    pause: RoomPause,
    /// Why the message was not sent.
    failed: Option<Error>,
}

/// What the buffer of the ticket gets.
#[derive(Debug)]
pub(crate) enum DeferredContent {
    /// Nothing: the ticket was given up.
    Void,
    /// A copy of the bytes.
    Bytes(Box<[u8]>),
    /// Where the message is, which stays at its sender.
    Offered(OfferedMessage),
}

impl DeferredContent {
    fn content(&self) -> Content<'_> {
        match self {
            DeferredContent::Void => Content::Void,
            DeferredContent::Bytes(bytes) => Content::Bytes(bytes),
            DeferredContent::Offered(message) => Content::Offered(message.offered),
        }
    }
}

/// What a look at a message has found.
enum LookedAt {
    /// There is no buffer, or the fabric has no room, for so many ns at least.
    NoRoom(u64),
    /// The receiver has not fetched it yet.
    NotFetched,
    Over,
}

impl DeferredMessage {
    /// Returns true if the message was sent, has failed, or was given up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Takes the error of a message that is over.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failed.take()
    }

    /// Returns the state, if no thread uses it. Nobody waits for it: in the simulator a look at a queue takes time, in
    /// which a thread that waits would keep the others from running.
    fn try_lock(&self) -> Option<MutexGuard<'_, MessageState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Moves the message on, without waiting for its buffer.
    fn look(&self, access: &QueueAccess) -> LookedAt {
        let Some(mut state) = self.try_lock() else { return LookedAt::NoRoom(PAUSE_NS) };
        if self.is_over() {
            return LookedAt::Over;
        }
        let looked =
            if state.is_written { state.look_for_fetch(access) } else { state.look_for_room(access) };
        let looked = looked.unwrap_or_else(|error| {
            state.failed = Some(error);
            LookedAt::Over
        });
        if let LookedAt::Over = looked {
            state.content = DeferredContent::Void; // frees the offer and the bytes
            self.is_over.store(true, Ordering::Release);
        }
        looked
    }
}

impl MessageState {
    fn look_for_room(&mut self, access: &QueueAccess) -> Result<LookedAt> {
        let MessageState { message, content, pause, is_written, .. } = self;
        if !message.has_room(access)? {
            return match access.why_never()? {
                None => Ok(LookedAt::NoRoom(pause.next_ns(message, access))),
                Some(cause) => Err(access.fault(cause, message.label.slot)),
            };
        }
        match (message.write(access, content.content())?, content) {
            (false, _) => Ok(LookedAt::NoRoom(PAUSE_NS)),
            (true, DeferredContent::Offered(_)) => {
                *is_written = true;
                Ok(LookedAt::NotFetched)
            }
            (true, _) => Ok(LookedAt::Over),
        }
    }

    fn look_for_fetch(&mut self, access: &QueueAccess) -> Result<LookedAt> {
        let DeferredContent::Offered(offered) = &self.content else { return Ok(LookedAt::Over) };
        if offered.is_fetched()? {
            return Ok(LookedAt::Over);
        }
        match access.why_never()? {
            Some(cause) if offered.take_back()? => Err(access.fault(cause, self.message.label.slot)),
            _ => Ok(LookedAt::NotFetched), // or the receiver is copying it
        }
    }
}

impl DeferredMessages {
    fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Returns true if a message waits for its buffer. Later ones of this rank are not received before it.
    #[inline(always)]
    pub(crate) fn waits_for_room(&self) -> bool {
        self.waits_for_room.load(Ordering::Relaxed)
    }

    /// Locked for a few instructions only.
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what other threads look at without the lock.
    fn note(&self, lists: &Lists) {
        if let Some(first) = lists.for_room.front() {
            self.first.store(first.ticket, Ordering::Relaxed);
        }
        self.waits_for_room.store(!lists.for_room.is_empty(), Ordering::Relaxed);
        self.is_any.store(!lists.is_empty(), Ordering::Release);
    }
}

impl Lists {
    fn is_empty(&self) -> bool {
        self.for_room.is_empty() && self.for_fetch.is_empty()
    }
}

impl QueueAccess {
    /// Lets the calls of this rank write a message whose ticket was drawn.
    pub(crate) fn defer(
        self: &Arc<Self>,
        progress: &Arc<ProgressEngine>,
        message: DrawnMessage,
        content: DeferredContent,
    ) -> Arc<DeferredMessage> {
        let (ticket, pause, is_written, failed) = (message.ticket, RoomPause::new(), false, None);
        let state = Mutex::new(MessageState { message, content, is_written, pause, failed });
        let deferred = Arc::new(DeferredMessage { ticket, state, is_over: AtomicBool::new(false) });
        let mut lists = self.deferred.lists();
        if lists.is_empty() {
            progress.add_continuation(self.clone());
        }
        let has_hook = std::mem::replace(&mut lists.has_hook, true);
        let is_later = |other: &Arc<DeferredMessage>| (other.ticket.wrapping_sub(ticket) as i64) > 0;
        let place = lists.for_room.iter().rposition(|other| !is_later(other)).map_or(0, |place| place + 1);
        lists.for_room.insert(place, deferred.clone());
        self.deferred.note(&lists);
        drop(lists);
        if !has_hook {
            // Fails only if another hook does, whose owner learns of it when the rank leaves.
            let _ = progress.add_finalize_hook(&self.worker, Arc::new(WritesDeferred(self.clone())));
        }
        self.look_at_deferred();
        deferred
    }

    /// Returns an error if too many messages wait for buffers to add one of a request.
    pub(crate) fn check_deferred(&self, call: &dyn Fn() -> String) -> Result<()> {
        if self.deferred.waits_for_room() && self.deferred.lists().for_room.len() >= DEFERRED_MAX {
            let cause = Cause::Full { what: BEGUN_TO_ANY_SOURCE, capacity: DEFERRED_MAX };
            return Err(self.worker.fault(cause, call));
        }
        Ok(())
    }

    /// Returns the most bytes that the deferred messages take at present. Long ones lie in memory of the program.
    pub(crate) fn deferred_bytes(&self) -> u64 {
        let (lists, one) = (self.deferred.lists(), size_of::<DeferredMessage>() as u64 + self.buffer_bytes());
        (lists.for_room.len() + lists.for_fetch.len()) as u64 * one
    }

    /// Writes the deferred messages whose buffers are free, unless another thread is doing that. Never waits.
    pub(crate) fn look_at_deferred(&self) {
        let deferred = &self.deferred;
        let Some(_looking) = deferred.looking.try_lock() else { return };
        let (mut any_over, mut look_after) = (false, LOOK_EVERY_NS);
        loop {
            let Some(first) = ({ deferred.lists().for_room.front().cloned() }) else { break };
            let looked = first.look(self);
            any_over |= first.is_over();
            if let LookedAt::NoRoom(for_ns) = looked {
                look_after = for_ns;
                break;
            }
            let mut lists = deferred.lists();
            // Another thread may have added one with an earlier ticket.
            match lists.for_room.front().is_some_and(|front| Arc::ptr_eq(front, &first)) {
                true => drop(lists.for_room.pop_front()),
                false => lists.for_room.retain(|other| !Arc::ptr_eq(other, &first)),
            }
            if let LookedAt::NotFetched = looked {
                lists.fetched = first.fetch_signal().map(|cell| (cell, u64::MAX));
                lists.for_fetch.push(first);
            }
        }
        let (fetched, for_fetch) = {
            let lists = deferred.lists();
            (lists.fetched, lists.for_fetch.clone())
        };
        let seen = fetched.map(|(cell, _)| (cell, self.worker.signal_value(&cell))); // before the looks
        let over = |message: &&Arc<DeferredMessage>| matches!(message.look(self), LookedAt::Over);
        let over: Vec<_> = for_fetch.iter().filter(over).collect();
        any_over |= !over.is_empty();
        deferred.look_at_ns.store(self.worker.now_ns().saturating_add(look_after), Ordering::Relaxed);
        let mut lists = deferred.lists();
        lists.for_fetch.retain(|message| !over.iter().any(|other| Arc::ptr_eq(other, message)));
        lists.fetched = seen.filter(|_| !lists.for_fetch.is_empty());
        deferred.note(&lists);
        if lists.is_empty()
            && let Some(progress) = self.progress.upgrade()
        {
            progress.remove_continuation(self);
        }
        drop(lists);
        if any_over {
            self.worker.wake_own_threads();
        }
    }

    /// Gives a deferred message up. Returns true if its receiver gets nothing.
    pub(crate) fn give_up(&self, message: &DeferredMessage) -> Result<bool> {
        let mut state = loop {
            match message.try_lock() {
                Some(state) => break state,
                None => self.worker.pause(), // another thread looks at it
            }
        };
        if message.is_over() {
            return Ok(false);
        }
        if let (true, DeferredContent::Offered(offered)) = (state.is_written, &state.content) {
            if !offered.take_back()? {
                return Ok(false);
            }
            state.content = DeferredContent::Void;
            message.is_over.store(true, Ordering::Release);
        }
        state.content = DeferredContent::Void;
        drop(state);
        self.look_at_deferred();
        Ok(true)
    }

    /// Returns why the receiver will take no more messages, if so.
    fn why_never(&self) -> Result<Option<Cause>> {
        let stage = self.worker.node_state().rank_state(self.receiver).stage();
        match self.receiver != self.worker.rank() && stage >= RankStage::Leaving {
            true => Ok(Some(Cause::PeerLeft { peer: self.receiver })),
            false => self.why_closed(),
        }
    }

    fn fault(&self, cause: Cause, slot: u32) -> Error {
        self.worker.fault(cause, || self.request_call(slot))
    }

    /// Describes the request of a message with that slot.
    fn request_call(&self, slot: u32) -> String {
        format!("i{}", self.call(Some(slot), "")) // only any-source queues have requests
    }
}

impl DeferredMessage {
    fn fetch_signal(&self) -> Option<SignalCell> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let DeferredContent::Offered(offered) = &state.content else { return None };
        offered.signal().ok()
    }
}

impl Continuation for QueueAccess {
    fn can_resume(&self) -> bool {
        let deferred = &self.deferred;
        if !deferred.is_any() || deferred.looking.is_locked() {
            return false;
        }
        let is_due = || self.worker.now_ns() >= deferred.look_at_ns.load(Ordering::Relaxed);
        let has_room =
            || deferred.waits_for_room() && self.peeks_room(deferred.first.load(Ordering::Relaxed));
        let fetched = { deferred.lists().fetched };
        fetched.is_some_and(|(cell, seen)| self.worker.signal_value(&cell) != seen) || has_room() || is_due()
    }

    fn again_at_ns(&self) -> u64 {
        if self.deferred.is_any() { self.deferred.look_at_ns.load(Ordering::Relaxed) } else { u64::MAX }
    }

    fn is_under_way(&self) -> bool {
        self.deferred.is_any()
    }

    fn resume(&self) {
        self.look_at_deferred();
    }
}

/// Waits until a deferred message is over, or the calling thread can move it on.
#[derive(Debug)]
pub(crate) struct MessageEnds {
    pub(crate) access: Arc<QueueAccess>,
    pub(crate) message: Arc<DeferredMessage>,
    pub(crate) slot: u32,
}

impl WaitEvent for MessageEnds {
    fn happened(&self) -> bool {
        self.access.can_resume() || self.message.is_over()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.receiver, RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.request_call(self.slot)
    }
}

/// Lets a leaving rank write its deferred messages to a queue.
#[derive(Debug)]
struct WritesDeferred(Arc<QueueAccess>);

impl FinalizeHook for WritesDeferred {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        let mut lists = self.0.deferred.lists();
        lists.has_hook = !lists.is_empty(); // or it is dropped now
        !lists.has_hook
    }

    fn finalize(&self, worker: &Worker) -> Result<()> {
        if self.0.receiver == worker.rank() {
            return Ok(()); // nobody receives any more
        }
        let call = || self.0.call(None, ": messages of requests");
        while self.0.deferred.is_any() {
            self.0.look_at_deferred();
            let Some(message) = ({
                let lists = self.0.deferred.lists();
                lists.for_room.front().or(lists.for_fetch.first()).cloned()
            }) else {
                break;
            };
            let ends = MessageEnds { access: self.0.clone(), message, slot: 0 };
            let waited = worker.wait(&Condition::Event(Arc::new(ends)), Deadline::NEVER, &call);
            if waited.is_err() && worker.check().is_err() {
                break; // the job is over
            }
        }
        Ok(())
    }
}
