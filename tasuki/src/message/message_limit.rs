//! Message limits: at most so many messages under way to a rank, whichever way they go.

use crate::{Job, Rank, Result};
use std::fmt;

/// What a sender needs to open a [`MessageLimit`] of another rank.
///
/// ```
/// use tasuki::message::MessageLimitAddress;
/// tasuki::local(2, |job| {
///     let limit = job.message_limit(2)?;
///     let all: Vec<MessageLimitAddress> = job.world().allgather(&[limit.address()])?;
///     job.open_message_limit(all[job.rank_after(1).index()])?.acquire()?;
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub use tasuki_message::MessageLimitAddress;

/// Bounds how many messages of other ranks are under way to this rank, whichever way they go: by
/// [`send`](crate::Communicator::send), `send_any`, puts, calls of handlers.
///
/// Many senders that all send at once can overflow what lies between them and a receiver, or fill the receiver's memory.
/// Each sender gets a permit before it begins a message ([`MessagePermits::acquire`]), and the receiver
/// [releases](MessageLimit::release) permits as it deals with messages. Senders and receiver agree on what counts as a
/// message; the limit does not see them. Permits go to whoever asks first after a release, so a call for many may wait
/// long while others take few. Nothing is asked of the receiver's processor: permits are drawn by an atomic operation.
///
/// At most as many messages as the limit says have a permit and were not released. The receiver must be able to receive
/// any of them: if it waits for a message of one rank, and others have all permits, nobody goes on.
///
/// Dropping the limit ends the waits of senders with [`Cause::QueueClosed`](crate::engine::Cause::QueueClosed). Memory:
/// an entry of a table that each rank has in any case; a rank has at most 128 limits and receive queues. Source:
/// Sumimoto and others, the scheme that limits the number of messages.
///
/// ```
/// use tasuki::message::MessageLimitAddress;
/// use tasuki::{Rank, Request, Slot, wait_any};
/// tasuki::local(4, |job| {
///     let (world, mut address) = (job.world(), [MessageLimitAddress::default()]);
///     if job.rank() != 0 {
///         world.bcast(&mut address, Rank(0))?;
///         let mut permits = job.open_message_limit(address[0])?;
///         for step in 0..10 {
///             permits.acquire()?; // waits while two other messages are under way to rank 0
///             world.send(&vec![step; 10_000], Rank(0), Slot(0))?;
///         }
///         return job.barrier();
///     }
///     let limit = job.message_limit(2)?;
///     world.bcast(&mut [limit.address()], Rank(0))?;
///     let mut receives = Vec::new();
///     for from in 1..4 {
///         receives.push(world.irecv_vec::<i32>(Rank(from), Slot(0))?);
///     }
///     for _ in 0..30 {
///         let first = wait_any(&mut receives)?;
///         let (values, got) = receives[first].wait()?;
///         receives[first] = world.irecv_vec(got.source, Slot(0))?;
///         limit.release(1)?; // this message was dealt with
///         assert_eq!(values.len(), 10_000);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct MessageLimit {
    job: Job,
    inner: tasuki_message::MessageLimit,
}

/// Gets permits to send messages to the rank of a [`MessageLimit`]. Each thread that sends opens one.
///
/// ```
/// use tasuki::message::MessagePermits;
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let limit = job.message_limit(2)?;
///     let limits = job.world().allgather(&[limit.address()])?;
///     if job.rank() == 1 {
///         let mut permits: MessagePermits = job.open_message_limit(limits[0])?;
///         for number in 0..10 {
///             permits.acquire()?; // at most two are under way
///             job.world().send_any(&number, Rank(0), Slot(0))?;
///         }
///     } else {
///         for number in 0..10 {
///             assert_eq!(job.world().recv_any_vec::<i32>(Slot(0))?.0, [number]);
///             limit.release(1)?;
///         }
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct MessagePermits {
    job: Job,
    inner: tasuki_message::MessagePermits,
}

impl fmt::Debug for MessageLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLimit").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for MessagePermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagePermits").field("of", &self.address()).finish_non_exhaustive()
    }
}

impl Job {
    /// Makes a [limit](MessageLimit) on the number of messages under way to this rank: at most `messages` (1 to
    /// 4,294,967,295).
    ///
    /// Not collective. Errors: no such limit; this rank has 128 limits and receive queues.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(1)?;
    ///     let mut permits = job.open_message_limit(limit.address())?;
    ///     assert!(permits.try_acquire()?);
    ///     assert!(!permits.try_acquire()?); // one message is under way
    ///     limit.release(1)?;
    ///     assert!(permits.try_acquire()?);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn message_limit(&self, messages: usize) -> Result<MessageLimit> {
        self.message_limit_with(messages, &[self.rank()])
    }

    /// Like [`Job::message_limit`], with counters on other ranks: the permits are divided evenly into as many shares as
    /// there are `counters`, each with counters on that rank. So the atomic operations of many senders do not all go to
    /// the receiver. Each rank asks the share of its part of the job first (as senders of
    /// [`receive_queue_with`](Job::receive_queue_with) do), and borrows from the others if that has no permit.
    ///
    /// Errors: those of [`Job::message_limit`]; there are 0 or more than 64 shares, or fewer messages than shares; one
    /// of the ranks has the counters of 128 shares. The most permits that can be drawn together are those of a share.
    ///
    /// ```
    /// tasuki::local(4, |job| {
    ///     let limit = job.message_limit_with(6, &job.spread_ranks(2))?; // three on each of two other ranks
    ///     let mut permits = job.open_message_limit(limit.address())?;
    ///     permits.acquire_many(3)?;
    ///     permits.acquire_many(3)?; // borrowed from the other share
    ///     assert!(!permits.try_acquire()?);
    ///     assert!(permits.acquire_many(4).is_err()); // no share ever has so many
    ///     limit.release(6)?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn message_limit_with(&self, messages: usize, counters: &[Rank]) -> Result<MessageLimit> {
        let inner = self.world().messages().message_limit(messages, counters);
        let call = || format!("message_limit({messages})");
        Ok(MessageLimit {
            job: self.clone(),
            inner: inner.map_err(|error| error.in_call(call).on_rank(self.rank()))?,
        })
    }

    /// Opens the message limit of that address, to get permits. Calls on it have the time limit of this handle.
    ///
    /// Errors: the limit was dropped; a rank died.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(5)?;
    ///     let address = limit.address();
    ///     job.open_message_limit(address)?.acquire()?;
    ///     limit.release(1)?;
    ///     drop(limit);
    ///     assert!(job.open_message_limit(address).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn open_message_limit(&self, address: MessageLimitAddress) -> Result<MessagePermits> {
        let _limit = self.limited();
        let inner = self.world().messages().open_message_limit(address);
        let call = || format!("open_message_limit({address})");
        Ok(MessagePermits {
            job: self.clone(),
            inner: inner.map_err(|error| error.in_call(call).on_rank(self.rank()))?,
        })
    }
}

impl MessageLimit {
    /// The address by which senders open the limit: 24 bytes, which can be sent to any rank.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let limit = job.message_limit(4)?;
    ///     let mut address = [limit.address()];
    ///     job.world().bcast(&mut address, Rank(0))?; // all send to rank 0
    ///     job.open_message_limit(address[0])?.acquire()?;
    ///     job.barrier()?;
    ///     if job.rank() == 0 {
    ///         limit.release(2)?; // those of both ranks
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address(&self) -> MessageLimitAddress {
        self.inner.address()
    }

    /// Releases the permits of `count` messages, which this rank has dealt with. Does not wait.
    ///
    /// Errors: senders have not got as many permits; a rank died.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(3)?;
    ///     let mut permits = job.open_message_limit(limit.address())?;
    ///     permits.acquire_many(3)?;
    ///     limit.release(2)?;
    ///     permits.acquire_many(2)?; // two messages were dealt with
    ///     assert!(!permits.try_acquire()?);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn release(&self, count: usize) -> Result<()> {
        let _limit = self.job.limited();
        self.inner.release(count as u64)
    }
}

impl MessagePermits {
    /// The limit.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(3)?;
    ///     let permits = job.open_message_limit(limit.address())?;
    ///     assert_eq!(permits.address(), limit.address());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address(&self) -> MessageLimitAddress {
        self.inner.address()
    }

    /// Gets a permit to send one message. Waits for it, in pauses that become longer while the receiver releases none.
    ///
    /// Errors, after which there is no permit: the limit was dropped; the receiver left; a rank died; the time limit.
    /// Cost: an atomic operation.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let (limit, done) = (job.message_limit(1)?, job.signal()?);
    ///     let limits = job.world().allgather(&[limit.address()])?;
    ///     if job.rank() == 1 {
    ///         let mut permits = job.open_message_limit(limits[0])?;
    ///         for _ in 0..3 {
    ///             permits.acquire()?; // waits until rank 0 has released the one before
    ///             job.raise(done.on(Rank(0)), 1)?; // the message
    ///         }
    ///     } else {
    ///         for count in 1..4 {
    ///             done.wait_at_least(count)?;
    ///             assert_eq!(done.value(), count); // not more than one at a time
    ///             limit.release(1)?;
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn acquire(&mut self) -> Result<()> {
        self.acquire_many(1)
    }

    /// Gets permits for `count` messages, which are drawn by one atomic operation. Waits until it has all.
    ///
    /// Errors: those of [`acquire`](MessagePermits::acquire); the limit is less, or its largest share.
    ///
    /// ```
    /// use std::time::Duration;
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(3)?;
    ///     let mut permits = job.within(Duration::from_millis(1)).open_message_limit(limit.address())?;
    ///     permits.acquire_many(2)?;
    ///     assert!(permits.try_acquire()?);
    ///     assert!(permits.acquire().is_err_and(|error| error.is_timeout()), "nothing was released");
    ///     limit.release(3)?;
    ///     permits.acquire_many(3)
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn acquire_many(&mut self, count: usize) -> Result<()> {
        let _limit = self.job.limited();
        self.inner.acquire(count as u64)
    }

    /// Gets a permit if there is one. Returns false if there is none. Does not wait.
    ///
    /// Errors: those of [`acquire`](MessagePermits::acquire), but for the time limit.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let limit = job.message_limit(2)?;
    ///     let mut permits = job.open_message_limit(limit.address())?;
    ///     let mut under_way = 0;
    ///     while permits.try_acquire()? {
    ///         under_way += 1;
    ///     }
    ///     assert_eq!(under_way, 2);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn try_acquire(&mut self) -> Result<bool> {
        let _limit = self.job.limited();
        self.inner.try_acquire()
    }
}
