//! Buffered sends: the send buffer of a rank.

use crate::{Communicator, Job, Result};
use std::time::Duration;

/// Bytes that each message in the [send buffer](set_send_buffer) takes beside its own. MPI calls it
/// `MPI_BSEND_OVERHEAD`.
///
/// ```
/// use std::time::Duration;
/// use tasuki::message::{BUFFERED_OVERHEAD, set_send_buffer};
/// tasuki::local(2, |job| {
///     let rows = 100 * (BUFFERED_OVERHEAD + 800); // room for 100 messages of 100 values
///     set_send_buffer(job, rows, Some(Duration::ZERO))
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub const BUFFERED_OVERHEAD: u64 = tasuki_message::BUFFERED_OVERHEAD;

/// Sets how sends are buffered (FMPL: spool). A send whose receive is not posted within `after` copies its message
/// into the send buffer and returns. With `None`, a send waits for its receive.
///
/// Without this call, messages of at most 64 KiB are copied after 30 us, and the send buffer has room for 4 MiB or for
/// what the environment variable `TASUKI_SEND_BUFFER` says. Each message counts [`BUFFERED_OVERHEAD`] more than its bytes,
/// and a send that finds no room waits for its receive. After this call, messages of all lengths are copied, and a send
/// that finds no room is an error ([`Cause::Full`](crate::engine::Cause::Full)). A blocking
/// send then has sent nothing. A wait for a request, or its `.await`, returns the same error, but the send goes on:
/// wait again, or cancel it ([`SendRequest`](crate::message::SendRequest)).
///
/// The send buffer lies at the sender and takes at most `capacity` bytes for all messages and their overhead: a buffer
/// for `n` messages of `b` bytes needs `n * (b + BUFFERED_OVERHEAD)`. A message leaves the buffer
/// when its receive is posted; every waiting call of this rank moves such messages on, and while the rank computes, a
/// thread of the library does. Receives of any slot get the messages of a sender in order. A rank that leaves empties
/// its buffer first; a buffered message that a departed peer never received is then an error. If one does not fit in
/// its receive, or has another type, the receiver alone gets the error: the send has returned.
///
/// The setting holds for all communicators of the rank and also for sends that are awaited. It does not hold for
/// the messages that collective calls use inside. The call waits until the buffer is empty. A capacity of 0 means
/// `None`.
///
/// Errors: the buffer held messages for ranks that have left, which are dropped; a rank died. Cost: a buffered
/// message is copied twice, into the buffer and out of it.
///
/// ```
/// use std::time::Duration;
/// use tasuki::Slot;
/// use tasuki::message::{check_send_buffer, set_send_buffer};
/// tasuki::local(2, |job| {
///     let peer = job.rank_after(1);
///     set_send_buffer(job, 1 << 16, Some(Duration::ZERO))?;
///     job.world().send(&[1.5; 100], peer, Slot(0))?; // both ranks send first
///     let mut got = [0.0; 100];
///     job.world().recv(&mut got, peer, Slot(0))?;
///     let (_sent, left) = check_send_buffer(job)?;
///     assert!(got == [1.5; 100] && left <= 1);
///     job.barrier()?;
///     set_send_buffer(job, 0, None) // from now on sends wait for their receives
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn set_send_buffer(job: &Job, capacity: u64, after: Option<Duration>) -> Result<()> {
    let _limit = job.limited();
    job.world().messages().set_send_buffer(capacity, after)
}

/// Sets whether sends of this communicator use the [send buffer](set_send_buffer) of this rank (`true`, the default),
/// or wait for their receives (`false`). Holds for sends of this rank that begin from now on.
///
/// ```
/// use tasuki::Slot;
/// use tasuki::message::set_buffered;
/// tasuki::local(2, |job| {
///     let rows = job.world().dup()?;
///     set_buffered(&rows, false);
///     if job.rank() == 0 {
///         rows.send(&7, tasuki::Rank(1), Slot(0))?; // returns after its receive was posted
///     } else {
///         rows.recv(&mut [0], tasuki::Rank(0), Slot(0))?;
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn set_buffered(communicator: &Communicator, buffered: bool) {
    communicator.messages().set_buffered(buffered);
}

/// Sends the buffered messages whose receives are posted now. Returns how many messages were sent and how many
/// remain in the buffer.
///
/// ```
/// use std::time::Duration;
/// use tasuki::message::{check_send_buffer, set_send_buffer};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     if job.rank() == 0 {
///         set_send_buffer(job, 4096, Some(Duration::ZERO))?;
///         world.send(&[7; 100], Rank(1), Slot(0))?; // copied: rank 1 waits for slot 1
///         let (sent, left) = check_send_buffer(job)?;
///         assert_eq!((sent, left), (0, 1));
///         world.send(&1, Rank(1), Slot(1))?;
///     } else {
///         world.recv(&mut [0], Rank(0), Slot(1))?;
///         world.recv(&mut [0; 100], Rank(0), Slot(0))?;
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn check_send_buffer(job: &Job) -> Result<(usize, usize)> {
    job.world().messages().check_send_buffer()
}
