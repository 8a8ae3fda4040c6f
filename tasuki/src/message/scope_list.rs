//! Messages and starts of plans that a scope has begun and not waited for.
#![allow(unsafe_code)]
//! Unsafe: the list is changed through shared references, by the one thread that has the scope, and no call of it runs
//! while another does.
//!
//! A short message costs the processor few stores: those to the peer's line take long to drain, and as many of them are
//! on their way at once as fit between the others in its queue. So what was sent at once is a bit, and a posted receive
//! three words.

use crate::{Rank, Result, Slot};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use tasuki_core::engine::{Local, RevocableBuffer};
use tasuki_message::{PendingRecv, PendingSend, PostedRecv, SentBank, SentShort};

/// Posted receives that take no memory but the stack's.
const FEW: usize = 64;

/// A short receive, and where its message shall go.
pub(crate) type Awaited<'c> = (PostedRecv<'c>, Local);

/// A message that takes its time, and what was lent to it.
#[derive(Debug)]
pub(crate) enum ScopeRequest {
    Send(PendingSend, Option<Arc<RevocableBuffer>>),
    Receive(PendingRecv, Option<Arc<RevocableBuffer>>),
}

impl ScopeRequest {
    fn is_send(&self, peer: Rank, slot: Slot) -> bool {
        matches!(self, ScopeRequest::Send(send, _) if send.on() == (peer, slot.0))
    }

    fn is_receive(&self, peer: Rank, slot: Slot) -> bool {
        matches!(self, ScopeRequest::Receive(receive, _) if receive.on() == (peer, slot.0))
    }
}

/// What was begun.
#[derive(Default)]
pub(crate) struct ScopeList<'c> {
    /// Not dropped but cleared: a scope could not be borrowed for as long as it lives if dropping it did anything.
    begun: UnsafeCell<ManuallyDrop<ScopeState<'c>>>,
}

#[derive(Default)]
struct ScopeState<'c> {
    /// What went at once, by its bits in its page.
    sent: SmallVec<[(SentBank<'c>, u64); 2]>,
    /// In the order in which they were posted; none where one was waited for.
    posted: SmallVec<[Option<Awaited<'c>>; FEW]>,
    /// In the order in which they were begun; none where one was waited for.
    requests: Vec<Option<ScopeRequest>>,
    /// In the order in which they were started.
    starts: Vec<Box<dyn StartedPlan + 'c>>,
}

/// A start of a plan with what was lent to it.
pub(crate) trait StartedPlan {
    /// Returns when it is over.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl<'c> ScopeList<'c> {
    #[inline(always)]
    fn change<R>(&self, change: impl FnOnce(&mut ScopeState<'c>) -> R) -> R {
        // SAFETY: the list belongs to one thread, and no `change` calls anything that has a reference to it.
        change(unsafe { &mut *self.begun.get() })
    }

    #[inline(always)]
    pub(crate) fn sent(&self, sent: SentShort<'c>) {
        let (bank, bit) = sent.bit();
        self.change(|all| match all.sent.iter_mut().find(|(other, _)| bank.is(*other)) {
            Some((_, bits)) => *bits |= bit,
            None => all.sent.push((bank, bit)),
        });
    }

    #[inline(always)]
    pub(crate) fn posted(&self, posted: PostedRecv<'c>, into: Local) {
        self.change(|all| all.posted.push(Some((posted, into))));
    }

    pub(crate) fn request(&self, request: ScopeRequest) {
        self.change(|all| all.requests.push(Some(request)));
    }

    pub(crate) fn started(&self, start: Box<dyn StartedPlan + 'c>) {
        self.change(|all| all.starts.push(start));
    }

    /// The starts of plans: they are forgotten here.
    #[inline]
    pub(crate) fn take_started(&self) -> Vec<Box<dyn StartedPlan + 'c>> {
        self.change(|all| std::mem::take(&mut all.starts))
    }

    /// The messages that went at once: they are forgotten here.
    #[inline(always)]
    pub(crate) fn take_sent(&self) -> impl Iterator<Item = SentShort<'c>> {
        let banks = self.change(|all| std::mem::take(&mut all.sent));
        banks.into_iter().flat_map(|(bank, bits)| bank.sent(bits))
    }

    /// The receive that was posted as so many before: none if it was waited for. None if so many were not posted.
    #[inline(always)]
    pub(crate) fn take_posted(&self, place: usize) -> Option<Option<Awaited<'c>>> {
        self.change(|all| all.posted.get_mut(place).map(Option::take))
    }

    /// The same of what takes its time.
    #[inline]
    pub(crate) fn take_request(&self, place: usize) -> Option<Option<ScopeRequest>> {
        self.change(|all| all.requests.get_mut(place).map(Option::take))
    }

    /// The message to that peer on that slot, if it went at once.
    pub(crate) fn find_sent(&self, peer: Rank, slot: Slot) -> Option<SentShort<'c>> {
        self.change(|all| {
            all.sent.iter_mut().find_map(|(bank, bits)| {
                let sent = bank.sent(*bits).find(|sent| sent.on() == (peer, slot.0))?;
                *bits &= !sent.bit().1;
                Some(sent)
            })
        })
    }

    /// The short receive from that peer on that slot.
    pub(crate) fn find_posted(&self, peer: Rank, slot: Slot) -> Option<Awaited<'c>> {
        let is_it = |awaited: &Awaited<'_>| awaited.0.on() == (peer, slot.0);
        self.change(|all| all.posted.iter_mut().find(|one| one.as_ref().is_some_and(is_it))?.take())
    }

    /// The send to that peer on that slot, if it takes its time.
    pub(crate) fn find_send(&self, peer: Rank, slot: Slot) -> Option<ScopeRequest> {
        self.find_request(|request| request.is_send(peer, slot))
    }

    /// The receive from that peer on that slot, if it is no short one.
    pub(crate) fn find_receive(&self, peer: Rank, slot: Slot) -> Option<ScopeRequest> {
        self.find_request(|request| request.is_receive(peer, slot))
    }

    fn find_request(&self, is_it: impl Fn(&ScopeRequest) -> bool) -> Option<ScopeRequest> {
        self.change(|all| all.requests.iter_mut().find(|one| one.as_ref().is_some_and(&is_it))?.take())
    }

    /// Forgets all, which were waited for; and keeps no memory.
    #[inline]
    pub(crate) fn clear(&self) {
        self.change(|all| {
            all.sent = SmallVec::new();
            all.posted.clear();
            all.posted.shrink_to_fit();
            all.requests = Vec::new();
        });
    }
}

impl fmt::Debug for ScopeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeList").finish_non_exhaustive()
    }
}
