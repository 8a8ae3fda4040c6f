//! All messages of a rank that did not end at once, moved on by whichever of its threads waits.

use super::alarm::Alarm;
use super::debt::Debt;
use super::follow::Followers;
use super::holding::Counts;
use super::leaving;
use super::operation::Operation;
use super::page::{Block, Page};
use super::queue::Queue;
use super::ring::Rings;
use super::spool::Spool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::{Agent, Machine, Turn};

/// Messages looked at in one go; the others have their turn in the next.
const ONE_GO: usize = 64;

/// The messages under way.
#[derive(Debug, Default)]
pub struct Pump {
    /// How many may take a step, for who looks without the lock.
    count: AtomicUsize,
    /// Pages of all contexts of the rank.
    pub(crate) pages: Arc<Counts>,
    pub(super) queue: Arc<Mutex<Queue>>,
    /// Whether a thread is moving messages on.
    going: Turn,
    /// Tasks to be woken as soon as nothing of the rank's is being moved on: waking is the program's code.
    to_wake: Mutex<Vec<Waker>>,
    pub(crate) rings: Arc<Rings>,
    pub(crate) spool: Spool,
    pub(crate) alarm: Alarm,
    pub(super) debts: Mutex<Vec<Arc<dyn Debt>>>,
    pub(super) followers: Followers,
}

impl Pump {
    /// Moves an operation on in waiting calls from now on, unless it does so already.
    pub(crate) fn add(&self, operation: &Arc<Operation>) {
        let mut queue = self.queue();
        queue.add(operation);
        self.count.store(queue.len(), Ordering::Release);
    }

    /// No longer moves it on. When this has returned, nobody is at it.
    pub(crate) fn remove(&self, machine: &Machine, operation: &Arc<Operation>) {
        self.forget(operation);
        operation.settle(machine);
    }

    fn forget(&self, operation: &Arc<Operation>) {
        let mut queue = self.queue();
        if queue.remove(operation) {
            self.count.store(queue.len(), Ordering::Release);
        }
    }

    /// The last message that is in the spool for a slot.
    pub(crate) fn last_spooled(&self, page: &Arc<Page>, block: Block) -> Option<Arc<Operation>> {
        self.queue().last_spooled(page, block)
    }

    /// Messages whose end wakes somebody.
    pub(crate) fn watched(&self) -> Vec<Arc<Operation>> {
        self.queue().all(Operation::is_watched)
    }

    /// The messages in the spool.
    pub(crate) fn spooled(&self) -> Vec<Arc<Operation>> {
        self.queue().all(Operation::is_spooled)
    }

    /// The first of each slot.
    pub(crate) fn first_spooled(&self) -> Vec<Arc<Operation>> {
        self.queue().first_of(Operation::is_spooled)
    }

    /// Sends for whose end nobody waits.
    pub(crate) fn left_alone(&self) -> Vec<Arc<Operation>> {
        self.queue().all(Operation::is_left_alone)
    }

    /// The first of each slot.
    pub(crate) fn first_left_alone(&self) -> Vec<Arc<Operation>> {
        self.queue().first_of(Operation::is_left_alone)
    }

    /// Takes up to `steps` steps, each of another message. No lock is held meanwhile.
    fn go(&self, machine: &Machine, steps: usize) {
        let Some(turn) = self.going.take() else {
            return; // another thread of this rank is at it
        };
        let (mut any_ended, mut left) = (false, steps);
        while left > 0 {
            let Some(operation) = ({ self.queue().next() }) else { break };
            left -= 1;
            if operation.advance(machine) {
                self.over(&operation);
                self.to_wake().extend(operation.take_waker());
                any_ended = true;
                left += 1; // for the one that stood behind it
            }
        }
        drop(turn);
        if any_ended {
            machine.stir();
        }
    }

    /// A message has ended.
    fn over(&self, operation: &Arc<Operation>) {
        self.forget(operation);
        self.spool.give_back(operation);
    }

    /// Moves a message on that the calling thread waits for, while it goes on without a long wait. Whether it has ended
    /// by that: then nobody else is at it.
    pub(crate) fn run(&self, machine: &Machine, operation: &Arc<Operation>) -> bool {
        let ended = operation.run(machine, machine.spins(Some(operation.page.peer)));
        if ended {
            self.over(operation);
            operation.wake();
        }
        ended
    }

    /// Moves every message on by one step.
    pub(crate) fn advance_all(&self, machine: &Machine) {
        self.go(machine, self.count.load(Ordering::Acquire));
        self.tell();
    }

    /// Gives up messages for whose end nobody waits: an error that says how many, and for whom the first was.
    pub(crate) fn give_up(
        &self,
        machine: &Machine,
        vain: &[Arc<Operation>],
        call: impl Fn() -> String,
    ) -> Error {
        for operation in vain {
            self.remove(machine, operation);
            self.spool.give_back(operation);
            if operation.spool_bytes().is_none() {
                operation.free_slot(); // of a spooled one it may be in use again
            }
        }
        let first = vain.first().map(|first| (first.page.peer, first.page.slot(first.block)));
        let (peer, slot) = first.unwrap_or_default();
        machine.fault(Cause::Untaken { messages: vain.len(), peer, slot }, call)
    }

    fn to_wake(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.to_wake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for Pump {
    fn advance(&self, machine: &Machine) -> bool {
        let count = self.count.load(Ordering::Acquire);
        if count > 0 {
            // Where nobody sleeps before time goes on, there is no next go: all have their turn in this one.
            let most = if machine.host().lets_threads_sleep() { ONE_GO } else { count };
            self.go(machine, count.min(most));
        }
        let follows = self.followers.is_any();
        if follows {
            self.to_wake().extend(self.followers.ready());
        }
        (count > 0 || follows) && !self.to_wake().is_empty()
    }

    fn is_busy(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || self.followers.is_any()
    }

    fn tell(&self) {
        // One at a time: if waking one panics, the others are woken by the next call.
        while let Some(waker) = { self.to_wake().pop() } {
            waker.wake();
        }
    }

    fn has_work(&self) -> bool {
        if self.followers.may_go_on() {
            return true;
        }
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let first: Vec<Arc<Operation>> = self.queue().first_of(|_| true);
        first.iter().any(|operation| operation.may_step())
    }

    fn promise(&self, machine: &Machine) {
        leaving::promise(self, machine);
    }

    fn leave(&self, machine: &Machine) -> Result<()> {
        let owed = leaving::pay(self, machine);
        let debts = self.pay_debts(machine);
        self.forget_followers();
        self.rings.drain(machine);
        owed.and(debts)
    }
}
