//! Sends, receives and starts of plans on borrowed values, all ended when the scope is.
#![allow(unsafe_code)]
//! Unsafe: borrowed memory is lent to messages, or remembered for what comes. The scope has all of it back before it
//! ends, in every way out, and it ends before the borrow does, as `std::thread::scope`.

use crate::collective::chunked_plan::ChunkedPlan;
use crate::communicator::{Received, Slot, bytes, received};
use crate::message::scope_list::{Awaited, ScopeList, ScopeRequest, StartedPlan};
use crate::{Error, GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Local, RevocableBuffer};
use tasuki_message::{Context, MessageBuffer, SHORT_MAX};

/// Messages and starts of plans that may use what was borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope), for the thread that made it.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Arc<Context>,
    begun: ScopeList<'scope>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn run<R>(
        context: &Arc<Context>,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { context, begun: ScopeList::default(), scope: PhantomData, env: PhantomData };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = body(&scope)?;
            scope.wait_all()?;
            Ok(value)
        }));
        scope.cancel_all(); // nothing, if all went well
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Begins a send of borrowed values, which are read until it has ended.
    #[inline(always)] // a value goes from register to line
    pub fn send<T: Pod>(&'scope self, values: &'env [T], to: Rank, slot: Slot) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        match self.context.try_send_short(bytes, to, slot.0) {
            Some(sent) => {
                self.begun.sent(sent);
                Ok(())
            }
            None => self.lend(bytes, to, slot),
        }
    }

    #[inline(never)]
    fn lend(&self, bytes: &[u8], to: Rank, slot: Slot) -> Result<()> {
        if let Some(sent) = self.context.try_begin_send(bytes, to, slot.0)? {
            self.begun.request(ScopeRequest::Send(sent, None));
            return Ok(());
        }
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan =
            unsafe { RevocableBuffer::new(Local(bytes.as_ptr().cast_mut()), bytes.len(), false, None) };
        let lent = self.returned(Some(loan.clone()));
        let request = self.context.begin_send(MessageBuffer::Own(loan), to, slot.0)?;
        self.begun.request(ScopeRequest::Send(request, lent.keep()));
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
        self.begun.request(ScopeRequest::Send(request, None));
        Ok(())
    }

    /// Begins a receive into borrowed values, which nobody else may touch until it has ended.
    #[inline(always)]
    pub fn recv<T: Pod>(&'scope self, into: &'env mut [T], from: Rank, slot: Slot) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        if bytes.len() > SHORT_MAX || slot == Slot::ANY {
            return self.borrow(bytes, from, slot);
        }
        let posted = self.context.post(bytes.len(), from, slot.0)?;
        self.begun.posted(posted, Local(bytes.as_mut_ptr()));
        Ok(())
    }

    #[inline(never)]
    fn borrow(&self, bytes: &mut [u8], from: Rank, slot: Slot) -> Result<()> {
        // SAFETY: borrowed for longer than the scope, which calls the loan back.
        let loan = unsafe { RevocableBuffer::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        let lent = self.returned(Some(loan.clone()));
        let request = self.context.begin_recv(loan.len(), || MessageBuffer::Own(loan), from, slot.0)?;
        self.begun.request(ScopeRequest::Receive(request, lent.keep()));
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
        self.begun.request(ScopeRequest::Receive(request, None));
        Ok(())
    }

    /// Starts a plan with borrowed values, as [`ChunkedPlan::start`], which nobody else may touch until it is over: by
    /// [`wait_all`](Scope::wait_all), or the scope's end. Of a scope that is left by an error or panic only what has
    /// gone has gone: the plan is of no more use.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let mut total = job.world().allreduce_init::<u64>(16, Sum)?.chunked()?;
    ///     let mut counts = vec![1; 50];
    ///     job.world().scope(|s| {
    ///         s.start(&mut total, &mut counts)?;
    ///         (0..1000_u64).for_each(|number| drop(std::hint::black_box(number))); // work beside it
    ///         s.wait_all()
    ///     })?;
    ///     assert_eq!(counts, [3; 50]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn start<T: Pod + Send>(
        &'scope self,
        plan: &'env mut ChunkedPlan<T>,
        values: &'env mut [T],
    ) -> Result<()> {
        plan.start(values.to_vec())?;
        self.begun.started(Box::new((plan, values)));
        Ok(())
    }

    /// Waits for the send to `to` on a slot.
    pub fn wait_send(&self, to: Rank, slot: Slot) -> Result<()> {
        if let Some(sent) = self.begun.find_sent(to, slot) {
            self.context.discard_sent(sent);
            return Ok(());
        }
        let request =
            self.begun.find_send(to, slot).ok_or_else(|| no_such(self.context, "wait_send", to, slot))?;
        self.finish(request).map(drop)
    }

    /// Waits for the receive from `from` on a slot: what came, counted in values of type `T`.
    pub fn wait_recv<T: Pod>(&self, from: Rank, slot: Slot) -> Result<Received> {
        if let Some(awaited) = self.begun.find_posted(from, slot) {
            return received::<T>(self.context, self.take(awaited)?);
        }
        let request = self
            .begun
            .find_receive(from, slot)
            .ok_or_else(|| no_such(self.context, "wait_recv", from, slot))?;
        received::<T>(self.context, self.finish(request)?.expect("a receive brings something"))
    }

    /// Waits for all that the scope has begun. The first error, if there is one, of the short receives, then of the
    /// other messages, then of starts, each in the order in which they were begun; all are waited for all the same.
    pub fn wait_all(&self) -> Result<()> {
        let mut outcome = Ok(());
        // First, while the others are on their way: it takes a while.
        self.begun.take_sent().for_each(|sent| self.context.discard_sent(sent));
        let mut place = 0;
        while let Some(awaited) = self.begun.take_posted(place) {
            let taken = awaited.map_or(Ok(()), |awaited| self.take(awaited).map(drop));
            outcome = outcome.and(taken);
            place += 1;
        }
        place = 0;
        while let Some(request) = self.begun.take_request(place) {
            let finished = request.map_or(Ok(()), |request| self.finish(request).map(drop));
            outcome = outcome.and(finished);
            place += 1;
        }
        outcome = self.begun.take_started().into_iter().fold(outcome, |all, start| all.and(start.finish()));
        self.begun.clear();
        outcome
    }

    /// ArgumentSize the message of a short receive.
    #[inline(always)]
    fn take(&self, (posted, into): Awaited<'_>) -> Result<tasuki_message::Received> {
        // SAFETY: borrowed mutably for longer than the scope, and remembered only here.
        let into = unsafe { std::slice::from_raw_parts_mut(into.0, posted.room()) };
        self.context.take("irecv", posted, into)
    }

    #[inline(never)]
    fn finish(&self, request: ScopeRequest) -> Result<Option<tasuki_message::Received>> {
        match request {
            ScopeRequest::Send(send, lent) => {
                let _lent = self.returned(lent);
                send.wait().map(|()| None)
            }
            ScopeRequest::Receive(receive, lent) => {
                let _lent = self.returned(lent);
                let mut receive = receive; // dropped first: one that failed may have the loan registered
                receive.take(&mut []).map(Some)
            }
        }
    }

    /// ArgumentSize messages back, or waits for their end if they are on their way. After that nothing is kept of any, also
    /// where taking one back unwinds.
    fn cancel_all(&self) {
        let rest = Rest(self);
        self.cancel_each();
        std::mem::forget(rest);
    }

    fn cancel_each(&self) {
        if self.context.worker().fork_guard().is_forked() {
            return; // the messages are the rank's, which goes on
        }
        self.begun.take_sent().for_each(|sent| self.context.discard_sent(sent));
        for place in 0.. {
            let Some(awaited) = self.begun.take_posted(place) else { break };
            awaited.into_iter().for_each(|(posted, _)| self.context.discard_posted(posted));
        }
        for place in 0.. {
            let Some(request) = self.begun.take_request(place) else { break };
            request.into_iter().for_each(|request| self.cancel(request));
        }
        drop(self.begun.take_started());
        self.begun.clear();
    }

    fn cancel(&self, request: ScopeRequest) {
        match request {
            ScopeRequest::Send(send, lent) => {
                let _lent = self.returned(lent);
                send.cancel();
            }
            ScopeRequest::Receive(receive, lent) => {
                let _lent = self.returned(lent);
                drop(receive);
            }
        }
    }

    fn returned(&self, loan: Option<Arc<RevocableBuffer>>) -> Returned<'_> {
        Returned { context: self.context, loan }
    }
}

/// What was lent to a message, which nobody uses any more when this is dropped. Whoever may use it is dropped before.
struct Returned<'c> {
    context: &'c Arc<Context>,
    loan: Option<Arc<RevocableBuffer>>,
}

impl Returned<'_> {
    /// It stays lent.
    fn keep(mut self) -> Option<Arc<RevocableBuffer>> {
        self.loan.take()
    }
}

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        if let Some(loan) = &self.loan
            && !self.context.worker().fork_guard().is_forked()
        {
            loan.revoke(|| self.context.worker().pause());
        }
    }
}

/// What a scope has not taken back yet, when taking something back unwinds.
struct Rest<'r, 'scope, 'env>(&'r Scope<'scope, 'env>);

impl Drop for Rest<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.cancel_each();
    }
}

impl<T: Pod + Send> StartedPlan for (&mut ChunkedPlan<T>, &mut [T]) {
    fn finish(self: Box<Self>) -> Result<()> {
        let (plan, values) = *self;
        plan.finish_into(values)
    }
}

#[cold]
fn no_such(context: &Context, call: &str, peer: Rank, slot: Slot) -> Error {
    let text =
        "no such message was begun in this scope and not waited for: begin it by s.send(..) or s.recv(..)";
    context.worker().fault(Cause::Argument(text.into()), || format!("{call}(rank {peer}, slot {})", slot.0))
}
