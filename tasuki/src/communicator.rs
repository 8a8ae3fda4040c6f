//! Communicators: ranks that exchange messages.

use crate::message::request::{RecvRequest, SendRequest};
use crate::message::scope::Scope;
use crate::start::Helper;
use crate::{Cause, GlobalPtr, Pod, Rank, Result};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::engine::Worker;
use tasuki_message::Context;

/// Slots of a communicator unless it is told otherwise.
const SLOTS: u32 = 1024;
/// The most that it can have.
const SLOTS_MAX: u32 = 1 << 20;

/// The tag of a message: the number of a slot that belongs to one pair of ranks, one direction and one communicator.
/// A slot serves one message at a time; several outstanding messages use several slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// In a receive: whichever slot the next message is sent on. At most one such receive for each sender can be
    /// outstanding. A send looks for a receive on its own slot first; between the two kinds there is no order: so a
    /// message that was sent while a receive on its slot was being withdrawn may come after a later one.
    pub const ANY: Slot = Slot(Context::ANY);
}

/// What came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// On which slot.
    pub slot: Slot,
    /// From whom.
    pub source: Rank,
    /// How many values: as many as were sent, which may be fewer than there was room for.
    pub count: usize,
}

/// Ranks that exchange messages in a context of their own.
///
/// A message is matched at its sender: the receiver says where it may go, in a slot that belongs to sender, receiver,
/// slot number and communicator; the sender writes it there. Nothing is queued or searched, and how many receives are
/// outstanding costs nothing. A send returns when its values may be used again, which is after its receive was posted,
/// unless the spool takes it ([`Job::set_send_buffer`](crate::Job::set_send_buffer)).
///
/// Two calls that use one slot in one direction at once are an error, whatever the timing. Messages of at most 48
/// bytes cost least.
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
}

impl Communicator {
    pub(crate) fn world(
        worker: &Arc<Worker>,
        helper: &Arc<Helper>,
        by: tasuki_schedule::Selection,
    ) -> Result<Communicator> {
        let by = tasuki_schedule::Selection { has_no_helper: !helper.may_come(), ..by };
        let inner = Arc::new(tasuki_collective::Communicator::world(worker.clone(), SLOTS, by)?);
        Ok(Communicator { inner, helper: Arc::downgrade(helper) })
    }

    pub(crate) fn inner(&self) -> &tasuki_collective::Communicator {
        &self.inner
    }

    pub(crate) fn start_helper(&self) {
        self.helper.upgrade().iter().for_each(|helper| helper.start());
    }

    /// Its messages.
    #[inline(always)]
    pub(crate) fn messages(&self) -> &Arc<Context> {
        self.inner.messages()
    }

    /// This rank's place among the members, by which the calls of this communicator name it.
    pub fn rank(&self) -> Rank {
        self.inner.rank()
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// How many slots a pair has in each direction: they are numbered from 0.
    pub fn slots(&self) -> u32 {
        self.messages().slots()
    }

    /// New communicators of the members that name the same colour, placed by `key` and then as they are here. `None`
    /// for a member that names no colour.
    ///
    /// Collective. Messages of one communicator never meet those of another. Nothing is made for its pairs before they
    /// exchange a message; what they have then is not given back when the communicator is dropped, so a job can make
    /// some thousands that are used. Errors: as of [`Communicator::allgather`]. Costs an allgather of 40 bytes.
    pub fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Communicator>> {
        self.split_with_slots(colour, key, SLOTS)
    }

    /// The same with another number of slots, 1 to 2^20, for each pair and direction; the same on each new
    /// communicator's members. Errors: it is out of range, or they disagree.
    pub fn split_with_slots(
        &self,
        colour: Option<u64>,
        key: i64,
        slots: u32,
    ) -> Result<Option<Communicator>> {
        if !(1..=SLOTS_MAX).contains(&slots) {
            let cause = Cause::Argument(format!("{slots} slots: a communicator has 1 to {SLOTS_MAX}"));
            return Err(self.messages().worker().fault(cause, || "split_with_slots".into()));
        }
        let made = self.inner.split(colour, key, slots)?;
        Ok(made.map(|inner| Communicator { inner: Arc::new(inner), helper: self.helper.clone() }))
    }

    /// Sends values to `to` on a slot.
    ///
    /// Returns when `values` may be used again: when the receive was posted and the values are there, or on their way
    /// through a buffer; or when the spool has a copy. A receive that its rank withdraws in that moment may be met all
    /// the same: then the next gets the message, on that slot or on any. Messages on a slot arrive in their order.
    /// Moves other messages of the rank on while it waits. Up to 48 bytes cost one cache line. Source: FMPL, sections 3
    /// and 4.
    ///
    /// Errors: the slot is busy or out of range; the receive has less room (then nothing is sent, and the receiver is
    /// told, too); the spool is full; the peer died, or left without having posted the receive.
    #[inline(always)] // a value goes from register to line
    pub fn send<T: Pod>(&self, values: &[T], to: Rank, slot: Slot) -> Result<()> {
        self.messages().send(bytemuck::cast_slice(values), to, slot.0)
    }

    /// Receives values from `from` on a slot, or on any ([`Slot::ANY`]).
    ///
    /// Returns when all values of the message are in `into`. Errors: the slot is busy or out of range; the message has
    /// more values than there is room for (then nothing is written, and its sender is told, too); the peer died, or
    /// left without having sent it.
    #[inline(always)]
    pub fn recv<T: Pod>(&self, into: &mut [T], from: Rank, slot: Slot) -> Result<Received> {
        received::<T>(self.messages(), self.messages().recv(bytemuck::cast_slice_mut(into), from, slot.0)?)
    }

    /// The same, for at most that long. When the time has run out nothing was received, nothing will be written into
    /// `into` later, and the message is for the next receive on the slot. A message that is on its way then is waited
    /// for.
    pub fn recv_within<T: Pod>(
        &self,
        into: &mut [T],
        from: Rank,
        slot: Slot,
        limit: Duration,
    ) -> Result<Received> {
        received::<T>(
            self.messages(),
            self.messages().recv_within(bytemuck::cast_slice_mut(into), from, slot.0, limit)?,
        )
    }

    /// Sends `count` values of this rank's own job memory. As [`Communicator::send`]; the sender copies them straight
    /// to their place where the receive names job memory, too.
    pub fn send_from<T: Pod>(&self, from: GlobalPtr<T>, count: usize, to: Rank, slot: Slot) -> Result<()> {
        self.messages().send_job(from.address(), bytes::<T>(count), to, slot.0)
    }

    /// Receives into this rank's own job memory, room for `count` values: the sender writes them there, and this rank
    /// need make no call for it.
    pub fn recv_into<T: Pod>(
        &self,
        into: GlobalPtr<T>,
        count: usize,
        from: Rank,
        slot: Slot,
    ) -> Result<Received> {
        received::<T>(
            self.messages(),
            self.messages().recv_job(into.address(), bytes::<T>(count), from, slot.0)?,
        )
    }

    /// Begins a send of `values`, which come back from [`SendRequest::wait`] or `.await`. Until then the slot is busy.
    ///
    /// Does not wait. Any waiting call of the rank's moves it on; messages on a slot arrive in the order in which they
    /// were begun. Errors at once: the slot is busy or out of range, there is no such rank; the others come from the
    /// wait. Costs what [`Communicator::send`] costs, and a block on the heap if it cannot go at once.
    pub fn isend<T: Pod>(&self, values: Vec<T>, to: Rank, slot: Slot) -> Result<SendRequest<T>> {
        SendRequest::new(self.messages(), values, to, slot)
    }

    /// Begins a receive into `values`, which come back from [`RecvRequest::wait`] or `.await`. Until then the slot is
    /// busy.
    ///
    /// Does not wait. Any waiting call of the rank's moves it on. Dropping what this returns takes the receive back;
    /// that waits for the message, if it is on its way, and a message that does not fit in a line, or was received from
    /// [`Slot::ANY`], goes with it. Errors at once as of [`Communicator::isend`], later as of
    /// [`Communicator::recv`]. Up to 48 bytes cost what a receive costs; more, a block on the heap.
    pub fn irecv<T: Pod>(&self, values: Vec<T>, from: Rank, slot: Slot) -> Result<RecvRequest<T>> {
        RecvRequest::new(self.messages(), values, from, slot)
    }

    /// Lets go of what this rank holds for messages with `peer` in this communicator. What the slots take at both ends
    /// serves other pairs as soon as `peer` has closed it, too. The next message opens it again, as the first one did.
    ///
    /// Neither rank waits for the other, nor need one be first: what one has closed is as it was for the other, and is
    /// found again by the first one's next message as long as the other has not closed. A message that was sent to a
    /// receive which was taken back since, and that nobody has received before both have closed, is lost. Collective
    /// calls are not touched. No other thread of this rank may use `peer` in this communicator during the call, but to
    /// close it.
    ///
    /// Errors: a send or receive with `peer` has not been waited for, or a message to it lies in the spool (then
    /// nothing is changed); there is no such rank. Costs a few dependent accesses for each 64 slots that were used, and
    /// waits until what this rank has begun has arrived.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let (world, peer, mut got) = (job.world(), Rank(1 - job.rank().0), [0_u64]);
    ///     let before = job.memory().slots;
    ///     for round in 0..3 {
    ///         if job.rank() == 0 {
    ///             world.send(&[round], peer, Slot(0))?;
    ///         } else {
    ///             world.recv(&mut got, peer, Slot(0))?;
    ///             assert_eq!(got, [round]);
    ///         }
    ///         assert!(job.memory().slots > before);
    ///         world.close(peer)?;
    ///         assert_eq!(job.memory().slots, before);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn close(&self, peer: Rank) -> Result<()> {
        self.messages().close(peer)
    }

    /// Lets `body` begin sends and receives on borrowed values. All of them have ended when this returns: well, if
    /// `body` ends well; taken back, as far as nobody knows of them, if it fails or panics.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(3, |job| {
    ///     let (west, east) = (job.rank_after(-1), job.rank_after(1));
    ///     let (mine, mut theirs) = ([job.rank().0; 100], [0; 100]);
    ///     job.world().scope(|s| {
    ///         s.recv(&mut theirs, west, Slot(0))?;
    ///         s.send(&mine, east, Slot(0))?;
    ///         s.wait_all()                        // work that needs neither may stand before it
    ///     })?;
    ///     assert_eq!(theirs, [west.0; 100]);
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

#[inline]
pub(crate) fn received<T>(context: &Context, got: tasuki_message::Received) -> Result<Received> {
    let (slot, source, size) = (Slot(got.slot), got.source, size_of::<T>().max(1) as u64);
    if !got.len.is_multiple_of(size) {
        return Err(context.partial_value(got, size));
    }
    Ok(Received { slot, source, count: (got.len / size) as usize })
}

pub(crate) fn bytes<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}
