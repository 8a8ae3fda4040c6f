//! The job: what a program's function is given.

use crate::communicator::Communicator;
use crate::handler::registry::{Handlers, Locals};
use crate::memory::array::Array;
use crate::payload_signal::PayloadSignal;
use crate::signal::Signal;
use crate::start::{Helper, RankOptions};
use crate::{Error, GlobalAddress, GlobalPtr, Pod, Rank, Result};
use std::sync::Arc;
use std::time::Duration;
use tasuki_collective::{BootstrapBarrier, MinMax};
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;
use tasuki_core::segment::{check_available, layout};

/// One rank's membership in a job. Any thread of the rank may make any call; several jobs may live in one process.
#[derive(Debug)]
pub struct Job {
    pub(crate) worker: Arc<Worker>,
    bootstrap_barrier: BootstrapBarrier,
    world: Communicator,
    pub(crate) locals: Arc<Locals>,
    pub(crate) helper: Arc<Helper>,
}

/// What a rank's memory goes into, in bytes. The formula stands in docs/guide/memory.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUsage {
    /// Job memory allocated alike on all ranks, this rank's part.
    pub symmetric: u64,
    /// Job memory allocated by this rank alone: the program's, buffers of plans, queues, and rings of messages, which
    /// stay once there are any.
    pub local: u64,
    /// Memory of the program's own that is registered; Tasuki takes none for it but its table entry.
    pub registered: u64,
    /// Registrations that live, starter memory included.
    pub registrations: u64,
    /// Signals and lines made so far.
    pub signals: u64,
    /// Private tables for peers that were touched.
    pub peers: u64,
    /// Slots of messages in this rank's arena, a page of 64 for each peer and communicator that exchanged one and that
    /// this rank has not closed since.
    pub slots: u64,
    /// Private tables for those pages, and for those that were closed in communicators that are still there.
    pub pages: u64,
    /// Buffers and signals of plans, and of collective calls that are made again and again, until they are freed
    /// ([`Communicator::quiesce`](crate::Communicator::quiesce)). The buffers are part of `local`.
    pub plans: u64,
    /// Bytes of the rank's memory file that are backed by memory: job memory, tables and signals as touched.
    pub file: u64,
}

impl Job {
    pub(crate) fn new(worker: Worker, rank_options: RankOptions, handlers: &Handlers) -> Result<Job> {
        let bootstrap_barrier = BootstrapBarrier::new(&worker)?;
        worker.open_inbox()?;
        let locals = Arc::new(handlers.make_locals());
        if !handlers.are_none() {
            take_handlers(&worker, &bootstrap_barrier, handlers, &locals)?;
        }
        let worker = Arc::new(worker);
        let helper = Helper::new(&worker, rank_options.helper);
        let world = Communicator::world(&worker, &helper, rank_options.selection)?;
        if !handlers.are_none() {
            helper.start();
        }
        Ok(Job { worker, bootstrap_barrier, world, locals, helper })
    }

    /// Which rank this is, `0 .. size`.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.worker.rank()
    }

    /// How many ranks the job has.
    #[inline]
    pub fn size(&self) -> usize {
        self.worker.size()
    }

    /// The rank `steps` further on, around the end; negative steps go back.
    pub fn rank_after(&self, steps: i64) -> Rank {
        Rank((i64::from(self.rank().0) + steps).rem_euclid(self.size() as i64) as u32)
    }

    /// All ranks, in order.
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator + Clone + use<> {
        Rank::all(self.size())
    }

    /// The communicator of all ranks, with 1024 slots.
    #[inline]
    pub fn world(&self) -> &Communicator {
        &self.world
    }

    /// Lets a send whose receive has not been posted after `after` copy its message and return; never, if that is
    /// `None`, which is what holds at first.
    ///
    /// The *spool* of copies lies at the sender, `capacity` bytes for all messages together. A message leaves it when
    /// its receive is posted; every waiting call sees to that. A send that finds no room is an error and sends nothing.
    /// A rank that leaves empties its spool first; what a peer that has left never took is an error then.
    ///
    /// Holds for all communicators of the rank, also for sends that are awaited, not for the steps of collective calls.
    /// Waits until the spool is empty. Errors: what is left in it is for ranks that have left, and was given up; a rank
    /// died. A capacity of 0 is the same as `None`. Costs: a message that goes into the spool is copied twice, into it
    /// and out of it; each looks through all that lie there.
    pub fn set_send_buffer(&self, capacity: u64, after: Option<Duration>) -> Result<()> {
        self.world.messages().set_send_buffer(capacity, after)
    }

    /// Sends what is in the spool and whose receive is posted now: how many messages went, and how many remain.
    pub fn check_send_buffer(&self) -> Result<(usize, usize)> {
        self.world.messages().check_send_buffer()
    }

    /// Returns when all ranks have called it; what any rank did before is visible to all after.
    ///
    /// Collective. Errors: a rank died, left, or another thread of this rank is in a collective call. Costs
    /// ceil(log2 P) signals sent and awaited.
    pub fn barrier(&self) -> Result<()> {
        self.agree(0, "barrier(world)").map(drop)
    }

    /// Allocates `count` zeroed values on every rank.
    ///
    /// Collective: all ranks, in the same order, with the same count. The memory is backed when the call returns,
    /// so that touching it cannot fail later; each rank's part is freed when its [`Array`] is dropped. Errors:
    /// `count` is 0 or differs between ranks; machine, container or address range have no room (then nobody has
    /// allocated). Costs two barriers and a system call.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(100)?;
    ///     let peer = tasuki::Rank(1 - job.rank().0);
    ///     job.put(table.on(peer).at(7), &[u64::from(job.rank().0)])?;
    ///     job.barrier()?;
    ///     assert_eq!(table.get(7)?, u64::from(peer.0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn alloc<T: Pod>(&self, count: usize) -> Result<Array<T>> {
        let call = format!("alloc({count} x {} bytes)", size_of::<T>());
        let bytes = self.bytes_of::<T>(count);
        self.agree_on_room(*bytes.as_ref().unwrap_or(&0), &call)?;
        let bytes = bytes.map_err(|error| error.in_call(|| call.clone()).on_rank(self.rank()))?;
        let taken = match self.worker.registry().allocate_symmetric(bytes) {
            Ok(None) => self.freed_place(bytes, &call)?,
            Ok(Some(start)) => Ok(start),
            Err(error) => Err(error),
        };
        let taken = taken.and_then(|start| self.map(start, bytes));
        Ok(Array::new(self.worker.clone(), self.unanimous(taken, &call)?, count))
    }

    /// All ranks ask for as much, and the node has room for all of it; else nobody takes anything.
    fn agree_on_room(&self, bytes: u64, call: &str) -> Result<()> {
        const NO_ROOM: u64 = u64::MAX;
        let room = check_available(bytes.saturating_mul(self.size() as u64));
        let MinMax { least, most, .. } = self.agree(if room.is_ok() { bytes } else { NO_ROOM }, call)?;
        room.map_err(|error| error.in_call(|| call.to_string()).on_rank(self.rank()))?;
        let cause = match most {
            NO_ROOM => {
                Cause::Unsupported("another rank found no room for its part; nobody has allocated".into())
            }
            _ if least != most => Cause::Disagree { what: "bytes", least, most },
            _ => return Ok(()),
        };
        Err(self.worker.fault(cause, || call.to_string()))
    }

    /// All fresh places are used up, on all ranks alike: agrees on one that every rank has freed. The inner error is
    /// this rank's alone, the outer one everybody's.
    fn freed_place(&self, bytes: u64, call: &str) -> Result<Result<u64>> {
        let mut from = 0;
        loop {
            let ours = self.worker.registry().freed_symmetric(bytes, from);
            let MinMax { least, most, busy } = self.agree(ours, call)?;
            if most == u64::MAX || busy {
                let until = if busy { " until a rank's operations have ended" } else { "" };
                let limit = format!("the range of addresses for symmetric memory{until}");
                let cause = Cause::NoMemory { wanted: bytes, available: 0, limit };
                return Err(self.worker.fault(cause, || call.to_string()));
            }
            if least == most {
                return Ok(self.worker.registry().allocate_symmetric_at(most, bytes));
            }
            from = most;
        }
    }

    /// Allocates `count` zeroed values on this rank alone. Others reach them through [`Array::pointer`], which
    /// may be sent to them.
    ///
    /// Not collective. Errors: `count` is 0; no room. Costs a system call.
    pub fn alloc_local<T: Pod>(&self, count: usize) -> Result<Array<T>> {
        let call = || format!("alloc_local({count} x {} bytes)", size_of::<T>());
        self.worker.check().map_err(|cause| self.worker.fault(cause, call))?;
        let offset = self.bytes_of::<T>(count).and_then(|bytes| {
            let start = self.worker.registry().allocate_local(bytes)?;
            self.map(start, bytes)
        });
        let offset = offset.map_err(|error| error.in_call(call).on_rank(self.rank()))?;
        Ok(Array::new(self.worker.clone(), offset, count))
    }

    /// Starter memory of `rank`: 64 KiB, zero at the start, at an address that everyone knows without being told.
    pub fn bootstrap_memory(&self, rank: Rank) -> Result<GlobalPtr<u8>> {
        self.check_rank(rank, "starter")?;
        Ok(GlobalPtr::new(GlobalAddress::new(rank, layout::STARTER)))
    }

    /// Makes a signal: a counter that only grows, on every rank.
    ///
    /// All ranks must make their signals and lines in the same order; nothing is communicated, and peers may raise
    /// it before this rank has made it. Signals live as long as the job: 128 bytes each, and at most 2^20 of them and
    /// lines, those of plans and communicators included.
    pub fn signal(&self) -> Result<Signal<'_>> {
        Signal::new(self, self.next_signal("signal()")?)
    }

    /// Makes a line: a counter with up to 48 bytes of payload beside it, on every rank, for one writer each.
    ///
    /// All ranks must make their signals and lines in the same order. The quickest way to hand a few bytes over.
    pub fn payload_signal(&self) -> Result<PayloadSignal<'_>> {
        PayloadSignal::new(self, self.next_signal("line()")?)
    }

    /// The job's clock, from some moment that all ranks of a node share: real, or virtual on sim.
    pub fn clock(&self) -> Duration {
        Duration::from_nanos(self.worker.platform().now_ns())
    }

    /// Lets `duration` of work pass: keeps the processor busy, or on sim lets virtual time go by.
    pub fn compute(&self, duration: Duration) {
        self.worker.platform().compute(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What this rank's memory goes into.
    pub fn memory(&self) -> MemoryUsage {
        let usage = self.worker.registry().usage();
        MemoryUsage {
            symmetric: usage.symmetric,
            local: usage.local,
            registered: usage.registered,
            registrations: usage.extents,
            signals: usage.signals,
            peers: self.worker.fabric().peer_bytes(),
            slots: self.world.messages().slot_bytes(),
            pages: self.world.messages().private_bytes(),
            plans: self.world.inner().plan_bytes(),
            file: self.worker.registry().range().file().backed(),
        }
    }

    /// Returns when all that ranks have dropped of the plans of [`Job::world`] is freed, and what it keeps for
    /// collective calls. Collective: [`Communicator::quiesce`](crate::Communicator::quiesce) of the world.
    pub fn quiesce(&self) -> Result<()> {
        self.world.quiesce()
    }

    /// What carries this job's bytes: `shm` or `sim`.
    pub fn fabric(&self) -> &'static str {
        self.worker.fabric().name()
    }

    /// What that fabric can do.
    pub fn capabilities(&self) -> tasuki_core::fabric::Capabilities {
        self.worker.fabric().capabilities()
    }

    /// Maps memory that was just allocated; gives it back if there are no addresses for it.
    fn map(&self, start: u64, bytes: u64) -> Result<u64> {
        let mapped = self.worker.own_place(GlobalAddress::new(self.rank(), start), bytes);
        mapped.map(|_| start).map_err(|cause| {
            let _ = self.worker.registry().free(start); // the cause that counts is the first
            Error::new(cause)
        })
    }

    /// The outcome of a step that every rank takes: an error on one is an error on all.
    fn unanimous(&self, own: Result<u64>, call: &str) -> Result<u64> {
        let least = self.agree(u64::from(own.is_ok()), call)?.least;
        let own = own.map_err(|error| error.in_call(|| call.to_string()).on_rank(self.rank()))?;
        if least == 1 {
            return Ok(own);
        }
        self.worker.registry().free(own)?;
        let other = Cause::Unsupported("another rank could not allocate its part; nobody has".into());
        Err(self.worker.fault(other, || call.to_string()))
    }

    /// Meets all ranks. Where no rank had operations unfinished, memory that was freed before may be used again.
    fn agree(&self, value: u64, call: &str) -> Result<MinMax> {
        let agreed = self.bootstrap_barrier.agree(&self.worker, value, call)?;
        if !agreed.busy {
            self.worker.registry().barrier_passed();
        }
        Ok(agreed)
    }

    fn next_signal(&self, call: &str) -> Result<u32> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || call.into()))?;
        self.worker.registry().signal().map_err(|error| error.in_call(|| call.into()).on_rank(self.rank()))
    }

    fn bytes_of<T>(&self, count: usize) -> Result<u64> {
        let size = size_of::<T>();
        let bytes = (count as u64).checked_mul(size as u64);
        match bytes {
            Some(bytes) if bytes > 0 => Ok(bytes),
            Some(_) => Err(Error::argument("an allocation needs at least one byte")),
            None => Err(Error::argument(format!("{count} x {size} bytes are more than an address space"))),
        }
    }

    pub(crate) fn check_rank(&self, rank: Rank, call: &str) -> Result<()> {
        self.worker
            .check_rank(rank)
            .map_err(|cause| self.worker.fault(cause, || format!("{call}(rank {rank})")))
    }
}

/// Lets a rank's handlers be called. All ranks meet here: before that, nobody may call.
fn take_handlers(
    worker: &Worker,
    bootstrap_barrier: &BootstrapBarrier,
    handlers: &Handlers,
    locals: &Arc<Locals>,
) -> Result<()> {
    let call = || "taking handlers".to_string();
    let table = handlers.table(locals).map_err(|cause| worker.fault(cause, call))?;
    let ours = worker.take_calls(table)?;
    let agree = |value| bootstrap_barrier.agree(worker, value, "taking handlers");
    let MinMax { least, most, .. } = agree(ours)?;
    if least == most {
        return Ok(());
    }
    // All ranks know that they differ, and look where.
    for number in 0.. {
        let MinMax { least, most, .. } = agree(worker.handler_fingerprint(number))?;
        if least != most {
            let here = worker.describe_handler(number);
            let text = format!("the ranks have different handlers: on this one number {number} is {here}");
            return Err(worker.fault(Cause::Argument(text), call).note(SAME_HANDLERS));
        }
        if most == 0 {
            break;
        }
    }
    Err(worker.fault(Cause::Bug("handlers that are equal lie at different places".into()), call))
}

/// The way out.
const SAME_HANDLERS: &str = "hint: add the same handlers on all ranks, in the same order";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_range_is_used_again_where_all_ranks_have_freed() {
        crate::local(3, |job| {
            let mut arrays: Vec<Array<u8>> = (0..4).map(|_| job.alloc(100_000)).collect::<Result<_>>()?;
            job.worker.registry().exhaust_symmetric();
            assert!(matches!(job.alloc::<u8>(1).unwrap_err().cause(), Cause::NoMemory { .. }));
            let third = arrays[2].pointer();
            // Every rank frees two places, but only the third on all of them.
            let other = [0, 1, 3][job.rank().index()];
            arrays[2].fill(1)?;
            let keep: Vec<_> = arrays.drain(..).enumerate().filter(|(i, _)| *i != 2 && *i != other).collect();
            let again = job.alloc::<u8>(100_000)?;
            assert_eq!(again.pointer(), third);
            assert!(again.to_vec()?.iter().all(|&byte| byte == 0));
            assert!(matches!(job.alloc::<u8>(1).unwrap_err().cause(), Cause::NoMemory { .. }));
            drop(keep);
            job.barrier()
        })
        .unwrap();
    }

    #[test]
    fn ranks_that_disagree_about_a_count_are_all_told() {
        let errors = crate::local(3, |job| Ok(job.alloc::<u64>(job.rank().index()).unwrap_err())).unwrap();
        let disagree = Cause::Disagree { what: "bytes", least: 0, most: 16 };
        assert!(errors.iter().all(|error| *error.cause() == disagree && error.call().starts_with("alloc(")));
    }
}
