//! Late matches: messages that met a receive just when it was withdrawn. Such a message stays in its slot's line, or in
//! its sender's ring, for the next receive on that slot. Its sender looks for no other receive. A receive of any slot
//! may take the message, too, but has to search for it. This file records the slots in which to search.

use crate::protocol::kept::{KeptMessages, KeptSearch};
use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data};
use crate::slot::state::SlotState;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::sync::{AtomicUsize, Ordering};
use tasuki_core::base::{Rank, ValueKind};
use tasuki_core::engine::WaitEvent;
use tasuki_core::node::node_state::RankStage;

type Slot = (Arc<SlotBank>, SlotIndex);
/// Slots by sender and slot number.
type Slots = BTreeMap<(Rank, u32), Slot>;

/// The slots of a context in which a late match may lie.
#[derive(Debug, Default)]
pub(crate) struct LateMatches {
    /// The number of registered slots, for readers without the lock.
    count: AtomicUsize,
    slots: Mutex<Slots>,
    /// The messages that have left their slot, because they met a receive that was dropped.
    pub(crate) kept: KeptMessages,
}

/// A late match that was found. The receive that holds this value has borrowed its slot.
#[derive(Debug)]
pub(crate) struct LateMatch {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
}

impl LateMatches {
    /// Frees the slot of a receive that ended without its message. The message may lie in the slot, or may still
    /// arrive. If the lines of the slot belong to the transfer of a kept message, nobody may look for a late match
    /// there.
    #[cold]
    pub(crate) fn suspect(&self, bank: &Arc<SlotBank>, index: SlotIndex) {
        if self.kept.is_pending_on(bank, index) {
            return recv_state(bank, index).keep();
        }
        self.register(bank, index, SlotState::suspect);
    }

    /// Registers a slot and makes its state suspect.
    fn register(&self, bank: &Arc<SlotBank>, index: SlotIndex, suspect: fn(&SlotState)) {
        let mut slots = self.slots();
        slots.insert((bank.member, bank.slot(index)), (bank.clone(), index));
        self.count.store(slots.len(), Ordering::Release);
        suspect(recv_state(bank, index));
    }

    /// Makes the slots of dropped receives suspect whose messages did not come. From now on a receive of any slot finds
    /// a message that meets such a receive after all.
    fn settle_kept(&self, member: Rank) {
        for (bank, index) in self.kept.remove_ended(member) {
            // Another kept message may still be on its way through the lines of the slot. Then the slot stays kept.
            if !self.kept.is_pending_on(&bank, index) {
                self.register(&bank, index, SlotState::suspect_if_kept);
            }
        }
    }

    /// Returns the closed banks of that sender that have suspect slots. The caller must open a bank to inspect its
    /// slots.
    pub(crate) fn closed_banks(&self, member: Rank) -> Vec<Arc<SlotBank>> {
        self.settle_kept(member);
        let mut banks: Vec<Arc<SlotBank>> = self.listed(member).into_iter().map(|(bank, _)| bank).collect();
        banks.retain(|bank| !bank.bank_state().is_open());
        banks.dedup_by(|one, other| Arc::ptr_eq(one, other));
        banks
    }

    /// Returns true if there is a late match of that sender.
    pub(crate) fn any_from(&self, member: Rank) -> bool {
        self.settle_kept(member);
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

    /// Returns the registered slots of that sender. Callers inspect the slots without the lock, because an inspection
    /// calls the fabric.
    fn listed(&self, member: Rank) -> Vec<Slot> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut slots = self.slots();
        // Drop slots that are no longer suspect, because a receive which names the slot has used it.
        slots.retain(|_, (bank, index)| recv_state(bank, *index).may_hold_late_match());
        self.count.store(slots.len(), Ordering::Release);
        slots.range((member, 0)..=(member, u32::MAX)).map(|(_, slot)| slot.clone()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LateMatch {
    /// Returns true if the message is in the slot. The slot is borrowed, so no other receive can take the message. A
    /// message that did not fit in the withdrawn receive is not in the slot, and its sender has got an error.
    fn is_whole(&self) -> bool {
        match encoding::read_data(self.bank.data(self.index), self.number) {
            Data::None => false,
            Data::Unfit { .. } => {
                self.bank.state(self.index).received.store(self.number, Ordering::Relaxed);
                false
            }
            _ => true,
        }
    }
}

impl Drop for LateMatch {
    /// Frees the slot. If its message was not taken, the slot becomes suspect again.
    fn drop(&mut self) {
        let was_taken = self.bank.next_received(self.index) != self.number;
        recv_state(&self.bank, self.index).give_back(was_taken);
    }
}

/// The search of a receive for a message that met another receive: a late match, if the receive is of any slot, or a
/// kept message. When the search finds one and the receive is posted, the receive first withdraws its own posting. If a
/// sender has claimed the posting before, the receive takes that sender's message instead.
#[derive(Debug)]
pub(crate) struct LateMatchSearch {
    late_matches: Arc<LateMatches>,
    /// The slot that the receive names; `None`: any slot.
    slot: Option<u32>,
    found: Option<LateMatch>,
    is_redirected: bool,
}

impl LateMatchSearch {
    pub(crate) fn new(late_matches: &Arc<LateMatches>, slot: Option<u32>) -> LateMatchSearch {
        LateMatchSearch { late_matches: late_matches.clone(), slot, found: None, is_redirected: false }
    }

    /// Returns the slot that the receive names; `None`: any slot.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.slot
    }

    /// Returns the kept messages.
    pub(crate) fn kept(&self) -> &KeptMessages {
        &self.late_matches.kept
    }

    /// Returns true if there is a kept message for the receive.
    pub(crate) fn has_kept(&self, member: Rank) -> bool {
        self.kept().has_whole(member, self.slot)
    }

    /// Takes a kept message for a receive of a type and so many bytes.
    pub(crate) fn take_kept(&self, member: Rank, receive: (ValueKind, u64)) -> KeptSearch {
        self.late_matches.settle_kept(member);
        self.kept().take(member, self.slot, receive)
    }

    /// Returns true if the receive must not be posted yet, because the lines of its slot are in use, or an earlier
    /// message of the slot is on its way.
    pub(crate) fn is_blocked(&self, member: Rank) -> bool {
        self.kept().is_blocked(member, self.slot)
    }

    /// Returns true if the receive would find a late match or a kept message.
    pub(crate) fn can_find(&self, member: Rank) -> bool {
        self.has_one() || self.has_kept(member) || self.slot.is_none() && self.late_matches.any_from(member)
    }

    /// Takes a late match of that sender for a receive of any slot, unless the search has found one before. Returns
    /// true if the search has a late match.
    pub(crate) fn find(&mut self, member: Rank) -> bool {
        if self.found.is_none() && self.slot.is_none() {
            self.late_matches.settle_kept(member);
            self.found = self.late_matches.take(member);
        }
        self.has_one()
    }

    pub(crate) fn has_one(&self) -> bool {
        self.found.is_some()
    }

    /// Redirects the receive, which was withdrawn, to the late match. Returns the number of the late match; `None` if
    /// the search has found none.
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

impl Drop for LateMatchSearch {
    /// Gives the slot of the late match back. If its receive was dropped, the message is kept, and the next receive on
    /// the slot must look for it.
    fn drop(&mut self) {
        let Some(found) = self.found.take() else { return };
        let (bank, index) = (found.bank.clone(), found.index);
        drop(found);
        if self.kept().holds(bank.member, bank.slot(index)) {
            recv_state(&bank, index).mark_kept();
        }
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
        None // another receive of this rank gives the slot back, whatever the outcome of that receive
    }
}
