//! Receive queues: messages from any rank, in memory that the receiver bounds.

use crate::collective::Data;
use crate::message::slot::{Slot, bytes, part_for, room_for};
use crate::{Job, Pod, Rank, Result};
use std::fmt;
use tasuki_core::base::{Cause, ValueKind};
use tasuki_message::{ReceiveQueueOptions, Wanted};

/// What a sender needs to open a [`ReceiveQueue`] of another rank.
///
/// ```
/// use tasuki::Slot;
/// use tasuki::message::ReceiveQueueAddress;
/// tasuki::local(2, |job| {
///     let mut inbox = job.receive_queue(4, 64)?;
///     let all: Vec<ReceiveQueueAddress> = job.world().allgather(&[inbox.address()])?;
///     job.open_receive_queue(all[job.rank_after(1).index()])?.send(&[7], Slot(0))?;
///     assert_eq!(inbox.recv_vec::<i32>(Slot::ANY)?.0, [7]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub use tasuki_message::ReceiveQueueAddress;

/// Receives messages from any rank that knows its address, in a fixed number of buffers.
///
/// The receiver knows neither who sends, nor when, nor how much. It states how many messages the queue holds and how
/// long they are, and the queue never takes more memory, however many senders there are. A sender whose message finds
/// no free buffer waits. Nothing is asked of the receiver's processor until it receives: senders find a buffer by an
/// atomic operation, and write into it.
///
/// A message that is longer than a buffer stays at its sender, which waits until the receiver has copied it from there.
///
/// The messages of one [`ReceiveQueueSender`] arrive in the order in which they were sent. Messages of different
/// senders are not ordered. Slots select messages, as in [`recv`](crate::Communicator::recv): a receive of a slot takes
/// the oldest message with it, and leaves those before it. If messages of other slots fill all buffers, it copies the
/// oldest of them out, up to as many bytes as the buffers have, and then fails with
/// [`Cause::Full`](crate::engine::Cause::Full).
///
/// Dropping the queue drops the messages in it. Senders that have it open then get
/// [`Cause::QueueClosed`](crate::engine::Cause::QueueClosed) when they need a buffer, and its memory is freed when they
/// are dropped.
///
/// Memory: for each slot its bytes, and 65 to 130 more; the side store, at most as much again, when it is needed.
/// Source: Sumimoto and others, acquiring a receive buffer by remote atomics.
///
/// ```
/// use tasuki::message::ReceiveQueueAddress;
/// use tasuki::{Rank, Slot};
/// tasuki::local(4, |job| {
///     if job.rank() == 0 {
///         let mut inbox = job.receive_queue(16, 64)?;
///         job.world().bcast(&mut [inbox.address()], Rank(0))?;
///         let mut sum = 0;
///         for _ in 1..job.size() {
///             let (values, got) = inbox.recv_vec::<usize>(Slot::ANY)?;
///             assert_eq!(values, vec![got.source.0; got.source.0]); // as many values as its sender likes
///             sum += got.source.0;
///         }
///         assert_eq!(sum, 6);
///     } else {
///         let mut address = [ReceiveQueueAddress::default()];
///         job.world().bcast(&mut address, Rank(0))?;
///         let mut to = job.open_receive_queue(address[0])?;
///         to.send(&vec![job.rank().0; job.rank().0], Slot(0))?;
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct ReceiveQueue {
    job: Job,
    inner: tasuki_message::ReceiveQueue,
}

/// Sends messages to a [`ReceiveQueue`]. Each thread that sends opens one.
///
/// ```
/// use tasuki::Slot;
/// tasuki::local(1, |job| {
///     let mut inbox = job.receive_queue(8, 64)?;
///     let mut to = job.open_receive_queue(inbox.address())?;
///     to.send(&[1.5, 2.5], Slot(0))?; // returns: the message is in the queue
///     assert_eq!(inbox.recv_vec::<f64>(Slot::ANY)?.0, [1.5, 2.5]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct ReceiveQueueSender {
    job: Job,
    inner: tasuki_message::ReceiveQueueSender,
}

impl fmt::Debug for ReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveQueue").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReceiveQueueSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveQueueSender").field("to", &self.inner.address()).finish_non_exhaustive()
    }
}

impl Job {
    /// Makes a [receive queue](ReceiveQueue) of this rank for `slots` messages (1 to 65,536, rounded up to a power of
    /// two) of at most `bytes_per_slot` bytes each; longer ones stay at their senders until they are received. A
    /// message of at most 32 bytes needs no bytes of a slot.
    ///
    /// Not collective. Calls on the queue have the time limit of this handle ([`Job::within`]). Errors: no such size;
    /// no memory; this rank has 128 queues. Cost: system calls, and a few hundred stores.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let mut inbox = job.receive_queue(4, 64)?; // four messages of at most 64 bytes
    ///     let inboxes = job.world().allgather(&[inbox.address()])?;
    ///     let mut to = job.open_receive_queue(inboxes[job.rank_after(1).index()])?;
    ///     for number in 0..4 {
    ///         to.send(&number, Slot(0))?; // returns: there is room for four
    ///     }
    ///     for number in 0..4 {
    ///         assert_eq!(inbox.recv_vec::<i32>(Slot(0))?.0, [number]);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn receive_queue(&self, slots: usize, bytes_per_slot: usize) -> Result<ReceiveQueue> {
        self.receive_queue_with(slots, bytes_per_slot, &[self.rank()])
    }

    /// Like [`Job::receive_queue`], with the counters of the queue on other ranks: the slots are divided into as many
    /// shares as there are `counters`, each with counters on that rank. Ranks are divided among the shares in their
    /// order, so that neighbours have the same one; [`spread_ranks`](Job::spread_ranks) chooses counters near them. So
    /// the atomic operations of many senders do not all go to the receiver.
    ///
    /// A sender whose share was full borrows a slot of another share for its next message, if the receiver has taken
    /// all its earlier ones, which it must not overtake.
    ///
    /// Errors: those of [`Job::receive_queue`]; there are 0 or more than 64 shares, or fewer slots than shares; one of
    /// the ranks has the counters of 128 shares.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(3, |job| {
    ///     let mut inbox = job.receive_queue_with(8, 64, &[Rank(1), Rank(2)])?; // each rank has one
    ///     let addresses = job.world().allgather(&[inbox.address()])?;
    ///     for &address in &addresses {
    ///         job.open_receive_queue(address)?.send(&job.rank().0, Slot(5))?;
    ///     }
    ///     let mut got: Vec<usize> = (0..3).map(|_| inbox.recv_vec(Slot(5)).map(|(v, _)| v[0])).collect::<Result<_, _>>()?;
    ///     got.sort();
    ///     assert_eq!(got, [0, 1, 2]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn receive_queue_with(
        &self,
        slots: usize,
        bytes_per_slot: usize,
        counters: &[Rank],
    ) -> Result<ReceiveQueue> {
        let (counters, first_ticket) = (counters.to_vec(), 0);
        self.receive_queue_of(&ReceiveQueueOptions { slots, bytes_per_slot, counters, first_ticket })
    }

    /// Ranks in the middle of `count` equal parts of the job, to be `counters` of
    /// [`receive_queue_with`](Job::receive_queue_with) and [`message_limit_with`](Job::message_limit_with): each part is
    /// near its own. None of them is this rank, if its part has others. Fewer than `count` if the job has fewer ranks.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(9, |job| {
    ///     if job.rank() == 4 {
    ///         assert_eq!(job.spread_ranks(3), [Rank(1), Rank(5), Rank(7)]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn spread_ranks(&self, count: usize) -> Vec<Rank> {
        let (size, count) = (self.size(), count.min(self.size()));
        // Rank r belongs to part r * count / size.
        let first_of = |part: usize| (part * size).div_ceil(count);
        let middle_of = |part: usize| {
            let (first, end) = (first_of(part), first_of(part + 1));
            match first + (end - first) / 2 {
                middle if self.rank() != middle => middle,
                middle if middle + 1 < end => middle + 1,
                middle => middle.saturating_sub(1).max(first),
            }
        };
        (0..count).map(|part| Rank(middle_of(part))).collect()
    }

    /// For tests: a queue whose tickets begin with another number.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue_from(1, 64, u64::MAX)?;
    ///     let mut to = job.open_receive_queue(inbox.address())?;
    ///     for number in 0..3 {
    ///         to.send(&number, Slot(0))?;
    ///         assert_eq!(inbox.recv_vec::<i32>(Slot::ANY)?.0, [number]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn receive_queue_from(
        &self,
        slots: usize,
        bytes_per_slot: usize,
        first: u64,
    ) -> Result<ReceiveQueue> {
        let counters = vec![self.rank()];
        self.receive_queue_of(&ReceiveQueueOptions { slots, bytes_per_slot, counters, first_ticket: first })
    }

    fn receive_queue_of(&self, options: &ReceiveQueueOptions) -> Result<ReceiveQueue> {
        let _limit = self.limited();
        let call = || format!("receive_queue({} slots of {} bytes)", options.slots, options.bytes_per_slot);
        let inner = self.world().messages().receive_queue(options);
        let inner = inner.map_err(|error| error.in_call(call).on_rank(self.rank()))?;
        Ok(ReceiveQueue { job: self.clone(), inner })
    }

    /// Opens the receive queue of that address, to send to it. Calls on it have the time limit of this handle.
    ///
    /// Errors: the queue was dropped; a rank died. Cost: a few dependent accesses to the receiver's memory.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     let address = inbox.address();
    ///     let mut to = job.open_receive_queue(address)?;
    ///     to.send(b"hello", Slot(0))?;
    ///     assert_eq!(inbox.recv_vec::<u8>(Slot(0))?.0, b"hello");
    ///     drop(inbox);
    ///     assert!(job.open_receive_queue(address).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn open_receive_queue(&self, address: ReceiveQueueAddress) -> Result<ReceiveQueueSender> {
        let _limit = self.limited();
        let call = || format!("open_receive_queue({address})");
        let inner = self.world().messages().open_receive_queue(address);
        let inner = inner.map_err(|error| error.in_call(call).on_rank(self.rank()))?;
        Ok(ReceiveQueueSender { job: self.clone(), inner })
    }
}

fn wanted<T: 'static>(slot: Slot) -> Wanted {
    wanted_kind(ValueKind::of::<T>(), slot)
}

fn wanted_kind(kind: ValueKind, slot: Slot) -> Wanted {
    let slot = (slot != Slot::ANY).then(|| slot.word());
    Wanted { call: "recv", slot, context: 0, kind }
}

impl ReceiveQueue {
    /// The address by which senders open the queue: 16 bytes, which can be sent to any rank.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(2, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     let inboxes = job.world().allgather(&[inbox.address()])?; // addresses are plain values
    ///     job.open_receive_queue(inboxes[1])?.send(&job.rank().index(), Slot(0))?;
    ///     if job.rank() == 1 {
    ///         let got = [inbox.recv_vec::<usize>(Slot(0))?.1, inbox.recv_vec::<usize>(Slot(0))?.1];
    ///         assert!(got.iter().any(|got| got.source == 0) && got.iter().any(|got| got.source == 1));
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address(&self) -> ReceiveQueueAddress {
        self.inner.address()
    }

    /// Bytes that the queue takes now: its buffers, and messages that were copied out of them.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let (small, large) = (job.receive_queue(16, 64)?, job.receive_queue(16, 4096)?);
    ///     assert!(small.memory() >= 16 * 64);
    ///     assert!(large.memory() >= small.memory() + 16 * (4096 - 64));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn memory(&self) -> u64 {
        self.inner.bytes()
    }

    /// Receives the oldest message with that slot, or of any slot ([`Slot::ANY`]). Waits for it. A shorter message
    /// leaves the rest of `into` unchanged.
    ///
    /// Errors: the message is longer than `into`, or has values of another type: then it stays in the queue, for another
    /// receive; the side store is full; the time limit; a rank died.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     job.open_receive_queue(inbox.address())?.send(&[1, 2, 3], Slot(5))?;
    ///     assert!(inbox.recv(&mut [0; 2], Slot::ANY).is_err()); // it is longer, and stays
    ///     let mut room = [0; 4];
    ///     let got = inbox.recv(&mut room, Slot::ANY)?;
    ///     assert_eq!((got.slot, got.count, room), (Slot(5), 3, [1, 2, 3, 0]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv<D: Data + ?Sized>(&mut self, into: &mut D, slot: Slot) -> Result<QueueReceived> {
        let _limit = self.job.limited();
        let into: &mut [u8] = bytemuck::cast_slice_mut(into.values_mut());
        let got = self.inner.recv(wanted::<D::Value>(slot), |len| part_for(into, len))?;
        Ok(received::<D::Value>(got))
    }

    /// Receives the oldest message with that slot, or of any slot, however long it is. Returns its values, and what is
    /// known about it.
    ///
    /// Errors: those of [`ReceiveQueue::recv`], but for the length. Cost: one copy of the message.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     let mut to = job.open_receive_queue(inbox.address())?;
    ///     to.send(&[1, 2, 3], Slot(0))?;
    ///     to.send(&[4], Slot(1))?;
    ///     assert_eq!(inbox.recv_vec::<i32>(Slot(1))?.0, [4]); // from behind the other
    ///     assert_eq!(inbox.recv_vec::<i32>(Slot::ANY)?.0, [1, 2, 3]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn recv_vec<T: Pod>(&mut self, slot: Slot) -> Result<(Vec<T>, QueueReceived)> {
        let _limit = self.job.limited();
        let mut values = Vec::new();
        let got = self.inner.recv(wanted::<T>(slot), |len| room_for(&mut values, len))?;
        Ok((values, received::<T>(got)))
    }

    /// Like [`ReceiveQueue::recv_vec`]. Returns `None` if no such message is in the queue.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(8, 64)?;
    ///     assert_eq!(inbox.try_recv_vec::<u8>(Slot::ANY)?, None);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn try_recv_vec<T: Pod>(&mut self, slot: Slot) -> Result<Option<(Vec<T>, QueueReceived)>> {
        let mut values = Vec::new();
        let got = self.inner.try_recv(wanted::<T>(slot), |len| room_for(&mut values, len))?;
        Ok(got.map(|got| (values, received::<T>(got))))
    }

    /// Receives the bytes of the oldest message with that slot, or of any slot, and of that kind.
    #[cfg(feature = "serde")]
    pub(crate) fn recv_bytes(
        &mut self,
        kind: ValueKind,
        slot: Slot,
    ) -> Result<(Vec<u8>, tasuki_message::Received)> {
        let _limit = self.job.limited();
        let mut bytes = Vec::new();
        let got = self.inner.recv(wanted_kind(kind, slot), |len| room_for(&mut bytes, len))?;
        Ok((bytes, got))
    }

    #[cfg(feature = "serde")]
    pub(crate) fn fault(&self, cause: Cause, call: &str) -> crate::Error {
        self.job.worker.fault(cause, || format!("{call}(from the {})", self.address()))
    }
}

/// What a receive from a queue returns about its message.
///
/// ```
/// use tasuki::Slot;
/// tasuki::local(1, |job| {
///     let mut inbox = job.receive_queue(8, 64)?;
///     job.open_receive_queue(inbox.address())?.send(&[7_u64; 3], Slot(2))?;
///     let (_, got) = inbox.recv_vec::<u64>(Slot::ANY)?;
///     assert_eq!((got.slot, got.source, got.count), (Slot(2), job.rank(), 3));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueReceived {
    /// The slot with which the message was sent.
    pub slot: Slot,
    /// The sender. A queue belongs to no communicator.
    pub source: Rank,
    /// The number of values that were sent, which may be smaller than the buffer.
    pub count: usize,
}

pub(crate) fn received<T>(got: tasuki_message::Received) -> QueueReceived {
    let count = got.len / bytes::<T>(1).max(1);
    QueueReceived { slot: Slot(got.slot as usize), source: got.source, count: count as usize }
}

impl ReceiveQueueSender {
    /// The queue that it sends to.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let inbox = job.receive_queue(8, 64)?;
    ///     let to = job.open_receive_queue(inbox.address())?;
    ///     assert_eq!(to.address(), inbox.address());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address(&self) -> ReceiveQueueAddress {
        self.inner.address()
    }

    /// For tests: the number of the share whose slots it uses.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let inbox = job.receive_queue(8, 64)?;
    ///     assert_eq!(job.open_receive_queue(inbox.address())?.share(), 0); // there is one
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn share(&self) -> usize {
        self.inner.share()
    }

    /// Sends values to the queue, with that slot.
    ///
    /// Returns when `values` may be reused: if they fit in a buffer of the queue, when one is free and they are in it,
    /// otherwise when the receiver has received them. A task that calls this blocks a thread of its executor as long as
    /// the call waits.
    ///
    /// Errors: no such slot; the queue was dropped; the receiver left; a rank died; the time limit: then the message
    /// was not sent. A receive of another type is an error of the receiver alone. Cost: an atomic operation and a
    /// write; one cache line for up to 32 bytes.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let mut inbox = job.receive_queue(2, 64)?;
    ///     let mut address = [inbox.address()];
    ///     job.world().bcast(&mut address, Rank(0))?;
    ///     if job.rank() == 1 {
    ///         let mut to = job.open_receive_queue(address[0])?;
    ///         for number in 0..10 {
    ///             to.send(&[number; 100], Slot(0))?; // 400 bytes fit in no buffer: waits for the receive
    ///         }
    ///     } else {
    ///         for number in 0..10 {
    ///             assert_eq!(inbox.recv_vec::<i32>(Slot(0))?.0, [number; 100]);
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send<D: Data + ?Sized>(&mut self, values: &D, slot: Slot) -> Result<()> {
        self.send_bytes(bytemuck::cast_slice(values.values()), ValueKind::of::<D::Value>(), slot)
    }

    /// Sends messages one after the other, with that slot. The tickets of as many as a share of the queue has slots are
    /// drawn by one atomic operation, so that many short messages cost one atomic operation together.
    ///
    /// Returns when all `messages` may be reused, as [`send`](ReceiveQueueSender::send) does. Errors: those of `send`,
    /// with the number of messages that were sent: those before it, in their order. Cost: a write for each message, and
    /// an atomic operation for as many as a share has slots.
    ///
    /// ```
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut inbox = job.receive_queue(4, 64)?;
    ///     let mut to = job.open_receive_queue(inbox.address())?;
    ///     to.send_many(&[&[1, 2][..], &[], &[3]], Slot(7))?;
    ///     for expected in [&[1, 2][..], &[], &[3]] {
    ///         assert_eq!(inbox.recv_vec::<i32>(Slot(7))?.0, expected);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn send_many<T: Pod>(&mut self, messages: &[&[T]], slot: Slot) -> Result<()> {
        let _limit = self.job.limited();
        self.check_slot(slot)?;
        let all = messages.iter().map(|&values| bytemuck::cast_slice(values));
        self.inner.send_many(all, ValueKind::of::<T>(), slot.word()).map_err(|(sent, error)| {
            error.in_outer_call(format!("send_many({sent} of {} messages were sent)", messages.len()))
        })
    }

    fn check_slot(&self, slot: Slot) -> Result<()> {
        match slot.word() >= tasuki_message::Context::NO_SLOT {
            true => {
                Err(self
                    .fault(Cause::Argument("a message needs a slot of 0 to 4,294,967,293".into()), "send"))
            }
            false => Ok(()),
        }
    }

    /// Sends the bytes of values of that kind.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8], kind: ValueKind, slot: Slot) -> Result<()> {
        let _limit = self.job.limited();
        self.check_slot(slot)?;
        self.inner.send(bytes, kind, slot.word())
    }

    pub(crate) fn fault(&self, cause: Cause, call: &str) -> crate::Error {
        self.job.worker.fault(cause, || format!("{call}(to the {})", self.address()))
    }
}
