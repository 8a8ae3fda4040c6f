//! Sends and receives on borrowed values, all ended when the scope is.
#![allow(unsafe_code)]
//! Unsafe: borrowed memory is lent to messages. The scope calls every loan back before it ends, in every way out,
//! and it ends before the borrow does, as `std::thread::scope`.

use crate::communicator::{Received, Slot, received};
use crate::{Error, Pod, Rank, Result};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Loan, Local};
use tasuki_models::message::{Context, Incoming, Outgoing, Place, SHORT_MAX};

/// Messages that may use what was borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope).
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Arc<Context>,
    begun: Mutex<Vec<Begun>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A message that was begun and not waited for.
#[derive(Debug)]
struct Begun {
    peer: Rank,
    slot: Slot,
    loan: Arc<Loan>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Send(Outgoing),
    Receive(Incoming),
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn run<R>(
        context: &Arc<Context>,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { context, begun: Mutex::default(), scope: PhantomData, env: PhantomData };
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
    pub fn send<T: Pod>(&'scope self, values: &'env [T], to: Rank, slot: Slot) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_ptr().cast_mut()), bytes.len(), false, None) };
        let short = (bytes.len() <= SHORT_MAX).then_some(bytes);
        let place = || Place::Own(loan.clone());
        let request = self.context.begin_send(short, place, to, slot.0)?;
        self.begun().push(Begun { peer: to, slot, loan, way: Way::Send(request) });
        Ok(())
    }

    /// Begins a receive into borrowed values, which nobody else may touch until it has ended.
    pub fn recv<T: Pod>(&'scope self, into: &'env mut [T], from: Rank, slot: Slot) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { Loan::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        let place = || Place::Own(loan.clone());
        let request = self.context.begin_recv(loan.len(), place, from, slot.0)?;
        self.begun().push(Begun { peer: from, slot, loan, way: Way::Receive(request) });
        Ok(())
    }

    /// Waits for the send to `to` on a slot.
    pub fn wait_send(&self, to: Rank, slot: Slot) -> Result<()> {
        let begun = self.take(to, slot, |way| matches!(way, Way::Send(_)), "wait_send")?;
        self.finish(begun).map(drop)
    }

    /// Waits for the receive from `from` on a slot: what came, counted in values of type `T`.
    pub fn wait_recv<T: Pod>(&self, from: Rank, slot: Slot) -> Result<Received> {
        let begun = self.take(from, slot, |way| matches!(way, Way::Receive(_)), "wait_recv")?;
        let got = self.finish(begun)?.expect("a receive brings something");
        received::<T>(got)
    }

    /// Waits for all messages of the scope. The first error, if there is one; the others are waited for all the same.
    pub fn wait_all(&self) -> Result<()> {
        let mut outcome = Ok(());
        loop {
            let Some(begun) = self.begun().pop() else { return outcome };
            let finished = self.finish(begun).map(drop);
            outcome = outcome.and(finished);
        }
    }

    fn finish(&self, begun: Begun) -> Result<Option<tasuki_models::message::Received>> {
        let Begun { loan, way, .. } = begun;
        let outcome = match way {
            Way::Send(request) => request.wait().map(|()| None),
            Way::Receive(mut request) => {
                let mut line = [0; SHORT_MAX];
                let room = if request.is_short() { loan.len() } else { 0 };
                request.take(&mut line[..room]).map(|got| {
                    if let Some(used) = loan.enter().filter(|_| request.is_short()) {
                        used.write(0, &line[..got.len as usize]);
                    }
                    Some(got)
                })
            }
        };
        self.call_back(&loan);
        outcome
    }

    /// Takes messages back, or waits for their end if they are on their way.
    fn cancel_all(&self) {
        loop {
            let Some(Begun { loan, way, .. }) = self.begun().pop() else { return };
            match way {
                Way::Send(request) => request.cancel(),
                Way::Receive(request) => drop(request),
            }
            self.call_back(&loan);
        }
    }

    fn call_back(&self, loan: &Loan) {
        loan.call_back(|| self.context.machine().pause());
    }

    fn take(&self, peer: Rank, slot: Slot, is_it: impl Fn(&Way) -> bool, call: &str) -> Result<Begun> {
        let mut begun = self.begun();
        let place = begun.iter().position(|one| one.peer == peer && one.slot == slot && is_it(&one.way));
        place.map(|place| begun.remove(place)).ok_or_else(|| {
            let text = "no such message was begun in this scope and not waited for";
            Error::new(Cause::Argument(text.into()))
                .in_call(|| format!("{call}(rank {peer}, slot {})", slot.0))
        })
    }

    fn begun(&self) -> MutexGuard<'_, Vec<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
