//! Messages that met a receive which was withdrawn in that moment. Each lies in its slot's line, or in its sender's
//! ring, for whoever receives on that slot next; it has met its receive and looks for no other. So a receive of any
//! slot, for which it is as good, has to look for it: here it learns where.

use crate::slot::bank::{SlotBank, SlotIndex};
use crate::slot::encoding::{self, Data};
use crate::slot::state::SlotState;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Rank;
use tasuki_core::engine::WaitEvent;
use tasuki_core::engine::node_state::Stage;

type Slot = (Arc<SlotBank>, SlotIndex);
/// By sender and number.
type Slots = BTreeMap<(Rank, u32), Slot>;

/// The slots of a context where a late_match may lie.
#[derive(Debug, Default)]
pub(crate) struct LateMatches {
    /// How many, for who looks without the lock.
    count: AtomicUsize,
    slots: Mutex<Slots>,
}

/// A message that was found; its slot is lent to who has this.
#[derive(Debug)]
pub(crate) struct LateMatch {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    pub(crate) number: u32,
}

impl LateMatches {
    /// A receive has ended without its message: frees its slot, where the message may lie, or come still.
    #[cold]
    pub(crate) fn suspect(&self, bank: &Arc<SlotBank>, index: SlotIndex) {
        let mut slots = self.slots();
        slots.insert((bank.member, bank.slot(index)), (bank.clone(), index));
        self.count.store(slots.len(), Ordering::Release);
        bank.state(index).receiving.suspect();
    }

    /// Pages of that sender's with suspect slots that were let go, and may have to be opened to see what lies there.
    pub(crate) fn closed_banks(&self, member: Rank) -> Vec<Arc<SlotBank>> {
        let mut banks: Vec<Arc<SlotBank>> = self.listed(member).into_iter().map(|(bank, _)| bank).collect();
        banks.retain(|bank| !bank.bank_state().is_open());
        banks.dedup_by(|one, other| Arc::ptr_eq(one, other));
        banks
    }

    /// Whether a late_match of that sender's is there.
    pub(crate) fn any_from(&self, member: Rank) -> bool {
        self.of(member).iter().any(|(bank, index)| is_late_match(bank, *index))
    }

    /// Takes a late_match of that sender's.
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

    /// The suspect slots of that sender, as far as their banks are open.
    fn of(&self, member: Rank) -> Vec<Slot> {
        let mut slots = self.listed(member);
        slots.retain(|(bank, index)| recv_state(bank, *index).is_suspect());
        slots
    }

    /// What is listed of that sender. No lock is held while it is looked at: that makes calls of the fabric.
    fn listed(&self, member: Rank) -> Vec<Slot> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut slots = self.slots();
        // A receive that named the slot has been there since.
        slots.retain(|_, (bank, index)| recv_state(bank, *index).may_hold_late_match());
        self.count.store(slots.len(), Ordering::Release);
        slots.range((member, 0)..=(member, u32::MAX)).map(|(_, slot)| slot.clone()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LateMatch {
    /// Whether it is there, now that nobody else can take it. Of one that did not fit in the receive that was withdrawn
    /// nothing is there, and its sender knows.
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
    /// The slot is free again. What was not taken is still there.
    fn drop(&mut self) {
        let was_taken = self.bank.next_received(self.index) != self.number;
        recv_state(&self.bank, self.index).give_back(was_taken);
    }
}

/// What a receive of any slot has to find late_matches. One that has found one takes itself back first: whoever has claimed
/// it meanwhile is received.
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

    /// Whether [`LateMatchSearch::find`] would find one.
    pub(crate) fn can_find(&self, member: Rank) -> bool {
        self.has_one() || self.late_matches.any_from(member)
    }

    /// Takes a late_match of that sender's, if it has none yet. Whether it has one.
    pub(crate) fn find(&mut self, member: Rank) -> bool {
        if self.found.is_none() {
            self.found = self.late_matches.take(member);
        }
        self.has_one()
    }

    pub(crate) fn has_one(&self) -> bool {
        self.found.is_some()
    }

    /// Its receive was taken back, and is the late_match's now: of the message of that number. None: it has none.
    pub(crate) fn redirect(&mut self) -> Option<u32> {
        let number = self.found.as_ref()?.number;
        self.is_redirected = true;
        Some(number)
    }

    /// The late_match whose receive it is.
    pub(crate) fn redirected(&self) -> Option<&LateMatch> {
        self.found.as_ref().filter(|_| self.is_redirected)
    }
}

fn recv_state(bank: &SlotBank, index: SlotIndex) -> &SlotState {
    &bank.state(index).receiving
}

/// Whether something has come about a message that no receive waits for.
fn is_late_match(bank: &SlotBank, index: SlotIndex) -> bool {
    bank.has_data(index, bank.next_received(index))
}

/// That a slot which is lent to a receive of any is given back.
#[derive(Debug)]
pub(crate) struct SlotReleased {
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
}

impl WaitEvent for SlotReleased {
    fn happened(&self) -> bool {
        !recv_state(&self.bank, self.index).is_borrowed()
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        None // it is another receive of this rank's that gives it back, however that ends
    }
}
