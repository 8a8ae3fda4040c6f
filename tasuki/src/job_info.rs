//! Calls of a job that few programs need: memory usage, clock, fabric, bootstrap memory.

use crate::engine::Capabilities;
use crate::job::Job;
use crate::onesided::GlobalAddress;
use crate::{GlobalPtr, Rank, Result};
use std::time::Duration;
use tasuki_core::segment::layout;

/// The memory that this rank uses, by purpose, in bytes. docs/guide/memory.md has the formula.
///
/// ```
/// tasuki::local(2, |job| {
///     let before = job.memory();
///     let table = job.alloc::<u64>(100_000)?;
///     assert_eq!(job.memory().symmetric - before.symmetric, 800_000);
///     drop(table);
///     assert_eq!(job.memory().symmetric, before.symmetric);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUsage {
    /// This rank's part of the memory that all ranks allocated together ([`Job::alloc`]).
    pub symmetric: u64,
    /// Job memory that this rank allocated alone: by the program, for the buffers of plans, for queues, and for the
    /// rings of messages, which are kept once they exist.
    pub local: u64,
    /// Memory of the program that is registered. Tasuki allocates only a table entry for it.
    pub registered: u64,
    /// Live registrations, the bootstrap memory included.
    pub registrations: u64,
    /// Signals and payload signals made so far.
    pub signals: u64,
    /// Private tables for the peers that this rank has accessed.
    pub peers: u64,
    /// Memory of message slots at this rank: a bank of 64 slots for each pair of a peer and a communicator that
    /// exchanged a message and that this rank has not closed since.
    pub slot_banks: u64,
    /// Private tables for those banks, and for closed banks of communicators that still exist.
    pub bank_tables: u64,
    /// This rank's any-source queue, once this rank has looked for a message in it
    /// ([`Communicator::recv_any`](crate::Communicator::recv_any)); messages that were copied out of it; and private
    /// tables for the ranks to which this one has sent so.
    pub any_source: u64,
    /// Receive queues ([`Job::receive_queue`]), with dropped ones that senders still have open; without messages that were
    /// copied out of them ([`ReceiveQueue::memory`](crate::message::ReceiveQueue::memory)). Nearly all of it is part of
    /// `local`.
    pub receive_queues: u64,
    /// Messages that were copied because no receive was posted in time
    /// ([`set_send_buffer`](crate::message::set_send_buffer)).
    pub send_buffer: u64,
    /// Rings through which longer messages of the program's own memory go. Part of `local`.
    pub rings: u64,
    /// Command queues and queues of handler calls of this rank. Part of `local`.
    pub command_queues: u64,
    /// Channels ([`channel_to`](crate::message::channel_to)): the rings of receivers, which are part of `local` unless they
    /// are symmetric memory of the program; their copies at both ends where the sender does not reach them; and the counters. Until both
    /// ends were dropped.
    pub channels: u64,
    /// Buffers and signals of plans and of the cached schedules of repeated collective calls, until they are freed
    /// ([`quiesce`](crate::collective::quiesce)). The buffers are part of `local`.
    pub plans: u64,
    /// Memory for long arguments and results of handlers. Part of `local`.
    pub calls: u64,
    /// Bytes of the rank's memory file that physical memory backs: job memory, and the pages of tables and signals
    /// that were touched.
    pub file: u64,
}

impl Job {
    /// The memory that this rank uses, by purpose.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let before = job.memory().symmetric;
    ///     let data = job.alloc::<u64>(1000)?;
    ///     assert!(job.memory().symmetric >= before + 8000);
    ///     drop(data);
    ///     assert_eq!(job.memory().symmetric, before);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn memory(&self) -> MemoryUsage {
        let usage = self.worker.registry().usage();
        MemoryUsage {
            symmetric: usage.symmetric,
            local: usage.local,
            registered: usage.registered,
            registrations: usage.extents,
            signals: usage.signals,
            peers: self.worker.fabric().peer_bytes(),
            slot_banks: self.world().messages().slot_bytes(),
            bank_tables: self.world().messages().private_bytes(),
            any_source: self.world().messages().any_source_bytes(),
            receive_queues: self.world().messages().receive_queue_bytes(),
            send_buffer: self.world().messages().buffered_bytes(),
            rings: self.world().messages().ring_bytes(),
            command_queues: self.worker.command_queue_bytes() + self.worker.call_queue_bytes(),
            channels: self.world().messages().channel_bytes(),
            plans: self.world().inner().plan_bytes(),
            calls: self.worker.block_bytes(),
            file: self.worker.registry().range().file().backed(),
        }
    }

    /// The job's clock, counted from a moment that all ranks of a node share. It is virtual time on the simulator,
    /// real time otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    /// tasuki::local(1, |job| {
    ///     let start = job.clock();
    ///     job.compute(Duration::from_millis(1));
    ///     assert!(job.clock() - start >= Duration::from_millis(1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn clock(&self) -> Duration {
        Duration::from_nanos(self.worker.platform().now_ns())
    }

    /// Simulates work of the given duration: keeps the processor busy, or lets virtual time pass on the simulator.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::Sim;
    /// let run = tasuki::sim(Sim::seed(7).ranks(2), |job| {
    ///     if job.rank() == 0 {
    ///         job.compute(Duration::from_secs(60)); // takes no real time
    ///     }
    ///     job.barrier()
    /// })?;
    /// assert!(run.time >= Duration::from_secs(60));
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn compute(&self, duration: Duration) {
        self.worker.platform().compute(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// The name of the fabric that carries a job's bytes: `shm` or `sim`.
///
/// ```
/// use tasuki::engine::{capabilities, fabric};
/// tasuki::local(1, |job| {
///     assert_eq!(fabric(job), "shm");
///     assert!(capabilities(job).direct_from > 0);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn fabric(job: &Job) -> &'static str {
    job.worker.fabric().name()
}

/// The operations and features that the fabric of a job supports.
///
/// ```
/// use tasuki::Sim;
/// use tasuki::engine::capabilities;
/// tasuki::sim(Sim::seed(7).ranks(2).bare(), |job| {
///     assert!(!capabilities(job).native_put_signal); // it is emulated
///     let (data, arrived) = (job.alloc::<u64>(1)?, job.signal()?);
///     job.put_signal(data.on(job.rank_after(1)), &[7], arrived.on(job.rank_after(1)), 1)?;
///     arrived.wait_at_least(1)?;
///     assert_eq!(data.get(0)?, 7);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn capabilities(job: &Job) -> Capabilities {
    job.worker.fabric().capabilities()
}

/// The bootstrap memory of `rank` (ACP: starter memory): 64 KiB, zero at the start, at an address that every rank can
/// compute.
///
/// ```
/// use tasuki::onesided::bootstrap_memory;
/// tasuki::local(2, |job| {
///     let (mine, peer) = (bootstrap_memory(job, job.rank())?, job.rank_after(1));
///     job.put(bootstrap_memory(job, peer)?.at(100), &[job.rank().index() as u8 + 1])?;
///     job.barrier()?;
///     assert_eq!(job.get_value(mine.at(100))?, peer.index() as u8 + 1);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn bootstrap_memory(job: &Job, rank: Rank) -> Result<GlobalPtr<u8>> {
    job.check_rank(rank, "bootstrap_memory")?;
    Ok(GlobalPtr::new(GlobalAddress::new(rank, layout::BOOTSTRAP_MEMORY)))
}
