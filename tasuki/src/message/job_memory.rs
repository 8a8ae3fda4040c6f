//! Send and receive in job memory, and the release of slots.

use crate::member::place_of;
use crate::message::Peer;
use crate::message::slot::{Received, Slot, bytes, received};
use crate::onesided::GlobalSlice;
use crate::{Communicator, Pod, Result};

/// Sends values of this rank's own job memory, like [`Communicator::send`]. If the receive names job memory, too
/// ([`recv_into`]), the sender copies the values directly to their destination.
pub fn send_from<T: Pod>(
    communicator: &Communicator,
    from: GlobalSlice<T>,
    to: impl Peer,
    slot: Slot,
) -> Result<()> {
    let messages = communicator.messages();
    let Some(to) = place_of(messages, to, "send_from")? else { return Ok(()) };
    let _limit = communicator.limited();
    messages.send_job(from.pointer().address(), bytes::<T>(from.len()), to, slot.of::<T>())
}

/// Receives values into this rank's own job memory, up to the length of `into`, like [`Communicator::recv`]. The sender
/// writes them there, so that this rank does not have to make a call for it.
///
/// ```
/// use tasuki::message::{recv_into, send_from};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let (world, table) = (job.world(), job.alloc_local::<f64>(1000)?);
///     if job.rank() == 0 {
///         table.fill(2.5)?;
///         send_from(world, table.pointer().slice(1000), Rank(1), Slot(0))?;
///     } else {
///         let received = recv_into(world, table.pointer().slice(1000), Rank(0), Slot(0))?;
///         assert_eq!((received.count, table.get(999)?), (1000, 2.5));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn recv_into<T: Pod>(
    communicator: &Communicator,
    into: GlobalSlice<T>,
    from: impl Peer,
    slot: Slot,
) -> Result<Received> {
    let messages = communicator.messages();
    let Some(from) = place_of(messages, from, "recv_into")? else { return Ok(Received::nothing(slot)) };
    let _limit = communicator.limited();
    let (at, len) = (into.pointer().address(), bytes::<T>(into.len()));
    received::<T>(messages, messages.recv_job(at, len, from, slot.of::<T>())?)
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
/// Neither rank waits for the other, and either may close first. After one rank has closed, the other rank's
/// slots are unchanged, and the first rank's next message finds them as long as the other rank has not closed. A
/// message is lost if its receive was withdrawn after the message had been sent and nobody has received it before
/// both ranks have closed. Collective calls are not affected. During the call no other thread of this rank may
/// use `peer` in this communicator, except to close it.
///
/// Errors: a send or receive with `peer` has not been waited for, a message to it is buffered, or a message from it
/// is being transferred to a receive that was dropped (then nothing changes); there is no such rank. Cost: a few
/// dependent memory accesses for each 64 slots that were used, and a wait until the messages that this rank has
/// begun have arrived.
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
    let messages = communicator.messages();
    place_of(messages, peer, "close")?.map_or(Ok(()), |peer| messages.close(peer))
}
