//! Scopes: sends, receives and starts of plans on borrowed values, which all end before the scope does.
#![allow(unsafe_code)]
//! Unsafe: messages use borrowed memory, or the scope keeps its address for a later copy. No message uses the memory
//! any more when the scope ends, in every way out, and the scope ends before the borrow does, as with
//! `std::thread::scope`.

use crate::collective::Data;
use crate::collective::chunked_plan::ChunkedPlan;
use crate::member::place_of;
use crate::message::Peer;
use crate::message::scope_list::{ScopeList, ScopeRequest, ShortRecv, StartedPlan};
use crate::message::slot::{Received, Slot, bytes, received};
use crate::{Communicator, Error, GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Local, RevocableBuffer};
use tasuki_message::{Context, MessageBuffer, SHORT_MAX};

/// Begins messages and starts plans on values that are borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope). Only the thread that made it can use it.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Arc<Context>,
    list: ScopeList<'scope>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Communicator {
    /// Runs `body`, which may begin sends and receives on borrowed values through its [`Scope`]. All of them have
    /// ended when this call returns. If `body` succeeds, the call waits for them. If `body` fails or panics, the call
    /// cancels those whose peers have not started them.
    ///
    /// # Cancel safety
    ///
    /// A message that has met a cancelled receive is kept for the next receive, as if a
    /// [`RecvRequest`](crate::message::RecvRequest) had been dropped. If the sender writes to the memory of the receive itself,
    /// because it is job memory or because no memory can be mapped, the call waits for the transfer. The same holds if
    /// `body` panics.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(3, |job| {
    ///     let (west, east) = (job.rank_after(-1), job.rank_after(1));
    ///     let (own, mut received) = ([job.rank().0; 100], [0; 100]);
    ///     job.world().scope(|s| {
    ///         s.recv(&mut received, west, Slot(0))?;
    ///         s.send(&own, east, Slot(0))?;
    ///         s.wait_all()                        // work that needs neither buffer may come before it
    ///     })?;
    ///     assert_eq!(received, [west.0; 100]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        Scope::run(self.messages(), body)
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    fn run<R>(
        context: &Arc<Context>,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { context, list: ScopeList::default(), scope: PhantomData, env: PhantomData };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = body(&scope)?;
            scope.wait_all()?;
            Ok(value)
        }));
        scope.cancel_all(); // cancels nothing after a success
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Begins a send of borrowed values, which are read until the send has ended.
    #[inline(always)] // the value goes from a register into the cache line
    pub fn send<D: Data + ?Sized>(&'scope self, values: &'env D, to: impl Peer, slot: Slot) -> Result<()> {
        let Some(to) = place_of(self.context, to, "send")? else { return Ok(()) };
        let bytes: &[u8] = bytemuck::cast_slice(values.values());
        match self.context.try_send_short(bytes, to, slot.word()) {
            Some(sent) => {
                self.list.sent(sent);
                Ok(())
            }
            None => self.begin_send(bytes, to, slot),
        }
    }

    #[inline(never)]
    fn begin_send(&self, bytes: &[u8], to: Rank, slot: Slot) -> Result<()> {
        if let Some(sent) = self.context.try_begin_send(bytes, to, slot.word())? {
            self.list.request(ScopeRequest::Send(sent, None));
            return Ok(());
        }
        // SAFETY: the values are borrowed for longer than the scope, which revokes the buffer before it ends.
        let buffer =
            unsafe { RevocableBuffer::new(Local(bytes.as_ptr().cast_mut()), bytes.len(), false, None) };
        let guard = self.revoke_on_drop(Some(buffer.clone()));
        let request = self.context.begin_send(MessageBuffer::Unregistered(buffer), to, slot.word())?;
        self.list.request(ScopeRequest::Send(request, guard.keep()));
        Ok(())
    }

    /// Begins a send of `count` values of this rank's own job memory, which are read until the send
    /// has ended. Otherwise like [`Communicator::send_from`](crate::Communicator::send_from).
    pub fn send_from<T: Pod>(
        &'scope self,
        from: GlobalPtr<T>,
        count: usize,
        to: impl Peer,
        slot: Slot,
    ) -> Result<()> {
        let Some(to) = place_of(self.context, to, "send_from")? else { return Ok(()) };
        let request = self.context.begin_send_job(from.address(), bytes::<T>(count), to, slot.word())?;
        self.list.request(ScopeRequest::Send(request, None));
        Ok(())
    }

    /// Begins a receive into borrowed values, which the program may not access until the receive has ended.
    #[inline(always)]
    pub fn recv<D: Data + ?Sized>(
        &'scope self,
        into: &'env mut D,
        from: impl Peer,
        slot: Slot,
    ) -> Result<()> {
        let Some(from) = place_of(self.context, from, "recv")? else { return Ok(()) };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into.values_mut());
        if bytes.len() > SHORT_MAX || slot == Slot::ANY {
            return self.begin_recv(bytes, from, slot);
        }
        let Some(posted) = self.context.post_unless_kept(bytes.len(), from, slot.word())? else {
            return self.begin_recv(bytes, from, slot);
        };
        self.list.posted(posted, Local(bytes.as_mut_ptr()));
        Ok(())
    }

    /// Begins a receive that is not short, or for which a kept message may wait.
    #[inline(never)]
    fn begin_recv(&self, bytes: &mut [u8], from: Rank, slot: Slot) -> Result<()> {
        // SAFETY: the values are borrowed for longer than the scope, which revokes the buffer before it ends.
        let buffer = unsafe { RevocableBuffer::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        let guard = self.revoke_on_drop(Some(buffer.clone()));
        let request = self.context.begin_long_recv(MessageBuffer::Unregistered(buffer), from, slot.word())?;
        self.list.request(ScopeRequest::Receive(request, guard.keep()));
        Ok(())
    }

    /// Begins a receive of up to `count` values into this rank's own job memory, like
    /// [`Communicator::recv_into`](crate::Communicator::recv_into).
    pub fn recv_into<T: Pod>(
        &'scope self,
        into: GlobalPtr<T>,
        count: usize,
        from: impl Peer,
        slot: Slot,
    ) -> Result<()> {
        let Some(from) = place_of(self.context, from, "recv_into")? else { return Ok(()) };
        let request = self.context.begin_recv_job(into.address(), bytes::<T>(count), from, slot.word())?;
        self.list.request(ScopeRequest::Receive(request, None));
        Ok(())
    }

    /// Starts a plan with borrowed values, as [`ChunkedPlan::start`] does with owned ones. The program may not access
    /// them until [`wait_all`](Scope::wait_all) returns or the scope ends. If an error or a panic leaves the scope,
    /// only the chunks that have been sent so far were sent, and the plan cannot be used any more.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     let mut total = job.world().allreduce_init::<u64>(16, Sum)?.chunked()?;
    ///     let mut counts = vec![1; 50];
    ///     job.world().scope(|s| {
    ///         s.start(&mut total, &mut counts)?;
    ///         (0..1000_u64).for_each(|number| drop(std::hint::black_box(number))); // work meanwhile
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
        self.list.started(Box::new((plan, values)));
        Ok(())
    }

    /// Waits for the send to `to` on a slot. Errors: those of the send; this scope has no such send.
    pub fn wait_send(&self, to: impl Peer, slot: Slot) -> Result<()> {
        let Some(to) = place_of(self.context, to, "wait_send")? else { return Ok(()) };
        if let Some(sent) = self.list.find_sent(to, slot) {
            self.context.discard_sent(sent);
            return Ok(());
        }
        let request =
            self.list.find_send(to, slot).ok_or_else(|| no_such(self.context, "wait_send", to, slot))?;
        self.finish(request).map(drop)
    }

    /// Waits for the receive from `from` on a slot and returns what was received, counted in values of type `T`.
    /// Errors: those of the receive; this scope has no such receive.
    pub fn wait_recv<T: Pod>(&self, from: impl Peer, slot: Slot) -> Result<Received> {
        let Some(from) = place_of(self.context, from, "wait_recv")? else {
            return Ok(Received::nothing(slot));
        };
        if let Some(receive) = self.list.find_posted(from, slot) {
            return received::<T>(self.context, self.take(receive)?);
        }
        let request = self
            .list
            .find_receive(from, slot)
            .ok_or_else(|| no_such(self.context, "wait_recv", from, slot))?;
        received::<T>(self.context, self.finish(request)?.expect("a receive returns what it received"))
    }

    /// Waits for everything that the scope has begun, even if some of it fails. Returns the first error: short
    /// receives come first, then the other messages, then starts of plans, each in the order in which they were
    /// begun.
    pub fn wait_all(&self) -> Result<()> {
        let mut outcome = Ok(());
        // First, while the others are in flight, because it takes a while.
        self.list.take_sent().for_each(|sent| self.context.discard_sent(sent));
        let mut index = 0;
        while let Some(receive) = self.list.take_posted(index) {
            let taken = receive.map_or(Ok(()), |receive| self.take(receive).map(drop));
            outcome = outcome.and(taken);
            index += 1;
        }
        index = 0;
        while let Some(request) = self.list.take_request(index) {
            let finished = request.map_or(Ok(()), |request| self.finish(request).map(drop));
            outcome = outcome.and(finished);
            index += 1;
        }
        outcome = self.list.take_started().into_iter().fold(outcome, |all, start| all.and(start.finish()));
        self.list.clear();
        outcome
    }

    /// Takes the message of a short receive.
    #[inline(always)]
    fn take(&self, (posted, into): ShortRecv<'_>) -> Result<tasuki_message::Received> {
        // SAFETY: the values are borrowed mutably for longer than the scope, and no other index holds their address.
        let into = unsafe { std::slice::from_raw_parts_mut(into.0, posted.room()) };
        self.context.take("irecv", posted, into)
    }

    #[inline(never)]
    fn finish(&self, request: ScopeRequest) -> Result<Option<tasuki_message::Received>> {
        match request {
            ScopeRequest::Send(send, buffer) => {
                let _guard = self.revoke_on_drop(buffer);
                send.wait().map(|()| None)
            }
            ScopeRequest::Receive(receive, buffer) => {
                let _guard = self.revoke_on_drop(buffer);
                let mut receive = receive; // dropped before `_guard`: a failed receive may still have the buffer registered
                receive.take(&mut []).map(Some)
            }
        }
    }

    /// Cancels all messages, or waits for the end of those that are in flight. After that the scope holds no message,
    /// even if a cancellation unwinds.
    fn cancel_all(&self) {
        let guard = CancelOnUnwind(self);
        self.cancel_each();
        std::mem::forget(guard);
    }

    fn cancel_each(&self) {
        if self.context.worker().fork_guard().is_forked() {
            return; // the messages belong to the rank, which goes on
        }
        self.list.take_sent().for_each(|sent| self.context.discard_sent(sent));
        for index in 0.. {
            let Some(receive) = self.list.take_posted(index) else { break };
            receive.into_iter().for_each(|(posted, _)| self.context.discard_posted(posted));
        }
        for index in 0.. {
            let Some(request) = self.list.take_request(index) else { break };
            request.into_iter().for_each(|request| self.cancel(request));
        }
        drop(self.list.take_started());
        self.list.clear();
    }

    fn cancel(&self, request: ScopeRequest) {
        match request {
            ScopeRequest::Send(send, buffer) => {
                let _guard = self.revoke_on_drop(buffer);
                send.cancel();
            }
            ScopeRequest::Receive(receive, buffer) => {
                let _guard = self.revoke_on_drop(buffer);
                drop(receive);
            }
        }
    }

    fn revoke_on_drop(&self, buffer: Option<Arc<RevocableBuffer>>) -> RevokeOnDrop<'_> {
        RevokeOnDrop { context: self.context, buffer }
    }
}

/// Revokes a message's buffer when it is dropped. The message that may use the buffer is dropped before.
struct RevokeOnDrop<'c> {
    context: &'c Arc<Context>,
    buffer: Option<Arc<RevocableBuffer>>,
}

impl RevokeOnDrop<'_> {
    /// Leaves the buffer with its message.
    fn keep(mut self) -> Option<Arc<RevocableBuffer>> {
        self.buffer.take()
    }
}

impl Drop for RevokeOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(buffer) = &self.buffer
            && !self.context.worker().fork_guard().is_forked()
        {
            buffer.revoke(|| self.context.worker().pause());
        }
    }
}

/// Cancels the remaining messages of a scope when the cancellation of one unwinds.
struct CancelOnUnwind<'r, 'scope, 'env>(&'r Scope<'scope, 'env>);

impl Drop for CancelOnUnwind<'_, '_, '_> {
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
    let text = "this scope has no such message that was not waited for: begin it by s.send(..) or s.recv(..)";
    context.worker().fault(Cause::Argument(text.into()), || format!("{call}(member {peer}, slot {})", slot.0))
}
