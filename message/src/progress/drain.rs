//! Messages that a leaving rank has not delivered: buffered ones, and sends whose requests were dropped. Before the
//! rank announces that it is leaving, it promises them to their receivers; then it waits until they were received. So
//! a receive that waits for one of them keeps waiting, and any other receive from this rank ends at once.

use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use crate::progress::pending::PendingOps;
use crate::slot::bank::{ANY, SlotBank, SlotIndex};
use crate::slot::encoding;
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::sync::Ordering::Relaxed;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Condition, Deadline, WaitEvent, Worker};
use tasuki_core::fabric::Refused;
use tasuki_core::node::node_state::RankStage;

/// Promises every receiver the messages that it has not received yet.
pub(crate) fn promise(progress: &ProgressEngine, worker: &Worker) {
    let unfinished = progress.detached();
    let (mut places, mut promises) = (HashMap::new(), Vec::<(&SlotBank, SlotIndex, u32)>::new());
    for operation in &unfinished {
        let (bank, index): (&SlotBank, SlotIndex) = (&operation.bank, operation.index);
        let place = *places.entry((ptr::from_ref(bank), index)).or_insert(promises.len());
        if place == promises.len() {
            promises.push((bank, index, bank.state(index).sent.load(Relaxed)));
        }
        promises[place].2 = promises[place].2.wrapping_add(1);
    }
    for (bank, index, last) in promises {
        write_promise(worker, bank, index, encoding::promise(last));
    }
    for first_bank in first_banks(&unfinished) {
        write_promise(worker, &first_bank, ANY, encoding::promise_of_any(true));
    }
}

/// Waits until all unfinished sends are done or cannot complete.
pub(crate) fn finalize(progress: &ProgressEngine, worker: &Worker) -> Result<()> {
    let call = || "leave()".to_string();
    let unfinished = Arc::new(UnfinishedSends { queue: progress.queue.clone(), peer: Mutex::default() });
    let mut receivers = first_banks(&progress.first_detached());
    loop {
        worker.progress();
        let left = progress.first_detached();
        let remaining = first_banks(&left);
        if remaining.len() < receivers.len() {
            worker.settle(&call)?; // no promised message may arrive after the end of the promise
        }
        for first_bank in receivers.iter().filter(|first_bank| !is_among(&remaining, first_bank)) {
            write_promise(worker, first_bank, ANY, encoding::promise_of_any(false));
        }
        receivers = remaining;
        let Some(other) = left.iter().find(|operation| !operation.cannot_complete(worker)) else {
            let left = progress.detached();
            return if left.is_empty() { Ok(()) } else { Err(progress.give_up(worker, &left, call)) };
        };
        *unfinished.peer.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((other.bank.peer, other.impossible_from()));
        match worker.wait(&Condition::Event(unfinished.clone()), Deadline::NEVER, &call) {
            Err(error) if !matches!(error.cause(), Cause::PeerLeft { .. }) => return Err(error),
            _ => {}
        }
    }
}

/// Writes a promise. If it cannot be written, the peer no longer waits for it.
fn write_promise(worker: &Worker, bank: &SlotBank, index: SlotIndex, promise: u64) {
    while let Err(Refused::Again | Refused::Relay) = bank.promise(index, promise) {
        if worker.relax("leave()").is_err() {
            return;
        }
    }
}

/// Returns the first bank of each pair that these messages belong to.
fn first_banks(operations: &[Arc<MessageOp>]) -> Vec<Arc<SlotBank>> {
    let mut first_banks: Vec<Arc<SlotBank>> = Vec::new();
    for first_bank in operations.iter().map(|operation| operation.bank.first_bank()) {
        if !is_among(&first_banks, first_bank) {
            first_banks.push(first_bank.clone());
        }
    }
    first_banks
}

fn is_among(first_banks: &[Arc<SlotBank>], first_bank: &Arc<SlotBank>) -> bool {
    first_banks.iter().any(|other| Arc::ptr_eq(other, first_bank))
}

/// Waits until one of the unfinished sends can step.
#[derive(Debug)]
struct UnfinishedSends {
    queue: Arc<Mutex<PendingOps>>,
    /// A peer that can still receive, and the stage from which it no longer can.
    peer: Mutex<Option<(Rank, RankStage)>>,
}

impl WaitEvent for UnfinishedSends {
    fn happened(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let left = queue.first_of(MessageOp::is_detached);
        drop(queue); // not under the lock: `can_step` calls the fabric
        left.is_empty() || left.iter().any(|operation| operation.can_step())
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
