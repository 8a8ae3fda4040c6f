//! The messages of a rank that did not end at once: those that may take a step, and those in the spool that stand
//! behind another of their slot, which nobody needs to look at before that has gone.

use super::operation::Operation;
use super::page::{Block, Page};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A slot of a page, by the page's address: what stands there keeps it.
type Place = (usize, Block);

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// All, in the order in which they came.
    all: BTreeMap<u64, Arc<Operation>>,
    /// How many there ever were.
    came: u64,
    /// Those that may step.
    first: Vec<Arc<Operation>>,
    /// Whose turn it is.
    next: usize,
    /// Those behind others, by slot.
    behind: HashMap<Place, VecDeque<Arc<Operation>>>,
}

impl Queue {
    /// Takes a message in, unless it is in already.
    pub(super) fn add(&mut self, operation: &Arc<Operation>) {
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
    pub(super) fn remove(&mut self, operation: &Arc<Operation>) -> bool {
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
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }

    /// The one whose turn it is.
    pub(super) fn next(&mut self) -> Option<Arc<Operation>> {
        let turn = self.next % self.first.len().max(1);
        self.next = turn + 1;
        self.first.get(turn).cloned()
    }

    /// Those of some kind that may step. If there are none, there are none behind them.
    pub(super) fn first_of(&self, is_it: impl Fn(&Operation) -> bool) -> Vec<Arc<Operation>> {
        self.first.iter().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// All of some kind, in the order in which they came.
    pub(super) fn all(&self, is_it: impl Fn(&Operation) -> bool) -> Vec<Arc<Operation>> {
        self.all.values().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// The last message that is in the spool for a slot.
    pub(super) fn last_spooled(&self, page: &Arc<Page>, block: Block) -> Option<Arc<Operation>> {
        let is_spooled = |operation: &&Arc<Operation>| operation.is_spooled();
        let here = (Arc::as_ptr(page) as usize, block);
        let last = self.behind.get(&here).and_then(|others| others.iter().rev().find(is_spooled));
        let first = || self.first.iter().filter(is_spooled).find(|operation| place(operation) == here);
        last.or_else(first).cloned()
    }
}

fn place(operation: &Operation) -> Place {
    (Arc::as_ptr(&operation.page) as usize, operation.block)
}
