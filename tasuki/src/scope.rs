//! Sends and receives on borrowed values, all ended when the scope is.
#![allow(unsafe_code)]
//! Unsafe: borrowed memory is lent to messages, or remembered for what comes. The scope has all of it back before it
//! ends, in every way out, and it ends before the borrow does, as `std::thread::scope`.

use crate::begun::{Begun, List};
use crate::communicator::{Received, Slot, bytes, received};
use crate::{Error, GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Loan, Local};
use tasuki_models::message::{self, Context, Place, SHORT_MAX};

/// Messages that may use what was borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope), for the thread that made it.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Arc<Context>,
    begun: List<'scope>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn run<R>(
        context: &Arc<Context>,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { context, begun: List::default(), scope: PhantomData, env: PhantomData };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = body(&scope)?;
            scope.wait_all()?;
            Ok(value)
        }));
        scope.cancel_all(); // nothing, if all went well
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Begins a send of borrowed values, which are read until it has ended.
    #[inline]
    pub fn send<T: Pod>(&'scope self, values: &'env [T], to: Rank, slot: Slot) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        match self.context.send_now(bytes, to, slot.0) {
            Some(sent) => self.begun.push(Begun::Sent(sent)),
            None => self.lend(bytes, to, slot)?,
        }
        Ok(())
    }

    #[inline(never)]
    fn lend(&self, bytes: &[u8], to: Rank, slot: Slot) -> Result<()> {
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_ptr().cast_mut()), bytes.len(), false, None) };
        let short = (bytes.len() <= SHORT_MAX).then_some(bytes);
        let request = self.context.begin_send(short, || Place::Own(loan.clone()), to, slot.0)?;
        self.begun.push(Begun::Send(Box::new((request, Some(loan)))));
        Ok(())
    }

    /// Begins a send of `count` values of this rank's own job memory, which is read until it has ended: as
    /// [`Communicator::send_from`](crate::Communicator::send_from).
    pub fn send_from<T: Pod>(
        &'scope self,
        from: GlobalPtr<T>,
        count: usize,
        to: Rank,
        slot: Slot,
    ) -> Result<()> {
        let request = self.context.begin_send_job(from.address(), bytes::<T>(count), to, slot.0)?;
        self.begun.push(Begun::Send(Box::new((request, None))));
        Ok(())
    }

    /// Begins a receive into borrowed values, which nobody else may touch until it has ended.
    #[inline]
    pub fn recv<T: Pod>(&'scope self, into: &'env mut [T], from: Rank, slot: Slot) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        if bytes.len() > SHORT_MAX || slot == Slot::ANY {
            return self.borrow(bytes, from, slot);
        }
        let posted = self.context.post(bytes.len(), from, slot.0)?;
        let (into, len) = (Local(bytes.as_mut_ptr()), bytes.len() as u8);
        self.begun.push(Begun::Posted { posted, into, len });
        Ok(())
    }

    #[inline(never)]
    fn borrow(&self, bytes: &mut [u8], from: Rank, slot: Slot) -> Result<()> {
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        let request = self.context.begin_recv(loan.len(), || Place::Own(loan.clone()), from, slot.0)?;
        self.begun.push(Begun::Receive(Box::new((request, Some(loan)))));
        Ok(())
    }

    /// Begins a receive into this rank's own job memory, room for `count` values: as
    /// [`Communicator::recv_into`](crate::Communicator::recv_into).
    pub fn recv_into<T: Pod>(
        &'scope self,
        into: GlobalPtr<T>,
        count: usize,
        from: Rank,
        slot: Slot,
    ) -> Result<()> {
        let request = self.context.begin_recv_job(into.address(), bytes::<T>(count), from, slot.0)?;
        self.begun.push(Begun::Receive(Box::new((request, None))));
        Ok(())
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
        for place in 0.. {
            let Some(begun) = self.begun.take(place) else { break };
            let finished = self.finish(begun).map(drop);
            outcome = outcome.and(finished);
        }
        self.begun.clear();
        outcome
    }

    #[inline]
    fn finish(&self, begun: Begun<'_>) -> Result<Option<message::Received>> {
        match begun {
            Begun::Over => Ok(None),
            Begun::Sent(sent) => {
                self.context.forget_sent(sent);
                Ok(None)
            }
            Begun::Posted { posted, into, len } => {
                // SAFETY: borrowed mutably for longer than the scope, and remembered only here.
                let into = unsafe { std::slice::from_raw_parts_mut(into.0, usize::from(len)) };
                self.context.take("irecv", posted, into).map(Some)
            }
            Begun::Send(begun) => {
                let (request, lent) = *begun;
                let outcome = request.wait().map(|()| None);
                self.call_back(lent);
                outcome
            }
            Begun::Receive(begun) => {
                let (mut request, lent) = *begun;
                let outcome = request.take(&mut []).map(Some);
                drop(request); // one that failed may have the loan registered
                self.call_back(lent);
                outcome
            }
        }
    }

    /// Takes messages back, or waits for their end if they are on their way. After that nothing is kept of any.
    fn cancel_all(&self) {
        for place in 0.. {
            let Some(begun) = self.begun.take(place) else { break };
            match begun {
                Begun::Over => {}
                Begun::Sent(sent) => self.context.forget_sent(sent),
                Begun::Posted { posted, .. } => self.context.forget_posted(posted),
                Begun::Send(begun) => {
                    begun.0.cancel();
                    self.call_back(begun.1);
                }
                Begun::Receive(begun) => {
                    let (request, lent) = *begun;
                    drop(request);
                    self.call_back(lent);
                }
            }
        }
        self.begun.clear();
    }

    fn call_back(&self, lent: Option<Arc<Loan>>) {
        if let Some(loan) = lent {
            loan.call_back(|| self.context.machine().pause());
        }
    }

    fn take(&self, peer: Rank, slot: Slot, send: bool) -> Result<Begun<'scope>> {
        self.begun.remove(|begun| begun.is(peer, slot, send)).ok_or_else(|| {
            let text = "no such message was begun in this scope and not waited for";
            let call = if send { "wait_send" } else { "wait_recv" };
            Error::new(Cause::Argument(text.into()))
                .in_call(|| format!("{call}(rank {peer}, slot {})", slot.0))
        })
    }
}
