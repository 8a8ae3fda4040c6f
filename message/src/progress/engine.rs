//! All messages of a rank that did not end at once, moved on by whichever of its threads waits.

use crate::buffered::budget::BufferedSends;
use crate::progress::continuation::Continuations;
use crate::progress::drain;
use crate::progress::finalize::FinalizeHook;
use crate::progress::operation::MessageOp;
use crate::progress::pending::PendingOps;
use crate::progress::waker_thread::WakerThread;
use crate::protocol::ring::Rings;
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::bank_state::BankCounts;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::node_state::UnderWay;
use tasuki_core::engine::{Agent, TryLock, WaitEvent, Worker};

/// Messages looked at in one go; the others have their turn in the next.
const ONE_GO: usize = 64;

/// The messages under way.
#[derive(Debug, Default)]
pub struct ProgressEngine {
    /// How many may take a step, for who looks without the lock.
    count: AtomicUsize,
    /// Pages of all contexts of the rank.
    pub(crate) banks: Arc<BankCounts>,
    pub(crate) queue: Arc<Mutex<PendingOps>>,
    /// Whether a thread is moving messages on.
    going: TryLock,
    /// Tasks to be woken as soon as nothing of the rank's is being moved on: waking is the program's code.
    to_wake: Mutex<Vec<Waker>>,
    pub(crate) rings: Arc<Rings>,
    pub(crate) buffered: BufferedSends,
    pub(crate) waker_thread: WakerThread,
    pub(crate) finalize_hooks: Mutex<Vec<Arc<dyn FinalizeHook>>>,
    pub(crate) continuations: Continuations,
}

impl ProgressEngine {
    /// Moves an operation on in waiting calls from now on, unless it does so already.
    pub(crate) fn add(&self, operation: &Arc<MessageOp>) {
        let mut queue = self.queue();
        queue.add(operation);
        self.count.store(queue.len(), Ordering::Release);
    }

    /// No longer moves it on. When this has returned, nobody is at it.
    pub(crate) fn remove(&self, worker: &Worker, operation: &Arc<MessageOp>) {
        self.forget(operation);
        operation.settle(worker);
    }

    fn forget(&self, operation: &Arc<MessageOp>) {
        let mut queue = self.queue();
        if queue.remove(operation) {
            self.count.store(queue.len(), Ordering::Release);
        }
    }

    /// The last message that is in the spool for a slot.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, block: SlotIndex) -> Option<Arc<MessageOp>> {
        self.queue().last_buffered(bank, block)
    }

    /// Messages whose end wakes somebody.
    pub(crate) fn watched(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_watched)
    }

    /// The messages in the spool.
    pub(crate) fn buffered(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_buffered)
    }

    /// The first of each slot.
    pub(crate) fn first_buffered(&self) -> Vec<Arc<MessageOp>> {
        self.queue().first_of(MessageOp::is_buffered)
    }

    /// Sends for whose end nobody waits.
    pub(crate) fn detached(&self) -> Vec<Arc<MessageOp>> {
        self.queue().all(MessageOp::is_detached)
    }

    /// The first of each slot.
    pub(crate) fn first_detached(&self) -> Vec<Arc<MessageOp>> {
        self.queue().first_of(MessageOp::is_detached)
    }

    /// Takes up to `steps` steps, each of another message. No lock is held meanwhile.
    fn go(&self, worker: &Worker, steps: usize) {
        let Some(turn) = self.going.take() else {
            return; // another thread of this rank is at it
        };
        let (mut any_ended, mut left) = (false, steps);
        while left > 0 {
            let Some(operation) = ({ self.queue().next() }) else { break };
            left -= 1;
            if operation.advance(worker) {
                self.over(&operation);
                self.to_wake().extend(operation.take_waker());
                any_ended = true;
                left += 1; // for the one that stood behind it
            }
        }
        drop(turn);
        if any_ended {
            worker.stir();
        }
    }

    /// A message has ended.
    fn over(&self, operation: &Arc<MessageOp>) {
        self.forget(operation);
        self.buffered.give_back(operation);
    }

    /// Moves a message on that the calling thread waits for, while it goes on without a long wait. Whether it has ended
    /// by that: then nobody else is at it.
    pub(crate) fn run(&self, worker: &Worker, operation: &Arc<MessageOp>) -> bool {
        let ended = operation.run(worker, worker.spins(Some(operation.bank.peer)));
        if ended {
            self.over(operation);
            operation.wake();
        }
        ended
    }

    /// Moves every message on by one step.
    pub(crate) fn advance_all(&self, worker: &Worker) {
        self.go(worker, self.count.load(Ordering::Acquire));
        self.tell();
    }

    /// Gives up messages for whose end nobody waits: an error that says how many, and for whom the first was.
    pub(crate) fn give_up(
        &self,
        worker: &Worker,
        vain: &[Arc<MessageOp>],
        call: impl Fn() -> String,
    ) -> Error {
        for operation in vain {
            self.remove(worker, operation);
            self.buffered.give_back(operation);
            if operation.buffered_bytes().is_none() {
                operation.free_slot(); // of a buffered one it may be in use again
            }
        }
        let first = vain.first().map(|first| (first.bank.peer, first.bank.slot(first.block)));
        let (peer, slot) = first.unwrap_or_default();
        worker.fault(Cause::Untaken { messages: vain.len(), peer, slot }, call)
    }

    fn to_wake(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.to_wake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, PendingOps> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for ProgressEngine {
    fn advance(&self, worker: &Worker) -> bool {
        let count = self.count.load(Ordering::Acquire);
        if count > 0 {
            // Where nobody sleeps before time goes on, there is no next go: all have their turn in this one.
            let most = if worker.platform().lets_threads_sleep() { ONE_GO } else { count };
            self.go(worker, count.min(most));
        }
        let follows = self.continuations.is_any();
        if follows {
            self.to_wake().extend(self.continuations.ready());
        }
        (count > 0 || follows) && !self.to_wake().is_empty()
    }

    fn is_busy(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || self.continuations.is_any()
    }

    fn under_way(&self, awaited: Option<&Arc<dyn WaitEvent>>) -> UnderWay {
        let is_awaited = |operation: &Arc<MessageOp>| {
            awaited.is_some_and(|event| std::ptr::addr_eq(Arc::as_ptr(event), Arc::as_ptr(operation)))
        };
        let sending = self.queue().all(MessageOp::is_sending);
        let sends = sending.iter().any(|operation| !is_awaited(operation));
        UnderWay { sends, signals: self.continuations.are_under_way() }
    }

    fn tell(&self) {
        // One at a time: if waking one panics, the others are woken by the next call.
        while let Some(waker) = { self.to_wake().pop() } {
            waker.wake();
        }
    }

    fn has_work(&self) -> bool {
        if self.continuations.may_go_on() {
            return true;
        }
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let first: Vec<Arc<MessageOp>> = self.queue().first_of(|_| true);
        first.iter().any(|operation| operation.may_step())
    }

    fn promise(&self, worker: &Worker) {
        drain::promise(self, worker);
    }

    fn leave(&self, worker: &Worker) -> Result<()> {
        let unfinished = drain::finalize(self, worker);
        let finalize_hooks = self.run_finalize_hooks(worker);
        self.remove_continuations();
        self.rings.drain(worker);
        unfinished.and(finalize_hooks)
    }
}
