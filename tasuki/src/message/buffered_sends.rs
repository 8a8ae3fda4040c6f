//! Buffered sends: the send buffer of a rank.

use crate::{Job, Result};
use std::time::Duration;

/// Turns buffered sends on or off (FMPL: spool). A send whose receive is not posted within `after` copies its
/// message into the send buffer and returns. With `None`, the default, a send waits for its receive.
///
/// The send buffer lies at the sender and holds `capacity` bytes for all messages together. A message leaves the
/// buffer when its receive is posted; every waiting call of this rank moves such messages on. A send that finds
/// no room is an error and sends nothing. A rank that leaves empties its buffer first; a buffered message that a
/// departed peer never received is then an error.
///
/// The setting holds for all communicators of the rank and also for sends that are awaited. It does not hold for
/// the messages that collective calls use inside. The call waits until the buffer is empty. A capacity of 0 means
/// `None`.
///
/// Errors: the buffer held messages for ranks that have left, which are dropped; a rank died. Cost: a buffered
/// message is copied twice, into the buffer and out of it, and each of the two steps searches all buffered
/// messages.
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

/// Sends the buffered messages whose receives are posted now. Returns how many messages were sent and how many
/// remain in the buffer.
pub fn check_send_buffer(job: &Job) -> Result<(usize, usize)> {
    job.world().messages().check_send_buffer()
}
