//! Sends from and receives into job memory.

use crate::member::{about, place_of};
use crate::message::Peer;
use crate::message::slot::{Received, Slot, bytes, not_received, not_sent, received};
use crate::onesided::GlobalSlice;
use crate::{Communicator, Pod, Result};

/// Sends values of this rank's own job memory, like [`Communicator::send`]. If the receive names job memory, too
/// ([`recv_into`]), the sender copies the values directly to their destination.
///
/// ```
/// use tasuki::message::send_from;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let (world, table) = (job.world(), job.alloc_local::<u64>(1000)?);
///     if job.rank() == 0 {
///         table.fill(7)?;
///         send_from(world, table.pointer().at(500).slice(10), Rank(1), Slot(0))?;
///     } else {
///         let (values, _) = world.recv_vec::<u64>(Rank(0), Slot(0))?; // any receive will do
///         assert_eq!(values, [7; 10]);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn send_from<T: Pod>(
    communicator: &Communicator,
    from: GlobalSlice<T>,
    to: impl Peer,
    slot: Slot,
) -> Result<()> {
    let messages = communicator.messages();
    let Some(place) = place_of(messages, to, "send_from")? else { return Ok(()) };
    let _limit = communicator.limited();
    let sent = messages.send_job(from.pointer().address(), bytes::<T>(from.len()), place, slot.of::<T>());
    sent.map_err(|error| about(to, not_sent::<T>(error)))
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
    let Some(place) = place_of(messages, from, "recv_into")? else { return Ok(Received::nothing(slot)) };
    let _limit = communicator.limited();
    let (at, len) = (into.pointer().address(), bytes::<T>(into.len()));
    let got = messages.recv_job(at, len, place, slot.of::<T>());
    received::<T>(messages, got.map_err(|error| about(from, not_received::<T>(error)))?)
}
