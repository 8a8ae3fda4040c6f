//! Messages that met a receive which was withdrawn in that moment. Each lies in its slot's line, or in its sender's
//! ring, for whoever receives on that slot next; it has met its receive and looks for no other. So a receive of any
//! slot, for which it is as good, has to look for it: here it learns where.

use super::mark::Mark;
use super::page::{Block, Page};
use super::words::{self, Data};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Rank;
use tasuki_core::engine::Event;
use tasuki_core::engine::board::Stage;

type Slot = (Arc<Page>, Block);
/// By sender and number.
type Slots = BTreeMap<(Rank, u32), Slot>;

/// The slots of a context where a stray may lie.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    /// How many, for who looks without the lock.
    count: AtomicUsize,
    slots: Mutex<Slots>,
}

/// A message that was found; its slot is lent to who has this.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(super) page: Arc<Page>,
    pub(super) block: Block,
    pub(super) number: u32,
}

impl Strays {
    /// A receive has ended without its message: frees its slot, where the message may lie, or come still.
    #[cold]
    pub(super) fn suspect(&self, page: &Arc<Page>, block: Block) {
        let mut slots = self.slots();
        slots.insert((page.member, page.slot(block)), (page.clone(), block));
        self.count.store(slots.len(), Ordering::Release);
        page.state(block).receiving.suspect();
    }

    /// Pages of that sender's with suspect slots that were let go, and may have to be opened to see what lies there.
    pub(super) fn closed_pages(&self, member: Rank) -> Vec<Arc<Page>> {
        let mut pages: Vec<Arc<Page>> = self.listed(member).into_iter().map(|(page, _)| page).collect();
        pages.retain(|page| !page.holding().is_open());
        pages.dedup_by(|one, other| Arc::ptr_eq(one, other));
        pages
    }

    /// Whether a stray of that sender's is there.
    pub(super) fn any_from(&self, member: Rank) -> bool {
        self.of(member).iter().any(|(page, block)| is_stray(page, *block))
    }

    /// Takes a stray of that sender's.
    pub(super) fn take(&self, member: Rank) -> Option<Stray> {
        self.of(member).into_iter().find_map(|(page, block)| {
            if !is_stray(&page, block) || !page.state(block).receiving.lend() {
                return None;
            }
            let number = page.next_received(block);
            let stray = Stray { page, block, number };
            stray.is_whole().then_some(stray)
        })
    }

    /// The suspect slots of that sender, as far as their pages are open.
    fn of(&self, member: Rank) -> Vec<Slot> {
        let mut slots = self.listed(member);
        slots.retain(|(page, block)| mark(page, *block).is_suspect());
        slots
    }

    /// What is listed of that sender. No lock is held while it is looked at: that makes calls of the fabric.
    fn listed(&self, member: Rank) -> Vec<Slot> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut slots = self.slots();
        // A receive that named the slot has been there since.
        slots.retain(|_, (page, block)| mark(page, *block).may_hold_a_stray());
        self.count.store(slots.len(), Ordering::Release);
        slots.range((member, 0)..=(member, u32::MAX)).map(|(_, slot)| slot.clone()).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stray {
    /// Whether it is there, now that nobody else can take it. Of one that did not fit in the receive that was withdrawn
    /// nothing is there, and its sender knows.
    fn is_whole(&self) -> bool {
        match words::read_data(self.page.data(self.block), self.number) {
            Data::None => false,
            Data::TooLong { .. } => {
                self.page.state(self.block).received.store(self.number, Ordering::Relaxed);
                false
            }
            _ => true,
        }
    }
}

impl Drop for Stray {
    /// The slot is free again. What was not taken is still there.
    fn drop(&mut self) {
        let was_taken = self.page.next_received(self.block) != self.number;
        mark(&self.page, self.block).give_back(was_taken);
    }
}

/// What a receive of any slot has to find strays. One that has found one takes itself back first: whoever has claimed
/// it meanwhile is received.
#[derive(Debug)]
pub(super) struct Seeker {
    strays: Arc<Strays>,
    found: Option<Stray>,
    has_turned: bool,
}

impl Seeker {
    pub(super) fn new(strays: &Arc<Strays>) -> Seeker {
        Seeker { strays: strays.clone(), found: None, has_turned: false }
    }

    /// Whether [`Seeker::find`] would find one.
    pub(super) fn can_find(&self, member: Rank) -> bool {
        self.has_one() || self.strays.any_from(member)
    }

    /// Takes a stray of that sender's, if it has none yet. Whether it has one.
    pub(super) fn find(&mut self, member: Rank) -> bool {
        if self.found.is_none() {
            self.found = self.strays.take(member);
        }
        self.has_one()
    }

    pub(super) fn has_one(&self) -> bool {
        self.found.is_some()
    }

    /// Its receive was taken back, and is the stray's now: of the message of that number. None: it has none.
    pub(super) fn turn(&mut self) -> Option<u32> {
        let number = self.found.as_ref()?.number;
        self.has_turned = true;
        Some(number)
    }

    /// The stray whose receive it is.
    pub(super) fn turned(&self) -> Option<&Stray> {
        self.found.as_ref().filter(|_| self.has_turned)
    }
}

fn mark(page: &Page, block: Block) -> &Mark {
    &page.state(block).receiving
}

/// Whether something has come about a message that no receive waits for.
fn is_stray(page: &Page, block: Block) -> bool {
    page.is_about(block, page.next_received(block))
}

/// That a slot which is lent to a receive of any is given back.
#[derive(Debug)]
pub(super) struct GivenBack {
    pub(super) page: Arc<Page>,
    pub(super) block: Block,
}

impl Event for GivenBack {
    fn happened(&self) -> bool {
        !mark(&self.page, self.block).is_lent()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        None // it is another receive of this rank's that gives it back, however that ends
    }
}
