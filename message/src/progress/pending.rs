//! The messages of a rank that did not end at once: those that may take a step, and those in the spool that stand
//! behind another of their slot, which nobody needs to look at before that has gone.

use crate::progress::operation::MessageOp;
use crate::slot::bank::{SlotBank, SlotIndex};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A slot of a bank, by the bank's address: what stands there keeps it.
type SlotKey = (usize, SlotIndex);

#[derive(Debug, Default)]
pub(crate) struct PendingOps {
    /// All, in the order in which they came.
    all: BTreeMap<u64, Arc<MessageOp>>,
    /// How many there ever were.
    came: u64,
    /// Those that may step.
    first: Vec<Arc<MessageOp>>,
    /// Whose turn it is.
    next: usize,
    /// Those behind others, by slot.
    behind: HashMap<SlotKey, VecDeque<Arc<MessageOp>>>,
}

impl PendingOps {
    /// Takes a message in, unless it is in already.
    pub(crate) fn add(&mut self, operation: &Arc<MessageOp>) {
        if operation.ticket.load(Relaxed) != 0 {
            return;
        }
        self.came += 1;
        operation.ticket.store(self.came, Relaxed);
        self.all.insert(self.came, operation.clone());
        if operation.is_behind() {
            self.behind.entry(place(operation)).or_default().push_back(operation.clone());
        } else {
            self.first.push(operation.clone());
        }
    }

    /// Takes a message out. If it is over, the one behind it may step from now on. Whether it was in.
    pub(crate) fn remove(&mut self, operation: &Arc<MessageOp>) -> bool {
        let ticket = operation.ticket.swap(0, Relaxed);
        let was_in = self.all.remove(&ticket).is_some();
        let known = self.first.len();
        self.first.retain(|other| !Arc::ptr_eq(other, operation));
        if let Some(others) = self.behind.get_mut(&place(operation)) {
            if known == self.first.len() {
                others.retain(|other| !Arc::ptr_eq(other, operation));
            }
            let next = others.pop_front_if(|next| !next.is_behind());
            self.first.extend(next);
            if others.is_empty() {
                self.behind.remove(&place(operation));
            }
        }
        was_in
    }

    /// How many may step.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// The one whose turn it is.
    pub(crate) fn next(&mut self) -> Option<Arc<MessageOp>> {
        let turn = self.next % self.first.len().max(1);
        self.next = turn + 1;
        self.first.get(turn).cloned()
    }

    /// Those of some kind that may step. If there are none, there are none behind them.
    pub(crate) fn first_of(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.first.iter().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// All of some kind, in the order in which they came.
    pub(crate) fn all(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.all.values().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// The last message that is in the spool for a slot.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, block: SlotIndex) -> Option<Arc<MessageOp>> {
        let is_buffered = |operation: &&Arc<MessageOp>| operation.is_buffered();
        let here = (Arc::as_ptr(bank) as usize, block);
        let last = self.behind.get(&here).and_then(|others| others.iter().rev().find(is_buffered));
        let first = || self.first.iter().filter(is_buffered).find(|operation| place(operation) == here);
        last.or_else(first).cloned()
    }
}

fn place(operation: &MessageOp) -> SlotKey {
    (Arc::as_ptr(&operation.bank) as usize, operation.block)
}
