//! The list of messages and starts of plans that a scope has begun and not waited for.
#![allow(unsafe_code)]
//! Unsafe: the list is changed through shared references, but only by the thread that owns the scope, and none of its
//! calls runs while another does.
//!
//! A short message must cost few stores. The stores to the peer's cache line take long to drain, and the processor's
//! store queue holds only as many of them as fit between the other stores. So the list keeps one bit for a message
//! that was sent at once, and three words for a posted receive.

use crate::{Rank, Result};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::Waker;
use tasuki_core::engine::{Awaited, AwaitedCondition, Local, RevocableBuffer, Worker};
use tasuki_message::{PendingRecv, PendingSend, PostedRecv, SentBank, SentShort};

/// Posted receives that are stored on the stack; more need the heap.
const POSTED_INLINE: usize = 64;

/// A short receive, and the address to which its message is copied.
pub(crate) type ShortRecv<'c> = (PostedRecv<'c>, Local);

/// A message that was not sent at once or is not short, and the buffer that it uses.
#[derive(Debug)]
pub(crate) enum ScopeMessage {
    Send(PendingSend, Option<Arc<RevocableBuffer>>),
    Receive(PendingRecv, Option<Arc<RevocableBuffer>>),
}

impl ScopeMessage {
    fn key(&self) -> Key {
        match self {
            ScopeMessage::Send(send, _) => (Kind::Send, send.on()),
            ScopeMessage::Receive(receive, _) => (Kind::Receive, receive.on()),
        }
    }
}

/// What a message in the list is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Posted,
    Send,
    Receive,
}

/// A message in the list: its peer and its slot. A scope has only one of a kind at a time, since the slot is busy.
type Key = (Kind, (Rank, u32));

/// From this length on, messages are found by an index.
const INDEX_MIN: usize = 200;

/// What few scopes need, made when it is first needed, so that beginning a message costs nothing more.
#[derive(Default)]
struct ScopeIndex {
    /// Where messages are in a list that is too long to search for each of them. Messages are added when one is
    /// searched for.
    places: HashMap<Key, usize>,
    /// How many of the list's messages are in `places`.
    posted: usize,
    requests: usize,
    /// What tasks that await posted receives keep, by the place of the receive.
    awaited: HashMap<usize, AwaitedCondition>,
}

/// Everything that the scope has begun and not waited for.
#[derive(Default)]
pub(crate) struct ScopeList<'c> {
    /// Cleared instead of dropped: if dropping it did anything, a scope could not be borrowed for its own lifetime.
    state: UnsafeCell<ManuallyDrop<ScopeState<'c>>>,
}

#[derive(Default)]
struct ScopeState<'c> {
    /// Messages that were sent at once: a slot bank, and the bits of their slots in it.
    sent: SmallVec<[(SentBank<'c>, u64); 2]>,
    /// In the order in which they were posted; `None` for a receive that was waited for.
    posted: SmallVec<[Option<ShortRecv<'c>>; POSTED_INLINE]>,
    /// In the order in which they were begun; `None` for a message that was waited for.
    requests: Vec<Option<ScopeMessage>>,
    /// Where in `posted` and `requests` a message is, and who awaits it.
    index: Option<Box<ScopeIndex>>,
    /// In the order in which they were started.
    starts: Vec<Box<dyn StartedPlan + 'c>>,
    /// How often everything was waited for: an earlier message is not in the list any more.
    generation: u32,
}

/// Returns the place of the message with that key. `indexed`: how many are in `places`.
fn find<T>(
    all: &[Option<T>],
    (places, indexed): (&mut HashMap<Key, usize>, &mut usize),
    key: impl Fn(&T) -> Key,
    of: Key,
) -> Option<usize> {
    for (place, one) in all.iter().enumerate().skip(*indexed) {
        one.iter().for_each(|one| _ = places.insert(key(one), place));
    }
    *indexed = all.len();
    let place = *places.get(&of)?;
    all[place].as_ref().is_some_and(|one| key(one) == of).then_some(place)
}

/// A started plan with the values that it uses.
pub(crate) trait StartedPlan {
    /// Returns when the start is over.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl<'c> ScopeList<'c> {
    #[inline(always)]
    fn change<R>(&self, change: impl FnOnce(&mut ScopeState<'c>) -> R) -> R {
        // SAFETY: the list belongs to one thread, and no `change` calls anything that has a reference to it.
        change(unsafe { &mut *self.state.get() })
    }

    #[inline(always)]
    pub(crate) fn sent(&self, sent: SentShort<'c>) {
        let (bank, bit) = sent.bit();
        // From the last on, which most often is the same bank.
        self.change(|all| match all.sent.iter_mut().rev().find(|(other, _)| bank.is(*other)) {
            Some((_, bits)) => *bits |= bit,
            None => all.sent.push((bank, bit)),
        });
    }

    #[inline(always)]
    pub(crate) fn posted(&self, posted: PostedRecv<'c>, into: Local) {
        self.change(|all| all.posted.push(Some((posted, into))));
    }

    pub(crate) fn request(&self, request: ScopeMessage) {
        self.change(|all| all.requests.push(Some(request)));
    }

    pub(crate) fn started(&self, start: Box<dyn StartedPlan + 'c>) {
        self.change(|all| all.starts.push(start));
    }

    /// Removes and returns the starts of plans.
    #[inline]
    pub(crate) fn take_started(&self) -> Vec<Box<dyn StartedPlan + 'c>> {
        self.change(|all| std::mem::take(&mut all.starts))
    }

    /// Removes and returns the messages that were sent at once.
    #[inline(always)]
    pub(crate) fn take_sent(&self) -> impl Iterator<Item = SentShort<'c>> {
        let banks = self.change(|all| std::mem::take(&mut all.sent));
        banks.into_iter().flat_map(|(bank, bits)| bank.sent(bits))
    }

    /// Removes the posted receive with that index. The outer `None`: there is no such index. The inner `None`: it was
    /// waited for.
    #[inline(always)]
    pub(crate) fn take_posted(&self, index: usize) -> Option<Option<ShortRecv<'c>>> {
        self.change(|all| all.posted.get_mut(index).map(Option::take))
    }

    /// Removes the request with that index. The outer `None`: there is no such index. The inner
    /// `None`: it was waited for.
    #[inline]
    pub(crate) fn take_request(&self, index: usize) -> Option<Option<ScopeMessage>> {
        self.change(|all| all.requests.get_mut(index).map(Option::take))
    }

    /// Removes the message to that peer on that slot, if it was sent at once.
    pub(crate) fn find_sent(&self, peer: Rank, slot: u32) -> Option<SentShort<'c>> {
        self.change(|all| {
            all.sent.iter_mut().find_map(|(bank, bits)| {
                let bit = 1 << (slot % u64::BITS); // a bank holds 64 slots
                let sent = bank.sent(*bits & bit).find(|sent| sent.on() == (peer, slot))?;
                *bits &= !bit;
                Some(sent)
            })
        })
    }

    /// Returns true if the message to that peer on that slot was sent at once.
    pub(crate) fn has_sent(&self, peer: Rank, slot: u32) -> bool {
        let bit = 1 << (slot % u64::BITS);
        let is_it = |sent: SentShort<'c>| sent.on() == (peer, slot);
        self.change(|all| all.sent.iter().any(|(bank, bits)| bank.sent(*bits & bit).any(is_it)))
    }

    /// Returns the short receive from that peer on that slot, and its place.
    pub(crate) fn find_posted(&self, peer: Rank, slot: u32) -> Option<(usize, PostedRecv<'c>)> {
        let (of, key) = ((Kind::Posted, (peer, slot)), |one: &ShortRecv<'_>| (Kind::Posted, one.0.on()));
        self.change(|all| {
            let place = if all.posted.len() < INDEX_MIN {
                all.posted.iter().position(|one| one.as_ref().is_some_and(|one| key(one) == of))
            } else {
                let index = &mut **all.index.get_or_insert_default();
                find(&all.posted, (&mut index.places, &mut index.posted), key, of)
            };
            let place = place?;
            all.posted[place].as_ref().map(|(posted, _)| (place, *posted))
        })
    }

    /// Replaces the posted receive at that place, which was posted again.
    pub(crate) fn replace_posted(&self, place: usize, again: PostedRecv<'c>) {
        self.change(|all| {
            if let Some((posted, _)) = &mut all.posted[place] {
                *posted = again;
            }
        });
    }

    /// Lets `waker` be woken when the posted receive at that place may have its message.
    pub(crate) fn await_posted(&self, place: usize, worker: &Arc<Worker>, arrival: Awaited, waker: &Waker) {
        let taken = self.change(|all| all.index.get_or_insert_default().awaited.remove(&place));
        // A waker is code of the program.
        let mut awaited = taken.unwrap_or_default();
        awaited.set(worker, arrival, waker);
        self.change(|all| all.index.get_or_insert_default().awaited.insert(place, awaited));
    }

    /// Takes the send to that peer on that slot, if it was not sent at once.
    pub(crate) fn find_send(&self, peer: Rank, slot: u32) -> Option<Taken<'_, 'c>> {
        self.find_request((Kind::Send, (peer, slot)))
    }

    /// Takes the receive from that peer on that slot, if it is not short.
    pub(crate) fn find_receive(&self, peer: Rank, slot: u32) -> Option<Taken<'_, 'c>> {
        self.find_request((Kind::Receive, (peer, slot)))
    }

    fn find_request(&self, of: Key) -> Option<Taken<'_, 'c>> {
        let (place, message) = self.change(|all| {
            let place = if all.requests.len() < INDEX_MIN {
                all.requests.iter().position(|one| one.as_ref().is_some_and(|one| one.key() == of))
            } else {
                let index = &mut **all.index.get_or_insert_default();
                find(&all.requests, (&mut index.places, &mut index.requests), ScopeMessage::key, of)
            };
            let place = place?;
            all.requests[place].take().map(|message| (place, message))
        })?;
        Some(Taken { list: self, place, message: Some(message) })
    }

    /// Returns a number that changes when everything was waited for.
    pub(crate) fn generation(&self) -> u32 {
        self.change(|all| all.generation)
    }

    /// Empties the list, whose messages were all waited for, and frees its memory.
    #[inline]
    pub(crate) fn clear(&self) {
        let index = self.change(|all| {
            all.sent = SmallVec::new();
            all.posted.clear();
            all.posted.shrink_to_fit();
            all.requests = Vec::new();
            all.generation = all.generation.wrapping_add(1);
            all.index.take()
        });
        drop(index); // not inside `change`: to drop a waker is code of the program
    }
}

/// A message that was taken out of the list. It is put back when this is dropped, unless its message was taken: while
/// a message is in use, nothing else may use the list, and a test may run code of the program.
pub(crate) struct Taken<'r, 'c> {
    list: &'r ScopeList<'c>,
    place: usize,
    message: Option<ScopeMessage>,
}

impl Taken<'_, '_> {
    pub(crate) fn message(&mut self) -> Option<&mut ScopeMessage> {
        self.message.as_mut()
    }

    /// Takes the message for good.
    pub(crate) fn take(mut self) -> Option<ScopeMessage> {
        self.message.take()
    }
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        let (place, message) = (self.place, self.message.take());
        if message.is_some() {
            self.list.change(|all| all.requests[place] = message);
        }
    }
}

impl fmt::Debug for ScopeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeList").finish_non_exhaustive()
    }
}
