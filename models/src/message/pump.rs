//! All messages of a rank that did not end at once, moved on by whichever of its threads waits.

use super::alarm::Alarm;
use super::holding::Counts;
use super::operation::Operation;
use super::page::{Block, Page};
use super::ring::Rings;
use super::spool::Spool;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Agent, Condition, Event, Machine};

/// Messages looked at in one go; the others have their turn in the next.
const ONE_GO: usize = 64;

/// The messages under way.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    /// How many there are, for who looks without the lock.
    count: AtomicUsize,
    /// Pages of all contexts of the rank.
    pub(crate) pages: Arc<Counts>,
    queue: Arc<Mutex<Queue>>,
    /// Whether a thread is moving messages on.
    going: AtomicBool,
    pub(crate) rings: Rings,
    pub(crate) spool: Spool,
    pub(crate) alarm: Alarm,
}

#[derive(Debug, Default)]
struct Queue {
    operations: Vec<Arc<Operation>>,
    /// Whose turn it is.
    next: usize,
}

impl Pump {
    /// Moves an operation on in waiting calls from now on, unless it does so already.
    pub(crate) fn add(&self, operation: &Arc<Operation>) {
        let mut queue = self.queue();
        if operation.queued.swap(true, Ordering::Relaxed) {
            return;
        }
        queue.operations.push(operation.clone());
        self.count.store(queue.operations.len(), Ordering::Release);
    }

    /// No longer moves it on. When this has returned, nobody is at it.
    pub(crate) fn remove(&self, machine: &Machine, operation: &Arc<Operation>) {
        self.forget(operation);
        operation.settle(machine);
    }

    fn forget(&self, operation: &Arc<Operation>) {
        let mut queue = self.queue();
        if !operation.queued.swap(false, Ordering::Relaxed) {
            return;
        }
        queue.operations.retain(|other| !Arc::ptr_eq(other, operation));
        self.count.store(queue.operations.len(), Ordering::Release);
    }

    /// The last message that is in the spool for a slot.
    pub(crate) fn last_spooled(&self, page: &Arc<Page>, block: Block) -> Option<Arc<Operation>> {
        let queue = self.queue();
        let is_it = |operation: &&Arc<Operation>| {
            operation.spool_bytes().is_some()
                && Arc::ptr_eq(&operation.page, page)
                && operation.block == block
        };
        queue.operations.iter().filter(is_it).max_by_key(|operation| operation.depth()).cloned()
    }

    /// Messages whose end wakes somebody.
    pub(crate) fn watched(&self) -> Vec<Arc<Operation>> {
        self.queue().operations.iter().filter(|operation| operation.is_watched()).cloned().collect()
    }

    /// How many messages are in the spool.
    pub(crate) fn spooled(&self) -> usize {
        self.queue().operations.iter().filter(|operation| operation.spool_bytes().is_some()).count()
    }

    /// The message whose turn it is.
    fn next(&self) -> Option<Arc<Operation>> {
        let mut queue = self.queue();
        let turn = queue.next % queue.operations.len().max(1);
        queue.next = turn + 1;
        queue.operations.get(turn).cloned()
    }

    /// Takes up to `steps` steps, each of another message. No lock is held meanwhile.
    fn go(&self, machine: &Machine, steps: usize) {
        if self.going.swap(true, Ordering::Acquire) {
            return; // another thread of this rank is at it
        }
        let mut any_ended = false;
        for _ in 0..steps {
            let Some(operation) = self.next() else { break };
            if operation.run(machine, &self.rings, 0) {
                self.over(&operation);
                any_ended = true;
            }
        }
        self.going.store(false, Ordering::Release);
        if any_ended {
            machine.stir();
        }
    }

    /// A message has ended.
    fn over(&self, operation: &Arc<Operation>) {
        self.forget(operation);
        self.spool.give_back(operation);
    }

    /// Moves a message on that the calling thread waits for, while it goes on without a long wait.
    pub(crate) fn run(&self, machine: &Machine, operation: &Arc<Operation>) {
        if operation.run(machine, &self.rings, machine.spins()) {
            self.over(operation);
        }
    }

    /// Moves every message on by one step.
    pub(crate) fn advance_all(&self, machine: &Machine) {
        self.go(machine, self.count.load(Ordering::Acquire));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for Pump {
    fn advance(&self, machine: &Machine) {
        let count = self.count.load(Ordering::Acquire);
        if count > 0 {
            self.go(machine, count.min(ONE_GO));
        }
    }

    fn has_work(&self) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let all: Vec<Arc<Operation>> = self.queue().operations.clone();
        all.iter().any(|operation| operation.can_step())
    }

    fn leave(&self, machine: &Machine) -> Result<()> {
        let owed = self.pay(machine);
        self.rings.drain(machine);
        owed
    }
}

impl Pump {
    /// Waits until the messages for whose end nobody waits have gone, or cannot go.
    fn pay(&self, machine: &Machine) -> Result<()> {
        let call = || "leave(): messages that were not taken".to_string();
        let owed = Arc::new(Owed { queue: self.queue.clone(), peers: Mutex::default() });
        loop {
            machine.progress();
            let left: Vec<Arc<Operation>> = owed.sends();
            let is_gone = |peer: Rank| machine.board().seat(peer).stage() >= Stage::Leaving;
            let vain = |operation: &Arc<Operation>| {
                operation.is_unmatched_send() && is_gone(operation.page.peer) && !operation.can_step()
            };
            if left.iter().all(vain) {
                let Some(first) = left.first() else { return Ok(()) };
                let (peer, slot) = (first.page.peer, first.page.slot(first.block));
                left.iter().for_each(|operation| self.remove(machine, operation));
                return Err(machine.fault(Cause::Untaken { messages: left.len(), peer, slot }, call));
            }
            let peer = left.iter().find(|operation| !vain(operation)).map(|operation| operation.page.peer);
            *owed.peers.lock().unwrap_or_else(PoisonError::into_inner) = peer;
            match machine.wait(&Condition::Event(owed.clone()), None, &call) {
                Err(error) if !matches!(error.cause(), Cause::PeerLeft { .. }) => return Err(error),
                _ => {}
            }
        }
    }
}

/// What a rank that leaves still owes.
#[derive(Debug)]
struct Owed {
    queue: Arc<Mutex<Queue>>,
    /// A peer that can still take something.
    peers: Mutex<Option<Rank>>,
}

impl Owed {
    /// Messages for whose end nobody waits.
    fn sends(&self) -> Vec<Arc<Operation>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.operations.iter().filter(|operation| operation.is_left_alone()).cloned().collect()
    }
}

impl Event for Owed {
    fn happened(&self) -> bool {
        let sends = self.sends();
        sends.is_empty() || sends.iter().any(|operation| operation.can_step())
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        let peer = *self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peer.map(|peer| (peer, Stage::Leaving))
    }
}
