//! What a rank that leaves still owes: messages that lie in its spool, and sends whose requests were dropped. It
//! promises them to their receivers before it says that it is leaving, and then waits until they were taken. So a
//! receive that waits for one of them waits on, and any other ends at once.

use super::operation::Operation;
use super::page::{ANY, Block, Page};
use super::pump::Pump;
use super::queue::Queue;
use super::words;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};
use tasuki_core::fabric::Refused;

/// Promises every receiver what is owed to it.
pub(super) fn promise(pump: &Pump, machine: &Machine) {
    let owed = pump.left_alone();
    let (mut places, mut promises) = (HashMap::new(), Vec::<(&Page, Block, u32)>::new());
    for operation in &owed {
        let (page, block): (&Page, Block) = (&operation.page, operation.block);
        let place = *places.entry((ptr::from_ref(page), block)).or_insert(promises.len());
        if place == promises.len() {
            promises.push((page, block, page.state(block).sent.load(Relaxed)));
        }
        promises[place].2 = promises[place].2.wrapping_add(1);
    }
    for (page, block, last) in promises {
        write(machine, page, block, words::promise(last));
    }
    for pair in pairs(&owed) {
        write(machine, &pair, ANY, words::promise_of_any(true));
    }
}

/// Waits until what is owed has gone, or cannot go.
pub(super) fn pay(pump: &Pump, machine: &Machine) -> Result<()> {
    let call = || "leave(): messages that were not taken".to_string();
    let owed = Arc::new(Owed { queue: pump.queue.clone(), peer: Mutex::default() });
    let mut creditors = pairs(&pump.first_left_alone());
    loop {
        machine.progress();
        let left = pump.first_left_alone();
        let still = pairs(&left);
        if still.len() < creditors.len() {
            machine.settle(&call)?; // nothing that was promised arrives after the word that it was all
        }
        for pair in creditors.iter().filter(|pair| !is_among(&still, pair)) {
            write(machine, pair, ANY, words::promise_of_any(false));
        }
        creditors = still;
        let Some(other) = left.iter().find(|operation| !operation.is_vain(machine)) else {
            let left = pump.left_alone();
            return if left.is_empty() { Ok(()) } else { Err(pump.give_up(machine, &left, call)) };
        };
        *owed.peer.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((other.page.peer, other.vain_from()));
        match machine.wait(&Condition::Event(owed.clone()), None, &call) {
            Err(error) if !matches!(error.cause(), Cause::PeerLeft { .. }) => return Err(error),
            _ => {}
        }
    }
}

/// A promise that cannot be written is one to a rank that does not wait for it.
fn write(machine: &Machine, page: &Page, block: Block, promise: u64) {
    while let Err(Refused::Again | Refused::Relay) = page.promise(block, promise) {
        if machine.relax("leave()").is_err() {
            return;
        }
    }
}

/// The first pages of the pairs that those messages are of.
fn pairs(operations: &[Arc<Operation>]) -> Vec<Arc<Page>> {
    let mut pairs: Vec<Arc<Page>> = Vec::new();
    for pair in operations.iter().map(|operation| operation.page.pair()) {
        if !is_among(&pairs, pair) {
            pairs.push(pair.clone());
        }
    }
    pairs
}

fn is_among(pairs: &[Arc<Page>], pair: &Arc<Page>) -> bool {
    pairs.iter().any(|other| Arc::ptr_eq(other, pair))
}

/// That something of it can go.
#[derive(Debug)]
struct Owed {
    queue: Arc<Mutex<Queue>>,
    /// A peer that can still take something, and at which stage it cannot any more.
    peer: Mutex<Option<(Rank, Stage)>>,
}

impl Event for Owed {
    fn happened(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left = queue.first_of(Operation::is_left_alone);
        drop(queue); // not under the lock: looking makes calls of the fabric
        left.is_empty() || left.iter().any(|operation| operation.can_step())
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
