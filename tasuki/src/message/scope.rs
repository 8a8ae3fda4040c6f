//! Scopes: sends, receives and starts of plans on borrowed values, which all end before the scope does.
#![allow(unsafe_code)]
//! Unsafe: messages use borrowed memory, or the scope keeps its address for a later copy. No message uses the memory
//! any more when the scope ends, in every way out, and the scope ends before the borrow does, as with
//! `std::thread::scope`.

use crate::collective::chunked_plan::ChunkedPlan;
use crate::member::{about, place_of};
use crate::message::request::SharedValues;
use crate::message::scope_list::{ScopeList, ScopeMessage, ShortRecv, StartedPlan};
use crate::message::scope_request::{ScopeRequest, ValueType};
use crate::message::scope_values::{Kept, ScopeValues};
use crate::message::slot::{Received, Slot, bytes};
use crate::message::{Incoming, Peer};
use crate::onesided::GlobalSlice;
use crate::values::LayoutMut;
use crate::{Communicator, Pod, Rank, Result};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::engine::{Local, RevocableBuffer, StridedView, in_one_call};
use tasuki_message::{Context, MessageBuffer, SHORT_MAX, TypedSlot};

/// Begins messages and starts plans on values that are borrowed for `'env`. Made by
/// [`Communicator::scope`](crate::Communicator::scope). Only the thread that made it can use it.
///
/// ```
/// use tasuki::Slot;
/// tasuki::local(2, |job| {
///     let (peer, own, mut got) = (job.rank_after(1), [job.rank().index(); 10], [9; 10]);
///     job.world().scope(|s| {
///         s.recv(&mut got, peer, Slot(0))?; // borrowed until the scope ends
///         s.send(&own, peer, Slot(0))?;
///         Ok(())
///     })?;
///     assert_eq!(got, [peer.index(); 10]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    pub(super) context: &'scope Arc<Context>,
    pub(super) list: ScopeList<'scope>,
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
    /// [`RecvRequest`](crate::message::RecvRequest) had been dropped. If the sender writes to the memory of the receive
    /// itself, because it is job memory or because no memory can be mapped, the call waits for the transfer. The same
    /// holds if `body` panics.
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
        let _limit = self.limited();
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

    /// Begins a send. Borrowed values are read until the send has ended. Values that are passed by value are kept by
    /// the scope until then ([`ScopeValues`]).
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let (peer, edge, mut halo) = (job.rank_after(1), [1.0, 2.0], [0.0; 2]);
    ///     job.world().scope(|s| {
    ///         let mut received = s.recv(&mut halo, peer, Slot(0))?;
    ///         s.send([edge[0], edge[1] + 5.0], peer, Slot(0))?; // a temporary
    ///         assert_eq!(received.wait()?.count, 2);
    ///         Ok(())
    ///     })?;
    ///     assert_eq!(halo, [1.0, 7.0]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)] // the value goes from a register into the cache line
    pub fn send<V: ScopeValues<'env>>(
        &'scope self,
        values: V,
        to: impl Peer,
        slot: Slot,
    ) -> Result<ScopeRequest<'scope, ()>> {
        let Some(place) = place_of(self.context, to, "send")? else { return Ok(self.nobody(slot)) };
        match values.try_send_by(self.context, place, slot.of::<V::Value>()) {
            Some(sent) => self.list.sent(sent),
            None => values.send_in(self, place, slot.of::<V::Value>()).map_err(|error| about(to, error))?,
        }
        Ok(self.request::<V::Value, ()>(place, slot))
    }

    /// The request of a message that the scope has begun, of values of type `T`.
    #[inline(always)]
    fn request<T, V>(&'scope self, peer: Rank, slot: Slot) -> ScopeRequest<'scope, V> {
        ScopeRequest::new(self.context, &self.list, Some(peer), slot, const { &ValueType::of::<T>() })
    }

    /// The request of a message from or to nobody.
    fn nobody<V>(&'scope self, slot: Slot) -> ScopeRequest<'scope, V> {
        ScopeRequest::new(self.context, &self.list, None, slot, const { &ValueType::of::<u8>() })
    }

    /// Begins a send of bytes that need not stay in place. Returns false if there is none.
    pub(crate) fn try_begin_send(&self, bytes: &[u8], to: Rank, slot: TypedSlot) -> Result<bool> {
        let sent = self.context.try_begin_send(bytes, to, slot)?;
        Ok(sent.map(|sent| self.list.request(ScopeMessage::Send(sent, None))).is_some())
    }

    #[inline(never)]
    pub(crate) fn begin_send_borrowed<T: Pod>(
        &self,
        values: &'env [T],
        to: Rank,
        slot: TypedSlot,
    ) -> Result<()> {
        if self.try_begin_send(bytemuck::cast_slice(values), to, slot)? {
            return Ok(());
        }
        self.begin_send(Kept::Borrowed(values), to, slot)
    }

    pub(crate) fn begin_send<T: Pod>(&self, values: Kept<'env, T>, to: Rank, slot: TypedSlot) -> Result<()> {
        let buffer = match values {
            Kept::Own(values) => SharedValues::new(values).lend(false),
            Kept::Borrowed(values) => {
                let bytes: &[u8] = bytemuck::cast_slice(values);
                let place = Local(bytes.as_ptr().cast_mut());
                // SAFETY: the values are borrowed for longer than the scope, which revokes the buffer before it ends.
                unsafe { RevocableBuffer::new(place, bytes.len(), false, None) }
            }
        };
        self.begin_send_from(buffer.clone(), MessageBuffer::Unregistered(buffer), to, slot)
    }

    pub(crate) fn begin_send_blocks(
        &self,
        blocks: StridedView<'env>,
        to: Rank,
        slot: TypedSlot,
    ) -> Result<()> {
        // SAFETY: the blocks are borrowed for longer than the scope, which revokes the buffer before it ends.
        let buffer = unsafe { RevocableBuffer::of_view(blocks.span()) };
        self.begin_send_from(buffer.clone(), MessageBuffer::of_blocks(buffer, blocks), to, slot)
    }

    /// Begins a send of values in a buffer, which is revoked when the send has ended.
    fn begin_send_from(
        &self,
        buffer: Arc<RevocableBuffer>,
        values: MessageBuffer,
        to: Rank,
        slot: TypedSlot,
    ) -> Result<()> {
        let guard = revoke_on_drop(self.context, Some(buffer));
        let request = self.context.begin_send(values, to, slot)?;
        self.list.request(ScopeMessage::Send(request, guard.keep()));
        Ok(())
    }

    /// Begins a send of values of this rank's own job memory, which are read until the send has ended. Otherwise like
    /// [`send_from`](crate::message::send_from).
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let (table, peer) = (job.alloc_local::<usize>(20)?, job.rank_after(1));
    ///     table.fill(job.rank().index())?;
    ///     let mut got = [9; 10];
    ///     job.world().scope(|s| {
    ///         s.recv(&mut got, peer, Slot(0))?;
    ///         s.send_from(table.pointer().at(10).slice(10), peer, Slot(0))?;
    ///         Ok(())
    ///     })?;
    ///     assert_eq!(got, [peer.index(); 10]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_from<T: Pod>(
        &'scope self,
        from: GlobalSlice<T>,
        to: impl Peer,
        slot: Slot,
    ) -> Result<ScopeRequest<'scope, ()>> {
        let Some(place) = place_of(self.context, to, "send_from")? else { return Ok(self.nobody(slot)) };
        let (at, len) = (from.pointer().address(), bytes::<T>(from.len()));
        let request = self.context.begin_send_job(at, len, place, slot.of::<T>());
        self.list.request(ScopeMessage::Send(request.map_err(|error| about(to, error))?, None));
        Ok(self.request::<T, ()>(place, slot))
    }

    /// Begins a receive into borrowed values, which the program may not access until the receive has ended. A
    /// [`StridedMut`](crate::message::StridedMut) is made before the scope.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::StridedMut;
    /// tasuki::local(2, |job| {
    ///     let (peer, mut matrix) = (job.rank_after(1), [[1, 2, 0], [3, 4, 0]]);
    ///     let ([edge], [mut halo]) =
    ///         StridedMut::submatrices(matrix.as_flattened_mut(), 3, [[0..2, 1..2]], [[0..2, 2..3]]);
    ///     job.world().scope(|s| {
    ///         s.recv(&mut halo, peer, Slot(0))?;
    ///         s.send(edge, peer, Slot(0))?;
    ///         s.wait_all()
    ///     })?;
    ///     assert_eq!(matrix, [[1, 2, 2], [3, 4, 4]]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn recv<D: Incoming + ?Sized>(
        &'scope self,
        into: &'env mut D,
        from: impl Peer,
        slot: Slot,
    ) -> Result<ScopeRequest<'scope, Received>> {
        let Some(place) = place_of(self.context, from, "recv")? else { return Ok(self.nobody(slot)) };
        let begun = match into.layout_mut() {
            LayoutMut::Contiguous(values) => {
                self.recv_bytes::<D::Value>(bytemuck::cast_slice_mut(values), place, slot)
            }
            LayoutMut::Blocks(blocks) => self.recv_blocks(blocks, place, slot.of::<D::Value>()),
        };
        begun.map_err(|error| about(from, error))?;
        Ok(self.request::<D::Value, Received>(place, slot))
    }

    /// Begins a receive of values of type `T` into bytes that are borrowed for longer than the scope.
    #[inline(always)]
    fn recv_bytes<T: Pod>(&self, into: &mut [u8], from: Rank, slot: Slot) -> Result<()> {
        let is_short = into.len() <= SHORT_MAX && slot != Slot::ANY;
        let posted = || self.context.post_unless_kept(into.len(), from, slot.of::<T>());
        match if is_short { posted()? } else { None } {
            Some(posted) => {
                self.list.posted(posted, Local(into.as_mut_ptr()));
                Ok(())
            }
            None => self.begin_recv(into, from, slot.of::<T>()),
        }
    }

    /// Begins a receive that is not short, or for which a kept message may wait.
    #[inline(never)]
    fn begin_recv(&self, bytes: &mut [u8], from: Rank, slot: TypedSlot) -> Result<()> {
        // SAFETY: the values are borrowed for longer than the scope, which revokes the buffer before it ends.
        let buffer = unsafe { RevocableBuffer::new(Local(bytes.as_mut_ptr()), bytes.len(), true, None) };
        self.begin_recv_into(buffer.clone(), MessageBuffer::Unregistered(buffer), from, slot)
    }

    /// Begins a receive into blocks that are borrowed for longer than the scope. A short message is unpacked when it has
    /// arrived, so it takes the way of a long one.
    fn recv_blocks(&self, into: StridedView<'_>, from: Rank, slot: TypedSlot) -> Result<()> {
        // SAFETY: the blocks are borrowed for longer than the scope, which revokes the buffer before it ends.
        let buffer = unsafe { RevocableBuffer::of_view(into.span()) };
        self.begin_recv_into(buffer.clone(), MessageBuffer::of_blocks(buffer, into), from, slot)
    }

    /// Begins a receive into a buffer, which is revoked when the receive has ended.
    fn begin_recv_into(
        &self,
        buffer: Arc<RevocableBuffer>,
        into: MessageBuffer,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<()> {
        let guard = revoke_on_drop(self.context, Some(buffer));
        let request = self.context.begin_long_recv(into, from, slot)?;
        self.list.request(ScopeMessage::Receive(request, guard.keep()));
        Ok(())
    }

    /// Begins a receive into this rank's own job memory, like [`recv_into`](crate::message::recv_into).
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let (table, peer) = (job.alloc_local::<usize>(20)?, job.rank_after(1));
    ///     job.world().scope(|s| {
    ///         s.recv_into(table.pointer().at(10).slice(10), peer, Slot(0))?;
    ///         s.send([job.rank().index(); 10], peer, Slot(0))?;
    ///         Ok(())
    ///     })?;
    ///     assert_eq!(table.to_vec()?[10..], [peer.index(); 10]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_into<T: Pod>(
        &'scope self,
        into: GlobalSlice<T>,
        from: impl Peer,
        slot: Slot,
    ) -> Result<ScopeRequest<'scope, Received>> {
        let Some(place) = place_of(self.context, from, "recv_into")? else { return Ok(self.nobody(slot)) };
        let (at, len) = (into.pointer().address(), bytes::<T>(into.len()));
        let request = self.context.begin_recv_job(at, len, place, slot.of::<T>());
        self.list.request(ScopeMessage::Receive(request.map_err(|error| about(from, error))?, None));
        Ok(self.request::<T, Received>(place, slot))
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

    /// Waits for everything that the scope has begun, even if some of it fails. Returns the first error: short
    /// receives come first, then the other messages, then starts of plans, each in the order in which they were
    /// begun.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let (peer, first, second) = (job.rank_after(1), [1; 10], [2; 10]);
    ///     let (mut one, mut other) = ([0; 10], [0; 10]);
    ///     job.world().scope(|s| {
    ///         s.recv(&mut one, peer, Slot(0))?;
    ///         s.send(&first, peer, Slot(0))?;
    ///         s.wait_all()?; // now the second messages may begin on the same slot
    ///         s.recv(&mut other, peer, Slot(0))?;
    ///         s.send(&second, peer, Slot(0))?;
    ///         Ok(())
    ///     })?;
    ///     assert_eq!((one, other), ([1; 10], [2; 10]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn wait_all(&self) -> Result<()> {
        let (_call, mut outcome) = (in_one_call(), Ok(()));
        // First, while the others are in flight, because it takes a while.
        self.list.take_sent().for_each(|sent| self.context.discard_sent(sent));
        let mut index = 0;
        while let Some(receive) = self.list.take_posted(index) {
            let taken = receive.map_or(Ok(()), |receive| take(self.context, receive).map(drop));
            outcome = outcome.and(taken);
            index += 1;
        }
        index = 0;
        while let Some(request) = self.list.take_request(index) {
            let finished = request.map_or(Ok(()), |request| finish(self.context, request).map(drop));
            outcome = outcome.and(finished);
            index += 1;
        }
        outcome = self.list.take_started().into_iter().fold(outcome, |all, start| all.and(start.finish()));
        self.list.clear();
        outcome
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

    fn cancel(&self, request: ScopeMessage) {
        match request {
            ScopeMessage::Send(send, buffer) => {
                let _guard = revoke_on_drop(self.context, buffer);
                send.cancel();
            }
            ScopeMessage::Receive(receive, buffer) => {
                let _guard = revoke_on_drop(self.context, buffer);
                drop(receive);
            }
        }
    }
}

/// Takes the message of a short receive.
#[inline(always)]
pub(super) fn take(context: &Context, (posted, into): ShortRecv<'_>) -> Result<tasuki_message::Received> {
    // SAFETY: the values are borrowed mutably for longer than the scope, and no other entry of its list holds their
    // address.
    let into = unsafe { std::slice::from_raw_parts_mut(into.0, posted.room()) };
    context.take("irecv", posted, into)
}

/// Waits for a message. Returns what a receive has received.
#[inline(never)]
pub(super) fn finish(
    context: &Arc<Context>,
    message: ScopeMessage,
) -> Result<Option<tasuki_message::Received>> {
    match message {
        ScopeMessage::Send(send, buffer) => {
            let _guard = revoke_on_drop(context, buffer);
            let mut send = send; // dropped before `_guard`
            let sent = send.finish();
            if !send.is_over() {
                send.cancel(); // the send buffer is full, and the values are the program's again
            }
            sent.map(|()| None)
        }
        ScopeMessage::Receive(receive, buffer) => {
            let _guard = revoke_on_drop(context, buffer);
            let mut receive = receive; // dropped before `_guard`: a failed receive may still have the buffer registered
            receive.take(&mut []).map(Some)
        }
    }
}

fn revoke_on_drop(context: &Arc<Context>, buffer: Option<Arc<RevocableBuffer>>) -> RevokeOnDrop<'_> {
    RevokeOnDrop { context, buffer }
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
