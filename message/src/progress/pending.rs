//! The queue of the unfinished messages of a rank: those that can step, and buffered ones that wait for an earlier
//! message of their slot and need no attention before it ends.

use crate::progress::operation::MessageOp;
use crate::slot::bank::{SlotBank, SlotIndex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tasuki_core::base::sync::Ordering::Relaxed;

/// A slot of a bank. Holds the bank's address; the queued operations keep the bank alive.
type SlotKey = (usize, SlotIndex);

#[derive(Debug, Default)]
pub(crate) struct PendingOps {
    /// How many operations were ever added.
    added: u64,
    /// How many were ever removed.
    removed: u64,
    /// How often [`PendingOps::next_ready`] has looked at an operation.
    looks: u64,
    /// Those without a predecessor, each at its `place`. Since the last turn began, those before `next` were looked at.
    first: Vec<Arc<MessageOp>>,
    /// Index in `first` of the next one to look at.
    next: usize,
    /// The buffered ones among them, by slot.
    first_buffered: HashMap<SlotKey, Arc<MessageOp>>,
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
        if operation.has_predecessor() {
            self.blocked.entry(slot_key(operation)).or_default().push_back(operation.clone());
        } else {
            self.add_first(operation.clone());
        }
    }

    fn add_first(&mut self, operation: Arc<MessageOp>) {
        operation.place.store(self.first.len(), Relaxed);
        if operation.is_buffered() {
            self.first_buffered.insert(slot_key(&operation), operation.clone());
        }
        self.first.push(operation);
    }

    /// Removes an operation. If it has ended, its successor can step from now on. Returns true if it was there.
    pub(crate) fn remove(&mut self, operation: &Arc<MessageOp>) -> bool {
        let was_in = operation.ticket.swap(0, Relaxed) != 0;
        self.removed += u64::from(was_in);
        let was_first = was_in && self.remove_first(operation);
        if self.blocked.is_empty() {
            return was_in;
        }
        let key = slot_key(operation);
        if let Some(others) = self.blocked.get_mut(&key) {
            if was_in && !was_first {
                others.retain(|other| !Arc::ptr_eq(other, operation));
            }
            let next = others.pop_front_if(|next| !next.has_predecessor());
            if others.is_empty() {
                self.blocked.remove(&key);
            }
            next.into_iter().for_each(|next| self.add_first(next));
        }
        was_in
    }

    /// Removes an operation from `first` in constant time. Those that were not looked at in this turn stay behind
    /// `next`. Returns true if it was there.
    fn remove_first(&mut self, operation: &Arc<MessageOp>) -> bool {
        let mut place = operation.place.load(Relaxed);
        if !self.first.get(place).is_some_and(|other| Arc::ptr_eq(other, operation)) {
            return false;
        }
        if place < self.next {
            self.next -= 1;
            self.swap(place, self.next);
            place = self.next;
        }
        self.swap(place, self.first.len() - 1);
        self.first.pop();
        let key = slot_key(operation);
        if operation.is_buffered()
            && self.first_buffered.get(&key).is_some_and(|it| Arc::ptr_eq(it, operation))
        {
            self.first_buffered.remove(&key);
        }
        true
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.first.swap(one, other);
        self.first[one].place.store(one, Relaxed);
        self.first[other].place.store(other, Relaxed);
    }

    /// Returns how many can step.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns true if a message is buffered.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.first_buffered.is_empty() // those that follow others are behind these
    }

    /// Returns how many were ever removed.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// Returns how often [`PendingOps::next_ready`] has looked at an operation.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Returns the next one that is not quiet, in turn. Looks at `looks` at most, and counts them down.
    pub(crate) fn next_ready(
        &mut self,
        looks: &mut usize,
        is_quiet: impl Fn(&MessageOp) -> bool,
    ) -> Option<Arc<MessageOp>> {
        while *looks > 0 && !self.first.is_empty() {
            *looks -= 1;
            self.looks += 1;
            let turn = if self.next < self.first.len() { self.next } else { 0 };
            self.next = turn + 1;
            if !is_quiet(&self.first[turn]) {
                return Some(self.first[turn].clone());
            }
        }
        None
    }

    /// Returns the first one from `place` on that is not quiet, and sets `place` behind it. Between two calls none may
    /// be removed.
    pub(crate) fn find_ready(
        &self,
        place: &mut usize,
        is_quiet: impl Fn(&MessageOp) -> bool,
    ) -> Option<Arc<MessageOp>> {
        let rest = self.first.get(*place..)?;
        let found = rest.iter().position(|operation| !is_quiet(operation))?;
        *place += found + 1;
        Some(rest[found].clone())
    }

    /// Returns those of some kind that can step. If there are none, no blocked ones exist either.
    pub(crate) fn first_of(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        self.first.iter().filter(|operation| is_it(operation)).cloned().collect()
    }

    /// Returns true if there is one of some kind.
    pub(crate) fn any(&self, is_it: impl Fn(&Arc<MessageOp>) -> bool) -> bool {
        self.iter().any(is_it)
    }

    /// Returns all of some kind, in the order in which they were added.
    pub(crate) fn all(&self, is_it: impl Fn(&MessageOp) -> bool) -> Vec<Arc<MessageOp>> {
        let mut all: Vec<_> = self.iter().filter(|operation| is_it(operation)).cloned().collect();
        all.sort_by_key(|operation| operation.ticket.load(Relaxed));
        all
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<MessageOp>> {
        self.first.iter().chain(self.blocked.values().flatten())
    }

    /// Returns the last buffered message of a slot.
    pub(crate) fn last_buffered(&self, bank: &Arc<SlotBank>, index: SlotIndex) -> Option<Arc<MessageOp>> {
        let is_buffered = |operation: &&Arc<MessageOp>| operation.is_buffered();
        let here = (Arc::as_ptr(bank) as usize, index);
        let last = self.blocked.get(&here).and_then(|others| others.iter().rev().find(is_buffered));
        last.or_else(|| self.first_buffered.get(&here)).cloned()
    }
}

fn slot_key(operation: &MessageOp) -> SlotKey {
    (Arc::as_ptr(&operation.bank) as usize, operation.index)
}
