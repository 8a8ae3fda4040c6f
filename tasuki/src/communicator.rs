//! Communicators: ranks that exchange messages.

use crate::pending::{Receiving, Sending};
use crate::scope::Scope;
use crate::{GlobalPtr, Pod, Rank, Result};
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::engine::Machine;
use tasuki_models::message;

/// Slots of a communicator unless it is told otherwise.
const SLOTS: u32 = 1024;

/// The tag of a message: the number of a slot that belongs to one pair of ranks, one direction and one communicator.
/// A slot serves one message at a time; several outstanding messages use several slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// In a receive: whichever slot the next message is sent on. At most one such receive for each sender can be
    /// outstanding. A send looks for a receive on its own slot first; between the two kinds there is no order.
    pub const ANY: Slot = Slot(message::Communicator::ANY);
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
/// unless the spool takes it ([`Job::set_spool`](crate::Job::set_spool)).
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
    pub(crate) inner: Arc<message::Communicator>,
}

impl Communicator {
    pub(crate) fn world(machine: &Arc<Machine>) -> Communicator {
        Communicator { inner: Arc::new(message::Communicator::world(machine.clone(), SLOTS)) }
    }

    /// How many slots a pair has in each direction: they are numbered from 0.
    pub fn slots(&self) -> u32 {
        self.inner.slots()
    }

    /// Sends values to `to` on a slot.
    ///
    /// Returns when `values` may be used again: when the receive was posted and the values are there, or on their way
    /// through a buffer; or when the spool has a copy. Errors: the slot is busy or out of range; the receive has less
    /// room (then nothing is sent, and the receiver is told, too); the spool is full; the peer died, or left without
    /// having posted the receive.
    #[inline(always)] // a value goes from register to line
    pub fn send<T: Pod>(&self, values: &[T], to: Rank, slot: Slot) -> Result<()> {
        self.inner.send(bytemuck::cast_slice(values), to, slot.0)
    }

    /// Receives values from `from` on a slot, or on any ([`Slot::ANY`]).
    ///
    /// Returns when all values of the message are in `into`. Errors: the slot is busy or out of range; the message has
    /// more values than there is room for (then nothing is written, and its sender is told, too); the peer died, or
    /// left without having sent it.
    #[inline(always)]
    pub fn recv<T: Pod>(&self, into: &mut [T], from: Rank, slot: Slot) -> Result<Received> {
        received::<T>(self.inner.recv(bytemuck::cast_slice_mut(into), from, slot.0)?)
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
        received::<T>(self.inner.recv_within(bytemuck::cast_slice_mut(into), from, slot.0, limit)?)
    }

    /// Sends `count` values of this rank's own job memory. As [`Communicator::send`]; the sender copies them straight
    /// to their place where the receive names job memory, too.
    pub fn send_from<T: Pod>(&self, from: GlobalPtr<T>, count: usize, to: Rank, slot: Slot) -> Result<()> {
        self.inner.send_job(from.address(), bytes::<T>(count), to, slot.0)
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
        received::<T>(self.inner.recv_job(into.address(), bytes::<T>(count), from, slot.0)?)
    }

    /// Begins a send of `values`, which come back from [`Sending::wait`] or `.await`. Until then the slot is busy.
    pub fn isend<T: Pod>(&self, values: Vec<T>, to: Rank, slot: Slot) -> Result<Sending<T>> {
        Sending::new(&self.inner, values, to, slot)
    }

    /// Begins a receive into `values`, which come back from [`Receiving::wait`] or `.await`. Until then the slot is
    /// busy.
    pub fn irecv<T: Pod>(&self, values: Vec<T>, from: Rank, slot: Slot) -> Result<Receiving<T>> {
        Receiving::new(&self.inner, values, from, slot)
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
        Scope::run(&self.inner, body)
    }
}

#[inline]
pub(crate) fn received<T>(got: message::Received) -> Result<Received> {
    Ok(Received { slot: Slot(got.slot), source: got.source, count: got.len as usize / size_of::<T>().max(1) })
}

fn bytes<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}
