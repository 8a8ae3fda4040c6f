//! Kept messages: messages that met a receive which was dropped. The next receive of their slot, or of any slot, gets
//! them.
//!
//! A receive whose message was on its way when its request was dropped goes on, in memory that it owns. So the drop
//! does not wait, and no peer writes to memory that was freed. While the transfer goes on, it uses the lines of its
//! slot, and the next receive there waits for it. When it is over, the message is *whole*: it needs no lines any more,
//! and a receive copies it. If the transfer fails, or the message did not come after all, nothing is kept.

use crate::buffer::MessageBuffer;
use crate::protocol::fit::misfit;
use crate::protocol::outcome::{Done, Outcome};
use crate::slot::bank::{ANY, SLOTS, SlotBank, SlotIndex};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::sync::{AtomicUsize, Ordering};
use tasuki_core::base::{Cause, Rank, ValueKind};
use tasuki_core::engine::WaitEvent;

/// The transfer of a message that met a dropped receive.
pub(crate) trait Transfer: WaitEvent {
    /// Returns the outcome, if the transfer is over.
    fn outcome(&self) -> Option<Outcome>;
}

/// A message that met a dropped receive.
#[derive(Debug)]
pub(crate) struct KeptMessage {
    pub(crate) transfer: Arc<dyn Transfer>,
    /// The slot of the dropped receive, whose lines the transfer uses: the slot of the message, or the one for receives
    /// of any slot.
    pub(crate) bank: Arc<SlotBank>,
    pub(crate) index: SlotIndex,
    /// Where the message is, or will be: memory that the dropped receive owns.
    pub(crate) bytes: MessageBuffer,
}

impl KeptMessage {
    /// Returns length and slot of the message, if it is whole.
    fn whole(&self) -> Option<Done> {
        match self.transfer.outcome() {
            Some(Outcome::Done(done)) => Some(done),
            _ => None,
        }
    }

    fn is_pending(&self) -> bool {
        self.transfer.outcome().is_none()
    }
}

/// The result of a search for a kept message.
#[derive(Debug)]
pub(crate) enum KeptSearch {
    Nothing,
    /// The message, which stays, does not fit in the receive.
    Unfit(Cause),
    /// The message was removed.
    Found(KeptMessage, Done),
}

/// Messages by sender and slot, in the order in which their receives were dropped. Messages of a sender whose slot is
/// not known yet are at [`UNKNOWN`].
type Messages = BTreeMap<(Rank, u32), VecDeque<KeptMessage>>;

const UNKNOWN: u32 = u32::MAX;

/// The kept messages of a context.
#[derive(Debug, Default)]
pub(crate) struct KeptMessages {
    /// Their number, for readers without the lock.
    count: AtomicUsize,
    messages: Mutex<Messages>,
}

/// Returns the first message of a slot. Transfers that have ended without a message do not count.
fn first(messages: &VecDeque<KeptMessage>) -> Option<&KeptMessage> {
    messages.iter().find(|message| message.is_pending() || message.whole().is_some())
}

/// The slot of a dropped receive whose message did not come.
pub(crate) type EndedSlot = (Arc<SlotBank>, SlotIndex);

impl KeptMessages {
    /// Returns true if there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds a message of a slot; `None` if the slot is not known yet.
    pub(crate) fn add(&self, member: Rank, slot: Option<u32>, message: KeptMessage) {
        self.change(|all| all.entry((member, slot.unwrap_or(UNKNOWN))).or_default().push_back(message));
    }

    /// Puts back a message that was taken from here: it goes first.
    pub(crate) fn put_back(&self, member: Rank, slot: u32, message: KeptMessage) {
        self.change(|all| all.entry((member, slot)).or_default().push_front(message));
    }

    /// Removes the transfers from a sender that have ended without a message, and returns the slots of those that named
    /// their slot. Assigns messages whose slot was unknown to their slots.
    pub(crate) fn remove_ended(&self, member: Rank) -> Vec<EndedSlot> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut ended = Vec::new();
        self.change(|all| {
            for (_, messages) in all.range_mut((member, 0)..=(member, UNKNOWN)) {
                messages.retain(|message| {
                    let stays = message.is_pending() || message.whole().is_some();
                    if !stays && message.index != ANY {
                        ended.push((message.bank.clone(), message.index));
                    }
                    stays
                });
            }
            if let Some(unknown) = all.remove(&(member, UNKNOWN)) {
                for message in unknown {
                    let slot = message.whole().map_or(UNKNOWN, |done| done.slot);
                    all.entry((member, slot)).or_default().push_back(message);
                }
            }
        });
        ended
    }

    /// Returns true if there is a message for a receive that names the slot, or one is being transferred.
    pub(crate) fn holds(&self, member: Rank, slot: u32) -> bool {
        !self.is_empty() && self.look(|all| all.contains_key(&(member, slot)))
    }

    /// Returns true if a receive of that slot, or of any slot, finds a whole message.
    pub(crate) fn has_whole(&self, member: Rank, slot: Option<u32>) -> bool {
        let is_whole =
            |messages: &VecDeque<KeptMessage>| first(messages).and_then(KeptMessage::whole).is_some();
        !self.is_empty() && self.look(|all| of(all, member, slot).any(|(_, messages)| is_whole(messages)))
    }

    /// Returns true if a receive must wait before it is posted: an earlier message of its slot is being transferred; or
    /// a message of any slot, if the receive is of any slot.
    pub(crate) fn is_blocked(&self, member: Rank, slot: Option<u32>) -> bool {
        let blocks = |messages: &VecDeque<KeptMessage>| match slot {
            Some(_) => first(messages).is_some_and(KeptMessage::is_pending),
            None => messages.iter().any(|message| message.index == ANY && message.is_pending()),
        };
        !self.is_empty() && self.look(|all| of(all, member, slot).any(|(_, messages)| blocks(messages)))
    }

    /// Takes a whole message of that slot, or of any slot, for a receive of a type and so many bytes.
    pub(crate) fn take(&self, member: Rank, slot: Option<u32>, receive: (ValueKind, u64)) -> KeptSearch {
        if self.is_empty() {
            return KeptSearch::Nothing;
        }
        self.change(|all| {
            let whole = of(all, member, slot)
                .find_map(|(&key, messages)| Some((key, first(messages).and_then(KeptMessage::whole)?)));
            let Some((key, done)) = whole else { return KeptSearch::Nothing };
            if let Some(cause) = misfit((done.kind, done.len), receive) {
                return KeptSearch::Unfit(cause);
            }
            let removed = all.get_mut(&key).and_then(|messages| {
                let place = messages.iter().position(|message| message.whole().is_some())?;
                messages.remove(place)
            });
            removed.map_or(KeptSearch::Nothing, |message| KeptSearch::Found(message, done))
        })
    }

    /// Returns true if a transfer uses the lines of that slot.
    pub(crate) fn is_pending_on(&self, bank: &Arc<SlotBank>, index: SlotIndex) -> bool {
        let uses = |message: &KeptMessage| {
            message.index == index && Arc::ptr_eq(&message.bank, bank) && message.is_pending()
        };
        !self.is_empty() && self.look(|all| of(all, bank.member, None).any(|(_, all)| all.iter().any(uses)))
    }

    /// Returns true if a message is being transferred.
    pub(crate) fn any_pending(&self) -> bool {
        !self.is_empty() && self.look(|all| all.values().flatten().any(KeptMessage::is_pending))
    }

    /// Returns the slot of a message of that sender that is being transferred; `None` inside if it is not known.
    pub(crate) fn pending_of(&self, member: Rank) -> Option<Option<u32>> {
        self.look(|all| {
            let mut pending =
                of(all, member, None).filter(|(_, messages)| messages.iter().any(KeptMessage::is_pending));
            pending.next().map(|(&(_, slot), _)| (slot != UNKNOWN).then_some(slot))
        })
    }

    /// Marks the slots of a bank that was opened.
    #[cold]
    pub(crate) fn mark(&self, bank: &SlotBank) {
        if self.is_empty() {
            return;
        }
        let first = bank.slot(0);
        self.look(|all| {
            for (&(_, slot), _) in all.range((bank.member, first)..(bank.member, first + SLOTS)) {
                bank.state((slot - first) as SlotIndex).receiving.mark_kept();
            }
        });
    }

    fn look<R>(&self, look: impl FnOnce(&Messages) -> R) -> R {
        look(&self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Messages) -> R) -> R {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut messages);
        messages.retain(|_, messages| !messages.is_empty());
        self.count.store(messages.values().map(VecDeque::len).sum(), Ordering::Release);
        result
    }
}

/// Returns the messages of a sender on that slot, or on any slot.
fn of(
    all: &Messages,
    member: Rank,
    slot: Option<u32>,
) -> impl Iterator<Item = (&(Rank, u32), &VecDeque<KeptMessage>)> {
    let (first, last) = slot.map_or((0, UNKNOWN), |slot| (slot, slot));
    all.range((member, first)..=(member, last))
}
