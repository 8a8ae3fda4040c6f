//! Messages that a scope has begun and not waited for.
#![allow(unsafe_code)]
//! Unsafe: the list is changed through shared references, by the one thread that has the scope, and no call of it runs
//! while another does. A short message costs the processor few stores: those to the peer's line take long to drain, and
//! as many of them are on their way at once as fit between the others in its queue.

use crate::{Rank, Slot};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use tasuki_core::engine::{Loan, Local};
use tasuki_models::message::{Incoming, Outgoing, Posted, Sent};

/// Messages that take no memory but the stack's.
const FEW: usize = 64;

/// A message that was begun.
#[derive(Debug)]
pub(crate) enum Begun<'c> {
    /// It is being waited for, or was.
    Over,
    /// It went at once.
    Sent(Sent<'c>),
    /// A short receive, and where its message shall go.
    Posted {
        posted: Posted<'c>,
        into: Local,
        len: u8,
    },
    Send(Box<(Outgoing, Option<Arc<Loan>>)>),
    Receive(Box<(Incoming, Option<Arc<Loan>>)>),
}

impl Begun<'_> {
    /// Whether it is the send to, or the receive from that peer on that slot.
    pub(crate) fn is(&self, peer: Rank, slot: Slot, send: bool) -> bool {
        let (begun, is_send) = match self {
            Begun::Over => return false,
            Begun::Sent(sent) => (sent.on(), true),
            Begun::Send(begun) => (begun.0.on(), true),
            Begun::Posted { posted, .. } => (posted.on(), false),
            Begun::Receive(begun) => (begun.0.on(), false),
        };
        begun == (peer, slot.0) && is_send == send
    }
}

/// Messages in the order in which they were begun.
#[derive(Default)]
pub(crate) struct List<'c> {
    /// Not dropped but cleared: a scope could not be borrowed for as long as it lives if dropping it did anything.
    begun: UnsafeCell<ManuallyDrop<SmallVec<[Begun<'c>; FEW]>>>,
}

impl<'c> List<'c> {
    #[inline(always)]
    fn change<R>(&self, change: impl FnOnce(&mut SmallVec<[Begun<'c>; FEW]>) -> R) -> R {
        // SAFETY: the list belongs to one thread, and no `change` calls anything that has a reference to it.
        change(unsafe { &mut *self.begun.get() })
    }

    /// Adds a message.
    #[inline(always)]
    pub(crate) fn push(&self, begun: Begun<'c>) {
        self.change(|all| all.push(begun));
    }

    /// What was begun at a place, if there is one.
    #[inline(always)]
    pub(crate) fn take(&self, place: usize) -> Option<Begun<'c>> {
        self.change(|all| Some(mem::replace(all.get_mut(place)?, Begun::Over)))
    }

    /// Takes the first of which that is true out.
    pub(crate) fn remove(&self, is_it: impl Fn(&Begun<'c>) -> bool) -> Option<Begun<'c>> {
        self.change(|all| all.iter().position(is_it).map(|place| all.remove(place)))
    }

    /// Forgets all, which were waited for; and keeps no memory.
    #[inline]
    pub(crate) fn clear(&self) {
        self.change(|all| {
            all.clear();
            all.shrink_to_fit();
        });
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").finish_non_exhaustive()
    }
}
