//! Communicators: ordered groups of ranks with a message space of their own.

use crate::data::RequestValues;
use crate::engine::Cause;
use crate::member::{about, place_of};
use crate::message::request::{RecvRequest, SendRequest, receive_vec};
use crate::message::slot::{Received, Slot, not_received, not_sent, received};
use crate::message::{Incoming, Outgoing, Peer};
use crate::start::Helper;
use crate::{Error, Member, Pod, Rank, Request, Result};
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::engine::{LimitGuard, Worker};
use tasuki_message::{Context, TypedSlot};

/// An ordered group of ranks, its *members*, with a message space of its own. The calls of a communicator name a member
/// by its number in the group ([`Member`]) or by its rank in the job ([`Rank`](crate::Rank)), which they translate.
///
/// A message is matched at its sender: the receiver writes into a slot at the sender where the message may go, and
/// the sender writes the message there. No message is queued and no queue is searched, so outstanding receives cost
/// nothing. A send returns when its values may be reused, which is after its receive was posted, unless the message
/// is buffered ([`set_send_buffer`](crate::message::set_send_buffer)).
///
/// Two calls that use the same slot in the same direction at the same time are an error, whatever the timing.
/// Messages of at most 48 bytes are the cheapest.
///
/// ```
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     if job.rank() == 0 {
///         world.send(&[1.5_f64; 8], Rank(1), Slot(3))?;
///     } else {
///         let mut row = [0.0_f64; 10];
///         let got = world.recv(&mut row, Rank(0), Slot(3))?;
///         assert_eq!((got.count, &row[..8]), (8, &[1.5; 8][..]));
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Communicator {
    inner: Arc<tasuki_collective::Communicator>,
    helper: Weak<Helper>,
    limit: Option<Duration>,
}

/// The communicator inside, whose calls of this thread are limited as long as this value lives.
pub(crate) struct Limited<'c> {
    inner: &'c tasuki_collective::Communicator,
    _limit: Option<LimitGuard>,
}

impl Deref for Limited<'_> {
    type Target = tasuki_collective::Communicator;

    #[inline(always)]
    fn deref(&self) -> &tasuki_collective::Communicator {
        self.inner
    }
}

impl Communicator {
    /// The default number of slots, for each pair and direction.
    pub(crate) const SLOTS: u32 = 1024;

    /// The number of this rank among the members.
    ///
    /// ```
    /// tasuki::local(4, |job| {
    ///     let half = job.world().split(job.rank().index() % 2)?; // ranks 0 and 2, ranks 1 and 3
    ///     assert_eq!(half.rank(), job.rank().index() / 2);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn rank(&self) -> Member {
        Member(self.inner.rank().0)
    }

    /// The number of members.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let part = job.world().split(usize::from(job.rank() == 2))?; // ranks 0 and 1, rank 2
    ///     assert_eq!(part.size(), if job.rank() == 2 { 1 } else { 2 });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// Sends values to `to` on a slot: any [`Data`](crate::collective::Data), or
    /// [`Strided`](crate::message::Strided) values. A send to `None` returns at once ([`Peer`]).
    ///
    /// Returns when `values` may be reused: the receive was posted and the values are in place, or in a ring on their
    /// way; or the message was buffered. If the receiver withdraws its receive at that moment, the message may still
    /// match it; then the next receive gets the message, on that slot or on any slot. The messages of a slot arrive
    /// in order. Cost: one cache line for up to 48 bytes. Source: FMPL, sections 3 and 4.
    ///
    /// Errors: the slot is busy or out of range; the receive has less room than the message, or is of another type
    /// (nothing is sent, and the receiver gets an error, too, unless it has withdrawn the receive meanwhile; of types
    /// that are no numbers it may be the receiver alone that finds the difference); the send buffer that
    /// [`set_send_buffer`](crate::message::set_send_buffer) has made is full; the peer died, or left without having
    /// posted the receive; the time limit: then the message was not sent.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut row = vec![1.5; 100];
    ///         job.world().send(&row, Rank(1), Slot(0))?;
    ///         row.fill(0.0); // the message has the old values
    ///         job.world().send(&row[..10], Rank(1), Slot(0))?;
    ///     } else {
    ///         let mut row = [2.0; 100];
    ///         job.world().recv(&mut row, Rank(0), Slot(0))?;
    ///         assert_eq!(row, [1.5; 100]);
    ///         assert_eq!(job.world().recv(&mut row, Rank(0), Slot(0))?.count, 10);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)] // the value goes from a register into the cache line
    pub fn send<D: Outgoing + ?Sized>(&self, values: &D, to: impl Peer, slot: Slot) -> Result<()> {
        let Some(place) = place_of(self.messages(), to, "send")? else { return Ok(()) };
        let sent = match self.limit {
            None => values.send_by(self.messages(), place, slot.of::<D::Value>()),
            Some(_) => self.send_limited(values, place, slot.of::<D::Value>()),
        };
        sent.map_err(|error| about(to, not_sent::<D::Value>(error)))
    }

    #[cold]
    fn send_limited<D: Outgoing + ?Sized>(&self, values: &D, to: Rank, slot: TypedSlot) -> Result<()> {
        let _limit = self.limited();
        values.send_by(self.messages(), to, slot)
    }

    /// Receives values from `from` on a slot, or on any slot ([`Slot::ANY`]), into any
    /// [`Data`](crate::collective::Data), or into [`StridedMut`](crate::message::StridedMut) values. A receive from
    /// `None` returns at once ([`Peer`]).
    ///
    /// Returns when all values of the message are in `into`. Errors: the slot is busy or out of range; the message has
    /// more values than `into` has room for, or values of another type (nothing is written, and the sender gets an
    /// error, too, as [`send`](Self::send) says); the message was sent as bytes, whose number is no multiple of the
    /// size of a value (then `into` holds the bytes); the peer died, or left without having sent the message; the time
    /// limit, after which the next receive gets the message.
    ///
    /// Cost: a posting at the sender, and one cache line for up to 48 bytes. This rank copies a longer message out of
    /// the sender's ring; that is the only copy here, and none is made if the message goes in place.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         return job.world().send(&[1, 2, 3], Rank(1), Slot(7));
    ///     }
    ///     let mut room = [0; 10];
    ///     let got = job.world().recv(&mut room, Rank(0), Slot::ANY)?;
    ///     assert_eq!((got.slot, got.count, &room[..3]), (Slot(7), 3, &[1, 2, 3][..]));
    ///     let got = job.world().recv(&mut room, None::<Rank>, Slot(0))?; // from nobody
    ///     assert_eq!(got.count, 0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn recv<D: Incoming + ?Sized>(&self, into: &mut D, from: impl Peer, slot: Slot) -> Result<Received> {
        let Some(place) = place_of(self.messages(), from, "recv")? else {
            return Ok(Received::nothing(slot));
        };
        let got = match self.limit {
            None => into.recv_by(self.messages(), place, slot.of::<D::Value>()),
            Some(_) => self.recv_limited(into, place, slot.of::<D::Value>()),
        };
        let got = got.map_err(|error| about(from, not_received::<D::Value>(error)))?;
        received::<D::Value>(self.messages(), got)
    }

    #[cold]
    fn recv_limited<D: Incoming + ?Sized>(
        &self,
        into: &mut D,
        from: Rank,
        slot: TypedSlot,
    ) -> Result<tasuki_message::Received> {
        let _limit = self.limited();
        into.recv_by(self.messages(), from, slot)
    }

    /// Receives a message of any length from `from` on a slot, or on any slot ([`Slot::ANY`]), into a new vector. A
    /// receive from `None` returns an empty one at once ([`Peer`]).
    ///
    /// Errors: those of [`recv`](Self::recv), but for the length; there is no memory for the message. If the message
    /// was sent as bytes, and their number is no multiple of the size of `T`, the message waits for the next receive of
    /// its slot, or of any slot.
    ///
    /// Cost: that of a receive, without another round trip, and a few allocations. The vector is made when the first
    /// bytes have come, and the message is copied once, from the sender's ring into the vector. It never goes in place:
    /// where the sender of a long message writes into the buffer of [`recv`](Self::recv) itself
    /// (`TASUKI_DIRECT_BYTES_MIN`), a receive that knows the length may be faster.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let world = job.world();
    ///     for count in [0, 6, 1_000_000] {
    ///         if job.rank() == 0 {
    ///             world.send(&vec![count; count], Rank(1), Slot(3))?;
    ///         } else {
    ///             let (values, got) = world.recv_vec::<usize>(Rank(0), Slot(3))?;
    ///             assert_eq!((values, got.count), (vec![count; count], count));
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_vec<T: Pod>(&self, from: impl Peer, slot: Slot) -> Result<(Vec<T>, Received)> {
        let Some(place) = place_of(self.messages(), from, "recv_vec")? else {
            return Ok((Vec::new(), Received::nothing(slot)));
        };
        let _limit = self.limited();
        let got = receive_vec("recv_vec", self.messages(), place, slot.of::<T>());
        let (values, got) = got.map_err(|error| about(from, not_received::<T>(error)))?;
        Ok((values, received::<T>(self.messages(), got)?))
    }

    /// This communicator, with a limit on the time of each call that waits. [`Job::within`](crate::Job::within) says
    /// what a call leaves behind that has reached its limit.
    ///
    /// A [`scope`](Self::scope) with its end is one call. Communicators made from this one have no limit. Cost: two
    /// counts of references; keep the result in a loop.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::{Rank, Slot, Sum};
    /// tasuki::local(2, |job| {
    ///     let (world, mut row) = (job.world().within(Duration::from_secs(60)), [0_u64; 10]);
    ///     if job.rank() == 0 {
    ///         world.send(&[1_u64; 10], Rank(1), Slot(0))?;
    ///     } else {
    ///         world.recv(&mut row, Rank(0), Slot(0))?;
    ///     }
    ///     assert_eq!(world.allreduce(&row[0], Sum)?, 1);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn within(&self, limit: Duration) -> Communicator {
        Communicator { limit: Some(limit), ..self.clone() }
    }

    /// The limit on the time of each call of this handle.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Limits the calls of this thread until the result is dropped, if this handle has a limit.
    #[inline(always)]
    pub(crate) fn limited(&self) -> Option<LimitGuard> {
        self.limit.map(|limit| self.messages().worker().limited(limit))
    }

    /// Begins a send of `values`, a number, an array or a vector ([`RequestValues`]). The request's wait, or `.await`,
    /// returns them; the slot is busy until then.
    ///
    /// Does not wait; [who makes progress](crate::engine#progress). The messages of a slot arrive in the order in
    /// which they were begun. Errors of this call: the slot is busy or out of range; there is no such rank. The wait
    /// reports all other errors. Cost: that of [`Communicator::send`], and a heap allocation if the message cannot be
    /// sent at once.
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut sends = Vec::new();
    ///     for slot in 0..3 {
    ///         sends.push(job.world().isend(vec![slot; 1000], job.rank_after(1), Slot(slot))?);
    ///     }
    ///     for slot in 0..3 {
    ///         let (values, _) = job.world().recv_vec::<usize>(job.rank_after(-1), Slot(slot))?;
    ///         assert_eq!(values, [slot; 1000]);
    ///     }
    ///     assert_eq!(sends.remove(0).wait()?, [0; 1000]); // the vector comes back
    ///     tasuki::wait_all(sends).map(drop)
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn isend<D: RequestValues>(
        &self,
        values: D,
        to: impl Peer,
        slot: Slot,
    ) -> Result<SendRequest<D::Value, D>> {
        let place = place_of(self.messages(), to, "isend")?;
        SendRequest::new(self.messages(), values, place, slot).map_err(|error| about(to, error))
    }

    /// Begins a receive into `values`, a number, an array or a vector ([`RequestValues`]), whose length is the room for
    /// the message. The request's wait, or `.await`, returns them, a vector shortened to the length of the message; the
    /// slot is busy until then. To receive into the same vector again, `resize` it first.
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut send = job.world().isend(vec![1, 2, 3], job.rank_after(1), Slot(0))?;
    ///     let (got, _) = job.world().irecv(vec![0; 10], job.rank_after(-1), Slot(0))?.wait()?;
    ///     assert_eq!(got, [1, 2, 3]);
    ///     send.wait().map(drop)
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Does not wait; [who makes progress](crate::engine#progress). Dropping the request withdraws the receive
    /// and loses no message ([`RecvRequest`]). Errors of this call: those of [`Communicator::isend`]. Later errors:
    /// those of [`Communicator::recv`]. Cost: that of a receive, and a heap allocation for more than 48 bytes.
    pub fn irecv<D: RequestValues>(
        &self,
        values: D,
        from: impl Peer,
        slot: Slot,
    ) -> Result<RecvRequest<D::Value, D>> {
        let place = place_of(self.messages(), from, "irecv")?;
        RecvRequest::new(self.messages(), values, place, slot).map_err(|error| about(from, error))
    }

    /// Begins a receive of a message of any length, like [`recv_vec`](Self::recv_vec). The request's wait, or `.await`,
    /// returns its values; the slot is busy until then.
    ///
    /// ```
    /// use tasuki::{Request, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut receive = job.world().irecv_vec::<u64>(job.rank_after(-1), Slot(0))?;
    ///     job.world().send(&[1_u64, 2, 3], job.rank_after(1), Slot(0))?;
    ///     assert_eq!(receive.wait()?.0, [1, 2, 3]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Does not wait, and loses no message when it is dropped, like [`irecv`](Self::irecv), whose errors it has. Later
    /// errors: those of [`recv_vec`](Self::recv_vec).
    pub fn irecv_vec<T: Pod>(&self, from: impl Peer, slot: Slot) -> Result<RecvRequest<T>> {
        let place = place_of(self.messages(), from, "irecv_vec")?;
        RecvRequest::of_any_length(self.messages(), place, (slot, slot.of::<T>()))
            .map_err(|error| about(from, error))
    }

    /// Sends values to one member, and receives from one, which may be the same member, on the same slot. Neither waits
    /// for the other. `None` in place of a member is nobody ([`Peer`]).
    ///
    /// Returns when the message that comes is in `into`, and when `values` may be reused. Errors and cost: those of
    /// [`Communicator::send`] and [`Communicator::recv`].
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(3, |job| {
    ///     let (west, east, mut from_west) = (job.rank_after(-1), job.rank_after(1), 0);
    ///     let got = job.world().sendrecv(&job.rank().0, east, &mut from_west, west, Slot(0))?;
    ///     assert_eq!((from_west, got.count), (west.0, 1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn sendrecv<A: Outgoing + ?Sized, B: Incoming + ?Sized>(
        &self,
        values: &A,
        to: impl Peer,
        into: &mut B,
        from: impl Peer,
        slot: Slot,
    ) -> Result<Received> {
        self.scope(|s| {
            let mut received = s.recv(into, from, slot)?;
            let mut sent = s.send(values, to, slot)?;
            let got = received.wait()?;
            sent.wait().map(|()| got)
        })
    }

    /// Makes a communicator of the same members, in the same order, to go on with after this one has failed.
    ///
    /// A collective call that fails on one member leaves the members without a common order of calls, so the whole
    /// communicator fails ([rules](crate::collective#rules)). Messages of the program ([`send`](Self::send) and its
    /// kin) go on. The new communicator shares nothing with the old one.
    ///
    /// Barriers and allocations of the [`Job`](crate::Job) are calls of the world until the world has failed, and go on
    /// afterwards without being compared with its calls, or with those of the new communicator: ranks in one of them and
    /// others in a collective call wait for ever, unless there is a time limit. If the failure was in one of them, all ranks make a
    /// [`barrier`](crate::Job::barrier) next: it completes what some of them had begun.
    ///
    /// A member that waits in a call of the old communicator meanwhile, which this one has not made, gets an error, and
    /// comes to this call, too.
    ///
    /// Collective ([rules](crate::collective#rules)), once for each communicator. Errors: a rank died or left; the
    /// communicator was recreated before; a member has no signals left. Cost: an allgather of 40 bytes by slots of its
    /// own. Memory: what the failed communicator has used, 8 KiB for each pair that has exchanged messages and more, is
    /// freed when all members have dropped it and recreate, split or [quiesce](crate::collective::quiesce) the new one,
    /// or the one from which it was split. What the world has used stays until the job ends.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let world = job.world();
    ///     let mine = vec![1_u64; if job.rank() == 1 { 2 } else { 1 }]; // a bug: lengths differ
    ///     assert!(world.allgather(&mine).is_err());
    ///     let world = world.recreate()?;
    ///     assert_eq!(world.allgather(&[job.rank().0])?, [0, 1, 2]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recreate(&self) -> Result<Communicator> {
        Ok(self.another(self.inner().recreate()?))
    }

    /// A communicator beside this one.
    pub(crate) fn another(&self, inner: tasuki_collective::Communicator) -> Communicator {
        Communicator { inner: Arc::new(inner), helper: self.helper.clone(), limit: None }
    }

    pub(crate) fn world(
        worker: &Arc<Worker>,
        helper: &Arc<Helper>,
        selection: tasuki_schedule::Selection,
    ) -> Result<Communicator> {
        let selection = tasuki_schedule::Selection { has_no_helper: !helper.may_start(), ..selection };
        let inner =
            Arc::new(tasuki_collective::Communicator::world(worker.clone(), Communicator::SLOTS, selection)?);
        Ok(Communicator { inner, helper: Arc::downgrade(helper), limit: None })
    }

    /// Returns the member that is the root. `call` names the call.
    #[inline]
    pub(crate) fn root<P: Peer>(&self, root: P, call: &'static str) -> Result<Member> {
        let refused = |cause| self.refused(cause, call);
        let member = root.member(self.messages()).map_err(refused)?.ok_or_else(|| {
            refused(Cause::Argument("the root is None: a collective call needs a member as its root".into()))
        })?;
        // A rank of a communicator of all ranks, which has its own number as a member.
        if !P::IS_MEMBER && member.index() >= self.size() {
            return Err(refused(Cause::NoSuchRank { rank: member.place(), size: self.size() }));
        }
        Ok(member)
    }

    /// Refuses a collective call because of its arguments. The communicator fails on all members.
    #[cold]
    #[inline(never)]
    pub(crate) fn refused(&self, cause: Cause, call: &'static str) -> Error {
        self.inner.refuse(cause, call, &|| format!("{call}({})", self.inner.name()))
    }

    pub(crate) fn abort_on_failure(&self, aborts: bool) {
        self.inner.abort_on_failure(aborts);
    }

    /// The communicator inside. Its calls have the limit of this handle while the result lives.
    #[inline(always)]
    pub(crate) fn inner(&self) -> Limited<'_> {
        Limited { inner: &self.inner, _limit: self.limited() }
    }

    /// The communicator inside, whose calls have no limit.
    #[inline(always)]
    pub(crate) fn inside(&self) -> &tasuki_collective::Communicator {
        &self.inner
    }

    pub(crate) fn start_helper(&self) {
        self.helper.upgrade().iter().for_each(|helper| helper.start());
    }

    /// The message context of the communicator.
    #[inline(always)]
    pub(crate) fn messages(&self) -> &Arc<Context> {
        self.inner.messages()
    }
}
