//! The progress engine: all messages of a rank that did not complete at once. Any thread of the rank that waits steps
//! them.

use crate::buffered::budget::BufferedSends;
use crate::channel::DroppedEnd;
use crate::deferred_free::DeferredFree;
use crate::progress::awaited::AwaitedConditions;
use crate::progress::continuation::{Continuation, Continuations};
use crate::progress::drain;
use crate::progress::finalize::{FinalizeHook, FinalizeHooks, UnreceivedMessages};
use crate::progress::operation::MessageOp;
use crate::progress::pending::PendingOps;
use crate::progress::poll_spin::PollSpin;
use crate::progress::waker_thread;
use crate::progress::watch_state::WatchState;
use crate::protocol::outcome::Outcome;
use crate::protocol::ring::Rings;
use crate::receive_queue::{DroppedQueue, Offers};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::bank_state::BanksOfRank;
use crate::slot::directory::EndedEntry;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;
use tasuki_core::base::sync::{AtomicBool, AtomicUsize, Ordering};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::{Agent, Awaited, Effort, TryLock, WaitEvent, Worker};
use tasuki_core::node::node_state::UnderWay;

/// How many messages a call that waits steps; the others follow in later calls.
const STEPS_MAX: usize = 64;
/// How many messages a call that waits looks at: about 2 us.
const LOOKS_MAX: usize = 256;
/// How many messages a call looks at that does not wait. The bound on what other messages add to its cost.
const BRIEF_LOOKS_MAX: usize = 8;

/// How many messages one call looks at, and how many it steps.
#[derive(Clone, Copy, Debug)]
struct Share {
    looks: usize,
    steps: usize,
    /// A message that ends does not count, so that its successor gets a step, too.
    is_complete: bool,
}

impl Share {
    /// All of `count` messages, once each.
    fn of_all(count: usize) -> Share {
        Share { looks: count, steps: count, is_complete: true }
    }

    /// The part of `count` messages that falls to one of many calls.
    fn of_call(effort: Effort, count: usize) -> Share {
        let (looks, steps) = match effort {
            Effort::Brief => (BRIEF_LOOKS_MAX, BRIEF_LOOKS_MAX),
            Effort::Full => (LOOKS_MAX, STEPS_MAX),
        };
        Share { looks: looks.min(count), steps, is_complete: false }
    }
}

/// The unfinished messages of a rank.
#[derive(Debug, Default)]
pub struct ProgressEngine {
    /// How many can step, for readers without the lock.
    count: AtomicUsize,
    /// What the banks of all contexts of the rank share.
    pub(crate) banks: Arc<BanksOfRank>,
    pub(crate) ended_entries: DeferredFree<EndedEntry>,
    pub(crate) queue: Arc<Mutex<PendingOps>>,
    /// Taken while a thread steps messages.
    running: TryLock,
    /// Tasks to wake once no message is being stepped. Waking runs code of the program.
    to_wake: Mutex<Vec<Waker>>,
    pub(crate) rings: Arc<Rings>,
    pub(crate) buffered: BufferedSends,
    pub(crate) watch_state: WatchState,
    finalize_hooks: FinalizeHooks,
    pub(crate) continuations: Continuations,
    pub(crate) awaited: AwaitedConditions,
    /// True if the waker thread stays although no task waits.
    serves: AtomicBool,
    pub(crate) poll_spin: PollSpin,
    /// Whether sends that begin find their receive within a moment.
    pub(crate) send_spin: PollSpin,
    pub(crate) offers: Arc<Offers>,
    pub(crate) receive_queues: Arc<DeferredFree<DroppedQueue>>,
    pub(crate) channels: DeferredFree<DroppedEnd>,
    /// The any-source queue of the rank.
    any_source: OnceLock<Weak<dyn UnreceivedMessages>>,
}

impl ProgressEngine {
    /// Wakes tasks. If one waker panics, a later call wakes the others.
    pub(super) fn wake_all(&self, wakers: impl IntoIterator<Item = Waker>) {
        self.to_wake().extend(wakers);
        self.run_callbacks();
    }

    /// Sets the any-source queue of the rank.
    pub(crate) fn set_any_source(&self, any_source: Weak<dyn UnreceivedMessages>) {
        let _ = self.any_source.set(any_source);
    }

    /// Adds an operation, unless it is already there. Waiting calls step it from now on.
    pub(crate) fn add(&self, operation: &Arc<MessageOp>) {
        let mut queue = self.queue();
        queue.add(operation);
        self.count.store(queue.len(), Ordering::Release);
    }

    /// Removes an operation. On return no thread steps it.
    pub(crate) fn remove(&self, worker: &Worker, operation: &Arc<MessageOp>) {
        self.forget(operation);
        operation.settle(worker);
    }

    fn forget(&self, operation: &Arc<MessageOp>) {
        let mut queue = self.queue();
        queue.remove(operation);
        self.count.store(queue.len(), Ordering::Release);
    }

    /// Returns the last buffered message of a slot.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, index: SlotIndex) -> Option<Arc<MessageOp>> {
        self.queue().last_buffered(bank, index)
    }

    /// Returns true if no task waits for a message, a continuation or a condition, and no message is buffered.
    pub(crate) fn has_no_task(&self, worker: &Worker) -> bool {
        self.watched().is_empty()
            && !self.awaits_receives(worker)
            && !self.continuations.are_awaited()
            && self.awaited.is_empty()
    }

    /// Returns true if a message is buffered, and the rank can still send.
    pub(crate) fn awaits_receives(&self, worker: &Worker) -> bool {
        worker.check().is_ok() && self.has_buffered()
    }

    /// Returns true if a message is buffered.
    pub(crate) fn has_buffered(&self) -> bool {
        self.queue().has_buffered()
    }

    /// Makes sure that a buffered message leaves soon after its receive is posted, even if no call of the program waits.
    /// Where no thread can sleep, as in a simulation, it leaves in the next call.
    pub(crate) fn ensure_buffered_leave(self: &Arc<Self>, worker: &Arc<Worker>) {
        self.watch_state.note_change();
        if worker.platform().lets_threads_sleep() {
            // Without the thread, too, it leaves in the next call.
            let _ = waker_thread::start(worker, self);
        }
    }

    /// Makes sure that a task is woken when what it awaits has happened, even if no call of the program waits.
    pub(crate) fn ensure_progress(self: &Arc<Self>, worker: &Arc<Worker>, waker: &Waker) {
        self.watch_state.note_change();
        if !worker.platform().lets_threads_sleep() || waker_thread::start(worker, self).is_err() {
            worker.pause();
            waker.wake_by_ref(); // the task has to poll again and again
        }
    }

    /// Returns true if the waker thread stays although no task waits: it serves the rank's handlers and queues.
    pub(crate) fn serves(&self, worker: &Worker) -> bool {
        self.serves.load(Ordering::Relaxed) || worker.uses_queues()
    }

    /// Starts the waker thread, which from now on makes progress for the rank until it leaves, like a waiting call.
    /// Where no thread can sleep, as in a simulation, it does nothing.
    pub fn serve_in_background(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<()> {
        worker.check().map_err(|cause| worker.fault(cause, || "serve_in_background()".into()))?;
        self.serves.store(true, Ordering::Relaxed);
        self.watch_state.note_change();
        if worker.platform().lets_threads_sleep() { waker_thread::start(worker, self) } else { Ok(()) }
    }

    /// Returns the messages with a waker.
    pub(crate) fn watched(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_watched)
    }

    /// Returns the buffered messages.
    pub(crate) fn buffered(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_buffered)
    }

    /// Returns the first buffered message of each slot, of those that count.
    pub(crate) fn first_buffered_of(&self, counts: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.queue().first_of(|operation| operation.is_buffered() && counts(operation))
    }

    /// Returns the sends that nobody waits for.
    pub(crate) fn detached(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_detached)
    }

    /// Returns the first detached send of each slot.
    pub(crate) fn first_detached(&self) -> Vec<Arc<MessageOp>> {
        self.queue().first_of(MessageOp::is_detached)
    }

    /// Looks at the next messages in turn, and steps those that are not quiet. Holds no lock during a step.
    ///
    /// With n messages outstanding, a call must not look at all of them: n calls would look n * n times. A waiting call
    /// steps the message that it waits for, and this share of the others.
    fn run_steps(&self, worker: &Worker, mut share: Share) {
        let Some(turn) = self.running.try_lock() else {
            return; // another thread of this rank steps messages
        };
        let (mut any_ended, mut is_ring_free) = (false, self.rings.seem_free());
        while share.steps > 0 {
            let next =
                self.queue().next_ready(&mut share.looks, |operation| operation.is_quiet(is_ring_free));
            let Some(operation) = next else { break };
            share.steps -= 1;
            if operation.advance(worker) {
                self.remove_ended(&operation);
                self.to_wake().extend(operation.take_waker());
                any_ended = true;
                share.steps += usize::from(share.is_complete);
                share.looks += usize::from(share.is_complete);
            } else if operation.awaits_ring() {
                is_ring_free = false;
            }
        }
        drop(turn);
        if any_ended {
            worker.wake_own_threads();
        }
    }

    /// Removes a message that has ended and frees its send buffer space.
    pub(crate) fn remove_ended(&self, operation: &Arc<MessageOp>) {
        self.buffered.give_back(operation); // first: a close that finds no buffered message looks at the slot
        self.forget(operation);
        if operation.is_kept() {
            self.offer(operation);
        }
    }

    /// Offers the message of a dropped receive to a receive that waits on the slot of the message.
    #[cold]
    pub(crate) fn offer(&self, kept: &MessageOp) {
        let (Some(Outcome::Done(done)), Some(late_matches)) = (kept.end(), kept.late_matches()) else {
            return;
        };
        let takers = self.queue().all(|operation| operation.may_take(kept, done.slot));
        takers.iter().for_each(|taker| taker.look_for_kept(&late_matches));
    }

    /// Steps a message that the calling thread waits for, until it would have to wait long. Returns true if this call
    /// ended it; then no other thread uses it.
    pub(crate) fn run(&self, worker: &Worker, operation: &Arc<MessageOp>) -> bool {
        let ended = operation.run(worker, worker.spins(Some(operation.bank.peer)));
        if ended {
            self.remove_ended(operation);
            operation.wake();
        }
        ended
    }

    /// Steps a message that the calling thread asks for, once. Returns true if this call ended it; then no other
    /// thread uses it, and the caller takes its waker.
    pub(crate) fn step(&self, worker: &Worker, operation: &Arc<MessageOp>) -> bool {
        let ended = operation.advance(worker);
        if ended {
            self.remove_ended(operation);
        }
        ended
    }

    /// Returns how many times calls of this rank have looked at an unfinished message on behalf of all of them.
    pub fn looks(&self) -> u64 {
        self.queue().looks()
    }

    /// Steps every message once.
    pub(crate) fn advance_all(&self, worker: &Worker) {
        self.run_steps(worker, Share::of_all(self.count.load(Ordering::Acquire)));
        self.run_callbacks();
    }

    /// Discards sends that nobody waits for. Returns an error with their number and the destination of the first.
    pub(crate) fn give_up(
        &self,
        worker: &Worker,
        discarded: &[Arc<MessageOp>],
        call: impl Fn() -> String,
    ) -> Error {
        for operation in discarded {
            self.remove(worker, operation);
            if operation.is_over() {
                continue; // another thread has ended it
            }
            self.buffered.give_back(operation);
            if !operation.is_buffered() {
                operation.free_slot(); // the slot of a buffered message may be in use again
            }
        }
        let first = discarded.first().map(|first| (first.bank.peer, first.bank.slot(first.index)));
        let (peer, slot) = first.unwrap_or_default();
        worker.fault(Cause::Untaken { messages: discarded.len(), peer, slot: slot as usize }, call)
    }

    /// Registers a continuation, which waiting calls run from now on.
    pub fn add_continuation(&self, continuation: Arc<dyn Continuation>) {
        self.continuations.add(continuation);
    }

    /// Removes a continuation.
    pub fn remove_continuation(&self, continuation: &dyn Continuation) {
        self.continuations.remove(continuation);
    }

    /// Registers a hook that the rank runs when it leaves.
    pub fn add_finalize_hook(&self, worker: &Worker, hook: Arc<dyn FinalizeHook>) -> Result<()> {
        self.finalize_hooks.add(worker, hook)
    }

    /// Finalizes and drops the hooks that nobody else holds and that are done.
    pub fn drop_finalized_hooks(&self, worker: &Worker) -> Result<()> {
        self.finalize_hooks.drop_finalized(worker)
    }

    fn to_wake(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.to_wake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, PendingOps> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for ProgressEngine {
    fn advance(&self, worker: &Worker, effort: Effort) -> bool {
        let count = self.count.load(Ordering::Acquire);
        if count > 0 {
            // Where no thread may sleep before virtual time advances, there is no later call: step all in this one.
            let has_later_call = worker.platform().lets_threads_sleep();
            let share = if has_later_call { Share::of_call(effort, count) } else { Share::of_all(count) };
            self.run_steps(worker, share);
        }
        let follows = self.continuations.is_any();
        if follows {
            // Not under the lock: in the simulator a look takes time, in which another thread may need the lock.
            let ready = self.continuations.ready();
            self.to_wake().extend(ready);
        }
        let is_awaited = self.awaited.is_any();
        if is_awaited {
            let looks = if effort == Effort::Full { LOOKS_MAX } else { BRIEF_LOOKS_MAX };
            let wakers = self.awaited.take_decided(worker, looks);
            self.to_wake().extend(wakers);
        }
        (count > 0 || follows || is_awaited) && !self.to_wake().is_empty()
    }

    fn wake_when(self: Arc<Self>, worker: &Arc<Worker>, awaited: Awaited, waker: &Waker) -> Option<u64> {
        if !worker.platform().lets_threads_sleep() {
            self.ensure_progress(worker, waker);
            return None;
        }
        let number = self.awaited.add(awaited, waker.clone());
        self.ensure_progress(worker, waker);
        Some(number)
    }

    fn forget_awaited(&self, number: u64) {
        drop(self.awaited.remove(number));
        self.watch_state.note_change();
    }

    fn again_at_ns(&self) -> u64 {
        self.continuations.again_at_ns()
    }

    fn is_busy(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || self.continuations.any_under_way()
    }

    fn under_way(&self, awaited: Option<&Arc<dyn WaitEvent>>) -> UnderWay {
        let is_awaited = |operation: &Arc<MessageOp>| {
            awaited.is_some_and(|event| std::ptr::addr_eq(Arc::as_ptr(event), Arc::as_ptr(operation)))
        };
        let sends = self.queue().any(|operation| operation.is_sending() && !is_awaited(operation));
        UnderWay { sends, signals: self.continuations.any_under_way() }
    }

    fn run_callbacks(&self) {
        // One at a time: if one waker panics, the next call wakes the others.
        while let Some(waker) = { self.to_wake().pop() } {
            waker.wake();
        }
    }

    fn has_work(&self) -> bool {
        if self.continuations.can_resume() {
            return true;
        }
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let is_ring_free = self.rings.seem_free();
        let (mut place, removed) = (0, self.queue().removed());
        loop {
            let found = {
                let queue = self.queue();
                if queue.removed() != removed {
                    return true; // another thread makes progress, and the places of messages have changed
                }
                queue.find_ready(&mut place, |operation| operation.is_quiet(is_ring_free))
            };
            match found {
                None => return false,
                Some(operation) if operation.may_step() => return true, // not under the lock: it calls the fabric
                Some(_) => {}
            }
        }
    }

    fn announce_leaving(&self, worker: &Worker) {
        drain::promise(self, worker);
        if !self.first_detached().is_empty() || self.finalize_hooks.is_any_unfinished(worker) {
            self.finalize_hooks.will_leave(worker);
        }
    }

    fn leave(&self, worker: &Worker) -> Result<()> {
        let unfinished = drain::finalize(self, worker);
        let finalize_hooks = self.finalize_hooks.run(worker);
        self.continuations.clear();
        self.channels.clear();
        self.rings.drain(worker);
        // Nobody receives any more. Their senders learn that this rank has left.
        let kept = self.queue().all(MessageOp::is_kept);
        kept.iter().for_each(|operation| self.remove(worker, operation));
        let unreceived = self.any_source.get().and_then(Weak::upgrade).and_then(|queue| queue.unreceived());
        let received = unreceived.map_or(Ok(()), |cause| Err(worker.fault(cause, || "leave()".into())));
        unfinished.and(finalize_hooks).and(received)
    }

    fn abandon(&self) {
        self.finalize_hooks.clear();
        self.continuations.clear();
        self.channels.clear();
        drop(std::mem::take(&mut *self.to_wake()));
    }
}
