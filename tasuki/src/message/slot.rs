//! The slots of messages, and what a receive returns about its message.

use crate::engine::Cause;
use crate::member::{Peer, about, place_of};
use crate::{Communicator, Error, Member, Pod, Result};
use std::any::type_name;
use tasuki_message::{Context, TypedSlot};

/// A message slot: what other libraries call a tag. A slot is the message channel of one sender, one receiver and one
/// communicator with this index.
///
/// A slot serves one message at a time. Several outstanding messages use several slots.
///
/// ```
/// use tasuki::{Rank, Slot};
/// const POSITIONS: Slot = Slot(0);
/// const MASSES: Slot = Slot(1);
/// tasuki::local(2, |job| {
///     if job.rank() == 0 {
///         job.world().send(&[0.5, 1.5], Rank(1), POSITIONS)?;
///         job.world().send(&[7.0], Rank(1), MASSES)?;
///     } else {
///         let (mut positions, mut mass) = ([0.0; 2], 0.0);
///         job.world().recv(&mut positions, Rank(0), POSITIONS)?;
///         job.world().recv(&mut mass, Rank(0), MASSES)?;
///         assert_eq!((positions, mass), ([0.5, 1.5], 7.0));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub usize);

impl Slot {
    /// In a receive: any slot. The receive gets the next message of the sender, whatever slot it was sent on.
    ///
    /// At most one such receive can be outstanding for each sender. A send looks for a receive on its own slot first.
    /// The two kinds of receive are not ordered with each other: a message that was sent while a receive on its slot
    /// was being withdrawn may arrive after a later one.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut got = [0_u64; 10];
    ///     if job.rank() == 0 {
    ///         job.world().send(&[5_u64, 6], Rank(1), Slot(33))?;
    ///     } else {
    ///         let received = job.world().recv(&mut got, Rank(0), Slot::ANY)?;
    ///         assert_eq!((received.slot, &got[..received.count]), (Slot(33), &[5, 6][..]));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub const ANY: Slot = Slot(usize::MAX);

    /// Returns the number as messages know it. All numbers that do not fit become one that no communicator has.
    #[inline(always)]
    pub(crate) fn word(self) -> u32 {
        if self.0 < Context::NO_SLOT as usize { self.0 as u32 } else { self.word_beyond() }
    }

    /// Returns this slot for values of that type.
    #[inline(always)]
    pub(crate) fn of<T: 'static>(self) -> TypedSlot {
        TypedSlot::of::<T>(self.word())
    }

    #[cold]
    fn word_beyond(self) -> u32 {
        if self == Slot::ANY { Context::ANY } else { Context::NO_SLOT }
    }
}

/// The number of slots of each pair in each direction. Slot indices are `0 .. slots`.
///
/// ```
/// use tasuki::collective::Split;
/// use tasuki::message::slots;
/// tasuki::local(2, |job| {
///     let narrow = job.world().split(Split::colour(0).slots(8))?;
///     assert_eq!((slots(job.world()), slots(&narrow)), (1024, 8));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn slots(communicator: &Communicator) -> usize {
    communicator.messages().slots() as usize
}

/// Releases what this rank holds for messages with `peer` in this communicator. When `peer` has closed it, too,
/// other pairs can use the slot memory at both ends. The next message opens the slots again, as the first one
/// did.
///
/// Either rank may close first. It waits for the other one only while a message to it is in the send buffer. After one
/// rank has closed, the other rank's slots are unchanged, and the first rank's next message finds them as long as the
/// other rank has not closed. A message is lost if its receive was withdrawn after the message had been sent and nobody
/// has received it before both ranks have closed. Collective calls are not affected. During the call no other thread of
/// this rank may use `peer` in this communicator, except to close it.
///
/// Errors: a send or receive with `peer` has not been waited for, a message to it is buffered and `peer` has left, or a
/// message from it is being transferred to a receive that was dropped (then nothing changes); there is no such rank.
/// Cost: a few dependent memory accesses for each 64 slots that were used, and a wait until the messages that this rank
/// has begun have arrived.
///
/// ```
/// use tasuki::message::close;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let (world, peer, mut got) = (job.world(), Rank(1 - job.rank().0), [0_u64]);
///     let before = job.memory().slot_banks;
///     for round in 0..3 {
///         if job.rank() == 0 {
///             world.send(&[round], peer, Slot(0))?;
///         } else {
///             world.recv(&mut got, peer, Slot(0))?;
///             assert_eq!(got, [round]);
///         }
///         assert!(job.memory().slot_banks > before);
///         close(world, peer)?;
///         assert_eq!(job.memory().slot_banks, before);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn close(communicator: &Communicator, peer: impl Peer) -> Result<()> {
    let (messages, _limit) = (communicator.messages(), communicator.limited());
    let closed = place_of(messages, peer, "close")?.map_or(Ok(()), |place| messages.close(place));
    closed.map_err(|error| about(peer, error))
}

/// What a receive returns about its message.
///
/// ```
/// use tasuki::{Member, Rank, Received, Slot};
/// tasuki::local(2, |job| {
///     if job.rank() == 0 {
///         return job.world().send(&[1, 2, 3], Rank(1), Slot(5));
///     }
///     let got: Received = job.world().recv(&mut [0; 10], Rank(0), Slot::ANY)?;
///     assert_eq!(got, Received { slot: Slot(5), source: Member(0), count: 3 });
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The slot on which the message was sent.
    pub slot: Slot,
    /// The sender; [`Member::NONE`] for a receive from `None`.
    pub source: Member,
    /// The number of values that were sent, which may be smaller than the buffer.
    pub count: usize,
}

impl Received {
    /// What a receive from nobody on that slot returns.
    pub(crate) fn nothing(slot: Slot) -> Received {
        Received { slot, source: Member::NONE, count: 0 }
    }
}

/// Returns the error of a send of values of type `T`. It names the type, if the receive has another one. Bytes name
/// themselves: where an error has another type, they are the encoding of an object, whose request names it.
#[cold]
pub(crate) fn not_sent<T>(error: Error) -> Error {
    named::<T>(error, true)
}

/// Returns the error of a receive of values of type `T`. It names the type, if the message has another one.
#[cold]
pub(crate) fn not_received<T>(error: Error) -> Error {
    named::<T>(error, false)
}

fn named<T>(error: Error, is_send: bool) -> Error {
    match type_name::<T>() {
        "u8" => error,
        name => error.name_type(name, is_send),
    }
}

#[inline]
pub(crate) fn received<T>(context: &Context, got: tasuki_message::Received) -> Result<Received> {
    received_values(context, got, size_of::<T>())
}

/// Counts what was received in values of `size` bytes.
#[inline]
pub(crate) fn received_values(
    context: &Context,
    got: tasuki_message::Received,
    size: usize,
) -> Result<Received> {
    let (slot, source, size) = (Slot(got.slot as usize), Member(got.source.0), size.max(1) as u64);
    if !got.len.is_multiple_of(size) {
        return Err(context.partial_value(got, size));
    }
    Ok(Received { slot, source, count: (got.len / size) as usize })
}

/// Returns the part of a receive's values for a message of that many bytes.
pub(crate) fn part_for(into: &mut [u8], len: u64) -> Result<&mut [u8], Cause> {
    let room = into.len() as u64;
    into.get_mut(..len as usize).ok_or(Cause::Truncated { len, room })
}

/// Makes room for a message of that many bytes.
pub(crate) fn room_for<T: Pod>(values: &mut Vec<T>, len: u64) -> Result<&mut [u8], Cause> {
    let (size, len) = (size_of::<T>().max(1), len as usize);
    if !len.is_multiple_of(size) {
        return Err(Cause::PartialValue { len: len as u64, size: size as u64, is_kept: true });
    }
    values.resize(len / size, T::zeroed());
    Ok(bytemuck::cast_slice_mut(values))
}

pub(crate) fn bytes<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}
