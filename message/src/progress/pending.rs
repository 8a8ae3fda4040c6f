//! The queue of the unfinished messages of a rank: those that can step, and buffered ones that wait for an earlier
//! message of their slot and need no attention before it ends.

use crate::progress::operation::MessageOp;
use crate::slot::bank::{SlotBank, SlotIndex};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A slot of a bank. Holds the bank's address; the queued operations keep the bank alive.
type SlotKey = (usize, SlotIndex);

#[derive(Debug, Default)]
pub(crate) struct PendingOps {
    /// All operations by ticket, in the order in which they were added.
    all: BTreeMap<u64, Arc<MessageOp>>,
    /// How many were ever added.
    added: u64,
    /// Those without a predecessor.
    first: Vec<Arc<MessageOp>>,
    /// Index in `first` of the next one to step.
    next: usize,
    /// Those with a predecessor, by slot.
    blocked: HashMap<SlotKey, VecDeque<Arc<MessageOp>>>,
}

impl PendingOps {
    /// Adds an operation, unless it is already there.
    pub(crate) fn add(&mut self, operation: &Arc<MessageOp>) {
        if operation.ticket.load(Relaxed) != 0 {
            return;
        }
        self.added += 1;
        operation.ticket.store(self.added, Relaxed);
        self.all.insert(self.added, operation.clone());
        if operation.has_predecessor() {
            self.blocked.entry(place(operation)).or_default().push_back(operation.clone());
        } else {
            self.first.push(operation.clone());
        }
    }

    /// Removes an operation. If it has ended, its successor can step from now on. Returns true if it was there.
    pub(crate) fn remove(&mut self, operation: &Arc<MessageOp>) -> bool {
        let ticket = operation.ticket.swap(0, Relaxed);
        let was_in = self.all.remove(&ticket).is_some();
        let before = self.first.len();
        self.first.retain(|other| !Arc::ptr_eq(other, operation));
        if let Some(others) = self.blocked.get_mut(&place(operation)) {
            if before == self.first.len() {
                others.retain(|other| !Arc::ptr_eq(other, operation));
            }
            let next = others.pop_front_if(|next| !next.has_predecessor());
            self.first.extend(next);
            if others.is_empty() {
                self.blocked.remove(&place(operation));
            }
        }
        was_in
    }

    /// Returns how many can step.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns the next one to step, in turn.
    pub(crate) fn next(&mut self) -> Option<Arc<MessageOp>> {
        let turn = self.next % self.first.len().max(1);
        self.next = turn + 1;
        self.first.get(turn).cloned()
    }

    /// Returns those of some kind that can step. If there are none, no blocked ones exist either.
    pub(crate) fn first_of(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.first.iter().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// Returns all of some kind, in the order in which they were added.
    pub(crate) fn all(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.all.values().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// Returns the last buffered message of a slot.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, index: SlotIndex) -> Option<Arc<MessageOp>> {
        let is_buffered = |operation: &&Arc<MessageOp>| operation.is_buffered();
        let here = (Arc::as_ptr(bank) as usize, index);
        let last = self.blocked.get(&here).and_then(|others| others.iter().rev().find(is_buffered));
        let first = || self.first.iter().filter(is_buffered).find(|operation| place(operation) == here);
        last.or_else(first).cloned()
    }
}

fn place(operation: &MessageOp) -> SlotKey {
    (Arc::as_ptr(&operation.bank) as usize, operation.index)
}
