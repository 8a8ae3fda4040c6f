//! Sends and receives on borrowed values, all ended when the scope is.
#![allow(unsafe_code)]
//! Unsafe: borrowed memory is lent to messages, or remembered for what comes. The scope has all of it back before it
//! ends, in every way out, and it ends before the borrow does, as `std::thread::scope`.

use crate::communicator::{Received, Slot, received};
use crate::{Error, Pod, Rank, Result};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Loan, Local};
use tasuki_models::message::{self, Context, Incoming, Outgoing, Place, Posted, SHORT_MAX};

/// Messages that may use what was borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope), for the thread that made it.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Arc<Context>,
    begun: RefCell<Vec<Begun>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A message that was begun and not waited for.
#[derive(Debug)]
struct Begun {
    peer: Rank,
    slot: Slot,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// It went at once.
    Sent,
    /// A short receive, and where its message shall go.
    Posted {
        posted: Posted,
        into: Local,
        len: usize,
    },
    Send(Box<(Outgoing, Arc<Loan>)>),
    Receive(Box<(Incoming, Arc<Loan>)>),
}

impl Way {
    fn is_send(&self) -> bool {
        matches!(self, Way::Sent | Way::Send(_))
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn run<R>(
        context: &Arc<Context>,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { context, begun: RefCell::default(), scope: PhantomData, env: PhantomData };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        let outcome = match outcome {
            Ok(Ok(value)) => scope.wait_all().map(|()| value),
            Ok(Err(error)) => Err(error),
            Err(panic) => {
                scope.cancel_all();
                resume_unwind(panic)
            }
        };
        scope.cancel_all(); // nothing, if all went well
        outcome
    }

    /// Begins a send of borrowed values, which are read until it has ended.
    #[inline]
    pub fn send<T: Pod>(&'scope self, values: &'env [T], to: Rank, slot: Slot) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let way =
            if self.context.send_now(bytes, to, slot.0) { Way::Sent } else { self.lend(bytes, to, slot)? };
        self.begun.borrow_mut().push(Begun { peer: to, slot, way });
        Ok(())
    }

    #[inline(never)]
    fn lend(&self, bytes: &[u8], to: Rank, slot: Slot) -> Result<Way> {
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_ptr().cast_mut()), bytes.len(), false, None) };
        let short = (bytes.len() <= SHORT_MAX).then_some(bytes);
        let request = self.context.begin_send(short, || Place::Own(loan.clone()), to, slot.0)?;
        Ok(Way::Send(Box::new((request, loan))))
    }

    /// Begins a receive into borrowed values, which nobody else may touch until it has ended.
    #[inline]
    pub fn recv<T: Pod>(&'scope self, into: &'env mut [T], from: Rank, slot: Slot) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        let way = if bytes.len() <= SHORT_MAX && slot != Slot::ANY {
            let (into, len) = (Local(bytes.as_mut_ptr()), bytes.len());
            Way::Posted { posted: self.context.post(len, from, slot.0)?, into, len }
        } else {
            self.borrow(bytes, from, slot)?
        };
        self.begun.borrow_mut().push(Begun { peer: from, slot, way });
        Ok(())
    }

    #[inline(never)]
    fn borrow(&self, bytes: &mut [u8], from: Rank, slot: Slot) -> Result<Way> {
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        let request = self.context.begin_recv(loan.len(), || Place::Own(loan.clone()), from, slot.0)?;
        Ok(Way::Receive(Box::new((request, loan))))
    }

    /// Waits for the send to `to` on a slot.
    pub fn wait_send(&self, to: Rank, slot: Slot) -> Result<()> {
        let begun = self.take(to, slot, true)?;
        self.finish(begun).map(drop)
    }

    /// Waits for the receive from `from` on a slot: what came, counted in values of type `T`.
    pub fn wait_recv<T: Pod>(&self, from: Rank, slot: Slot) -> Result<Received> {
        let begun = self.take(from, slot, false)?;
        let got = self.finish(begun)?.expect("a receive brings something");
        received::<T>(got)
    }

    /// Waits for all messages of the scope, in the order in which they were begun. The first error, if there is one;
    /// the others are waited for all the same.
    pub fn wait_all(&self) -> Result<()> {
        let mut outcome = Ok(());
        let mut all = self.begun.take();
        for begun in all.drain(..) {
            let finished = self.finish(begun).map(drop);
            outcome = outcome.and(finished);
        }
        self.begun.replace(all); // empty, with its room for the next
        outcome
    }

    #[inline]
    fn finish(&self, begun: Begun) -> Result<Option<message::Received>> {
        let Begun { peer, slot, way } = begun;
        match way {
            Way::Sent => {
                self.context.forget_sent(peer, slot.0);
                Ok(None)
            }
            Way::Posted { posted, into, len } => {
                // SAFETY: borrowed mutably for longer than the scope, and remembered only here.
                let into = unsafe { std::slice::from_raw_parts_mut(into.0, len) };
                self.context.take("irecv", posted, into, peer, slot.0).map(Some)
            }
            Way::Send(lent) => {
                let (request, loan) = *lent;
                let outcome = request.wait().map(|()| None);
                self.call_back(&loan);
                outcome
            }
            Way::Receive(lent) => {
                let (mut request, loan) = *lent;
                let outcome = request.take(&mut []).map(Some);
                drop(request); // one that failed may have the loan registered
                self.call_back(&loan);
                outcome
            }
        }
    }

    /// Takes messages back, or waits for their end if they are on their way.
    fn cancel_all(&self) {
        for Begun { peer, slot, way } in self.begun.take() {
            match way {
                Way::Sent => self.context.forget_sent(peer, slot.0),
                Way::Posted { .. } => self.context.forget_posted(peer, slot.0),
                Way::Send(lent) => {
                    lent.0.cancel();
                    self.call_back(&lent.1);
                }
                Way::Receive(lent) => {
                    let (request, loan) = *lent;
                    drop(request);
                    self.call_back(&loan);
                }
            }
        }
    }

    fn call_back(&self, loan: &Loan) {
        loan.call_back(|| self.context.machine().pause());
    }

    fn take(&self, peer: Rank, slot: Slot, send: bool) -> Result<Begun> {
        let mut begun = self.begun.borrow_mut();
        let is_it = |one: &Begun| one.peer == peer && one.slot == slot && one.way.is_send() == send;
        let place = begun.iter().position(is_it);
        place.map(|place| begun.remove(place)).ok_or_else(|| {
            let text = "no such message was begun in this scope and not waited for";
            let call = if send { "wait_send" } else { "wait_recv" };
            Error::new(Cause::Argument(text.into()))
                .in_call(|| format!("{call}(rank {peer}, slot {})", slot.0))
        })
    }
}
