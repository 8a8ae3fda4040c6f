//! What a rank that leaves still owes: messages that lie in its spool, and sends whose requests were dropped. It
//! promises them to their receivers before it says that it is leaving, and then waits until they were taken. So a
//! receive that waits for one of them waits on, and any other ends at once.

use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use crate::progress::pending::PendingOps;
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};
use tasuki_core::fabric::Refused;

/// Promises every receiver what is unfinished to it.
pub(crate) fn promise(progress: &ProgressEngine, worker: &Worker) {
    let unfinished = progress.detached();
    let (mut places, mut promises) = (HashMap::new(), Vec::<(&SlotBank, SlotIndex, u32)>::new());
    for operation in &unfinished {
        let (bank, block): (&SlotBank, SlotIndex) = (&operation.bank, operation.block);
        let place = *places.entry((ptr::from_ref(bank), block)).or_insert(promises.len());
        if place == promises.len() {
            promises.push((bank, block, bank.state(block).sent.load(Relaxed)));
        }
        promises[place].2 = promises[place].2.wrapping_add(1);
    }
    for (bank, block, last) in promises {
        write(worker, bank, block, encoding::promise(last));
    }
    for pair in pairs(&unfinished) {
        write(worker, &pair, ANY, encoding::promise_of_any(true));
    }
}

/// Waits until what is unfinished has gone, or cannot go.
pub(crate) fn finalize(progress: &ProgressEngine, worker: &Worker) -> Result<()> {
    let call = || "leave(): messages that were not taken".to_string();
    let unfinished = Arc::new(UnfinishedSends { queue: progress.queue.clone(), peer: Mutex::default() });
    let mut creditors = pairs(&progress.first_detached());
    loop {
        worker.progress();
        let left = progress.first_detached();
        let still = pairs(&left);
        if still.len() < creditors.len() {
            worker.settle(&call)?; // nothing that was promised arrives after the word that it was all
        }
        for pair in creditors.iter().filter(|pair| !is_among(&still, pair)) {
            write(worker, pair, ANY, encoding::promise_of_any(false));
        }
        creditors = still;
        let Some(other) = left.iter().find(|operation| !operation.cannot_complete(worker)) else {
            let left = progress.detached();
            return if left.is_empty() { Ok(()) } else { Err(progress.give_up(worker, &left, call)) };
        };
        *unfinished.peer.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((other.bank.peer, other.fails_from()));
        match worker.wait(&Condition::Event(unfinished.clone()), None, &call) {
            Err(error) if !matches!(error.cause(), Cause::PeerLeft { .. }) => return Err(error),
            _ => {}
        }
    }
}

/// A promise that cannot be written is one to a rank that does not wait for it.
fn write(worker: &Worker, bank: &SlotBank, block: SlotIndex, promise: u64) {
    while let Err(Refused::Again | Refused::Relay) = bank.promise(block, promise) {
        if worker.relax("leave()").is_err() {
            return;
        }
    }
}

/// The first banks of the pairs that those messages are of.
fn pairs(operations: &[Arc<MessageOp>]) -> Vec<Arc<SlotBank>> {
    let mut pairs: Vec<Arc<SlotBank>> = Vec::new();
    for pair in operations.iter().map(|operation| operation.bank.pair()) {
        if !is_among(&pairs, pair) {
            pairs.push(pair.clone());
        }
    }
    pairs
}

fn is_among(pairs: &[Arc<SlotBank>], pair: &Arc<SlotBank>) -> bool {
    pairs.iter().any(|other| Arc::ptr_eq(other, pair))
}

/// That something of it can go.
#[derive(Debug)]
struct UnfinishedSends {
    queue: Arc<Mutex<PendingOps>>,
    /// A peer that can still take something, and at which stage it cannot any more.
    peer: Mutex<Option<(Rank, Stage)>>,
}

impl WaitEvent for UnfinishedSends {
    fn happened(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left = queue.first_of(MessageOp::is_detached);
        drop(queue); // not under the lock: looking makes calls of the fabric
        left.is_empty() || left.iter().any(|operation| operation.can_step())
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
