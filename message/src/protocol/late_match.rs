//! Late matches: messages that met a receive just when it was withdrawn. Such a message stays in its slot's line, or
//! in its sender's ring, for the next receive on that slot; it looks for no other receive. A receive of any slot
//! could take it too, so it has to search for it. This file tells it where.

use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data};
use crate::slot::state::SlotState;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Rank;
use tasuki_core::engine::WaitEvent;
use tasuki_core::engine::node_state::RankStage;

type Slot = (Arc<SlotBank>, SlotIndex);
/// Slots by sender and slot number.
type Slots = BTreeMap<(Rank, u32), Slot>;

/// The slots of a context in which a late match may lie.
#[derive(Debug, Default)]
pub(crate) struct LateMatches {
    /// How many there are, for readers without the lock.
    count: AtomicUsize,
    slots: Mutex<Slots>,
}

/// A late match that was found. Its slot is borrowed by the holder of this.
#[derive(Debug)]
pub(crate) struct LateMatch {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
}

impl LateMatches {
    /// Frees the slot of a receive that ended without its message. The message may lie in the slot, or may still
    /// arrive.
    #[cold]
    pub(crate) fn suspect(&self, bank: &Arc<SlotBank>, index: SlotIndex) {
        let mut slots = self.slots();
        slots.insert((bank.member, bank.slot(index)), (bank.clone(), index));
        self.count.store(slots.len(), Ordering::Release);
        bank.state(index).receiving.suspect();
    }

    /// Returns the closed banks of that sender that have suspect slots. They must be opened to see what lies there.
    pub(crate) fn closed_banks(&self, member: Rank) -> Vec<Arc<SlotBank>> {
        let mut banks: Vec<Arc<SlotBank>> = self.listed(member).into_iter().map(|(bank, _)| bank).collect();
        banks.retain(|bank| !bank.bank_state().is_open());
        banks.dedup_by(|one, other| Arc::ptr_eq(one, other));
        banks
    }

    /// Returns true if a late match of that sender is there.
    pub(crate) fn any_from(&self, member: Rank) -> bool {
        self.of(member).iter().any(|(bank, index)| is_late_match(bank, *index))
    }

    /// Takes a late match of that sender.
    pub(crate) fn take(&self, member: Rank) -> Option<LateMatch> {
        self.of(member).into_iter().find_map(|(bank, index)| {
            if !is_late_match(&bank, index) || !bank.state(index).receiving.borrow() {
                return None;
            }
            let number = bank.next_received(index);
            let late_match = LateMatch { bank, index, number };
            late_match.is_whole().then_some(late_match)
        })
    }

    /// Returns the suspect slots of that sender in open banks.
    fn of(&self, member: Rank) -> Vec<Slot> {
        let mut slots = self.listed(member);
        slots.retain(|(bank, index)| recv_state(bank, *index).is_suspect());
        slots
    }

    /// Returns the registered slots of that sender. They are inspected without the lock, since that calls the fabric.
    fn listed(&self, member: Rank) -> Vec<Slot> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut slots = self.slots();
        // Drop slots that a receive which names the slot has used since.
        slots.retain(|_, (bank, index)| recv_state(bank, *index).may_hold_late_match());
        self.count.store(slots.len(), Ordering::Release);
        slots.range((member, 0)..=(member, u32::MAX)).map(|(_, slot)| slot.clone()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LateMatch {
    /// Returns true if the message is there, now that no other receive can take it. A message that did not fit in the
    /// withdrawn receive is not there, and its sender knows.
    fn is_whole(&self) -> bool {
        match encoding::read_data(self.bank.data(self.index), self.number) {
            Data::None => false,
            Data::TooLong { .. } => {
                self.bank.state(self.index).received.store(self.number, Ordering::Relaxed);
                false
            }
            _ => true,
        }
    }
}

impl Drop for LateMatch {
    /// Frees the slot. A message that was not taken is still there.
    fn drop(&mut self) {
        let was_taken = self.bank.next_received(self.index) != self.number;
        recv_state(&self.bank, self.index).give_back(was_taken);
    }
}

/// The late-match search of a receive of any slot. When it finds one, the receive withdraws its own claim first: if a
/// sender has claimed it meanwhile, that sender's message is received instead.
#[derive(Debug)]
pub(crate) struct LateMatchSearch {
    late_matches: Arc<LateMatches>,
    found: Option<LateMatch>,
    is_redirected: bool,
}

impl LateMatchSearch {
    pub(crate) fn new(late_matches: &Arc<LateMatches>) -> LateMatchSearch {
        LateMatchSearch { late_matches: late_matches.clone(), found: None, is_redirected: false }
    }

    /// Returns true if [`LateMatchSearch::find`] would find one.
    pub(crate) fn can_find(&self, member: Rank) -> bool {
        self.has_one() || self.late_matches.any_from(member)
    }

    /// Takes a late match of that sender, unless one was found before. Returns true if there is one.
    pub(crate) fn find(&mut self, member: Rank) -> bool {
        if self.found.is_none() {
            self.found = self.late_matches.take(member);
        }
        self.has_one()
    }

    pub(crate) fn has_one(&self) -> bool {
        self.found.is_some()
    }

    /// The receive was withdrawn and is now for the late match. Returns that message's number; `None` if none was
    /// found.
    pub(crate) fn redirect(&mut self) -> Option<u32> {
        let number = self.found.as_ref()?.number;
        self.is_redirected = true;
        Some(number)
    }

    /// Returns the late match to which the receive was redirected.
    pub(crate) fn redirected(&self) -> Option<&LateMatch> {
        self.found.as_ref().filter(|_| self.is_redirected)
    }
}

fn recv_state(bank: &SlotBank, index: SlotIndex) -> &SlotState {
    &bank.state(index).receiving
}

/// Returns true if data have arrived about a message that no receive waits for.
fn is_late_match(bank: &SlotBank, index: SlotIndex) -> bool {
    bank.has_data(index, bank.next_received(index))
}

/// Waits until a slot that a receive of any slot has borrowed is given back.
#[derive(Debug)]
pub(crate) struct SlotReleased {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
}

impl WaitEvent for SlotReleased {
    fn happened(&self) -> bool {
        !recv_state(&self.bank, self.index).is_borrowed()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None // another receive of this rank gives it back, whatever its outcome
    }
}
