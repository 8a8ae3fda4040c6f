//! The job: what the program's function gets as its argument.

use crate::communicator::Communicator;
use crate::handler::registry::{Handlers, Locals};
use crate::memory::allocate::{allocate_part, bytes_of, map};
use crate::memory::array::Array;
use crate::onesided::{GlobalAddress, LocalArray, MemberArray};
use crate::signal::Signal;
use crate::start::{Helper, RankOptions};
use crate::{Member, Pod, Rank, Result};
use std::any::type_name;
use std::sync::Arc;
use std::time::Duration;
use tasuki_collective::{JobBarrier, JobCallSignature, MinMax};
use tasuki_core::base::Cause;
use tasuki_core::engine::{LimitGuard, Worker, in_one_call};
use tasuki_core::segment::check_available;

/// The membership of one rank in a job: memory, signals, queues, handlers, and the communicator of all ranks.
///
/// Any thread of the rank may make any call. Several jobs may exist in one process. A clone is another handle of the
/// same membership, for tasks of an executor. After the rank's program has returned, its calls fail.
///
/// ```
/// use tasuki::{Rank, Slot, Sum};
/// tasuki::local(3, |job| {
///     let counter = job.alloc::<u64>(1)?; // memory on every rank
///     job.fetch_add(counter.on(Rank(0)), 1)?;
///     job.barrier()?;
///     if job.rank() == 0 {
///         assert_eq!(counter.get(0)?, job.size() as u64);
///     }
///     let (mut got, next) = (0_usize, job.rank_after(1));
///     job.world().sendrecv(&job.rank().index(), next, &mut got, job.rank_after(-1), Slot(0))?;
///     assert_eq!(job.world().allreduce(&got, Sum)?, 3);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) worker: Arc<Worker>,
    job_barrier: Arc<JobBarrier>,
    world: Communicator,
    pub(crate) locals: Arc<Locals>,
    pub(crate) helper: Arc<Helper>,
    limit: Option<Duration>,
}

/// A collective call of the job, as ranks compare it and as errors name it.
type CallOfJob<'c> = (JobCallSignature, &'c str);

/// Bytes of a rank's send buffer, unless `TASUKI_SEND_BUFFER` says otherwise.
const SEND_BUFFER: u64 = 4 << 20;

impl Job {
    pub(crate) fn new(worker: Worker, rank_options: RankOptions, handlers: &Handlers) -> Result<Job> {
        let job_barrier = JobBarrier::new(&worker)?;
        worker.open_inbox()?;
        let locals = Arc::new(handlers.make_locals());
        register_handlers(&worker, &job_barrier, handlers, &locals)?;
        let worker = Arc::new(worker);
        let helper = Helper::new(&worker, rank_options.helper);
        let world = Communicator::world(&worker, &helper, rank_options.selection)?;
        world.abort_on_failure(rank_options.abort_on_failure);
        world.messages().set_any_source_size(rank_options.any_source);
        if !handlers.are_none() {
            helper.start();
        }
        worker.set_default_limit(rank_options.call_timeout);
        world.messages().set_send_buffer_capacity(rank_options.send_buffer.unwrap_or(SEND_BUFFER));
        let job_barrier = Arc::new(job_barrier);
        Ok(Job { worker, job_barrier, world, locals, helper, limit: None })
    }

    /// The number of this rank, `0 .. size`.
    ///
    /// ```
    /// let ranks = tasuki::local(3, |job| Ok(job.rank().index()))?;
    /// assert_eq!(ranks, [0, 1, 2]);
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn rank(&self) -> Rank {
        self.worker.rank()
    }

    /// The number of ranks of the job.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let (me, size) = (job.rank().index(), job.size());
    ///     let mine = 100 * me / size..100 * (me + 1) / size; // this rank's share of 100 items
    ///     assert_eq!(mine, [0..33, 33..66, 66..100][me]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        self.worker.size()
    }

    /// The communicator of all ranks. It has 1024 slots for each pair and direction.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(3, |job| {
    ///     assert_eq!(job.world().allreduce(&1_usize, Sum)?, job.size());
    ///     assert_eq!(job.world().rank(), job.rank().index());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn world(&self) -> &Communicator {
        &self.world
    }

    /// This job, with a limit on the time of each call that waits, which fails with
    /// [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut) when it is reached. It limits calls of the job, of its
    /// world, and of signals, [receive queues](crate::message::ReceiveQueue) and channels made on it.
    ///
    /// What a call leaves behind that has reached its limit:
    ///
    /// | call | afterwards |
    /// |---|---|
    /// | send | not sent; nobody reads the values any more |
    /// | receive | withdrawn; the next receive on the slot, or of any slot, gets the message |
    /// | wait for a signal, or for operations ([`Job::complete`]) | nothing has changed: wait again |
    /// | call of a handler that waits for room | not called |
    /// | [`Job::flush_calls`] | the calls run all the same; failures that it would have reported are forgotten |
    /// | collective call of a communicator | the communicator has failed, on all members; [`recreate`](Communicator::recreate) makes a new one |
    /// | [`Job::barrier`], allocation | the world has failed, and so have all later barriers and allocations of the job, on all ranks |
    ///
    /// No call returns while a peer may use its memory. So a message that is being transferred, and a blocking put, get
    /// or atomic ([`Job::accumulate`] and [`Job::fetch_and_op`], too), are waited for without a limit; they end with
    /// the transfer, or with the peer's death. In [registered memory](Job::register) that may take until its owner
    /// makes a call.
    ///
    /// Most requests do not keep the limit: [`Request`](crate::Request#time-limits) says which do.
    /// [`wait_timeout`](crate::Request::wait_timeout) limits one wait. A future has the limits of its executor. Leaving
    /// the job has no limit.
    ///
    /// Cost: copies of a few references; keep the result in a loop. Its calls read the clock once more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::{ErrorKind, Rank, Slot};
    /// tasuki::local(2, |job| {
    ///     let (soon, mut value) = (job.within(Duration::from_millis(2)), 0_u64);
    ///     if job.rank() == 1 {
    ///         let error = soon.world().recv(&mut value, Rank(0), Slot(0)).unwrap_err();   // nobody has sent
    ///         assert_eq!(error.kind(), ErrorKind::TimedOut);
    ///     }
    ///     job.barrier()?;
    ///     match job.rank().0 {
    ///         0 => job.world().send(&7_u64, Rank(1), Slot(0))?,
    ///         _ => drop(job.world().recv(&mut value, Rank(0), Slot(0))?),
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn within(&self, limit: Duration) -> Job {
        Job { world: self.world.within(limit), limit: Some(limit), ..self.clone() }
    }

    /// Sets the limit of every call of this rank that has no other ([`Job::within`]). `None`, the default: no limit.
    ///
    /// `tasuki run --call-timeout 30s` and the variable `TASUKI_CALL_TIMEOUT` set it for all ranks of a job. It also
    /// limits the wait of a request, after which the work goes on. Local; holds for calls that begin later, on all
    /// threads of the rank. Cost: a store. A call that ends while it spins does not look at the limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::ErrorKind;
    /// tasuki::local(1, |job| {
    ///     job.set_timeout(Some(Duration::from_millis(1)));
    ///     let never = job.signal()?;
    ///     let error = never.wait_at_least(1).unwrap_err();
    ///     assert_eq!(error.kind(), ErrorKind::TimedOut);
    ///     job.set_timeout(None);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn set_timeout(&self, limit: Option<Duration>) {
        self.worker.set_default_limit(limit);
    }

    /// Limits the calls of this thread until the result is dropped, if this handle has a limit.
    #[inline(always)]
    pub(crate) fn limited(&self) -> Option<LimitGuard> {
        self.limit.map(|limit| self.worker.limited(limit))
    }

    /// Sets what happens when a collective call fails on this rank: whether the job ends, as if the rank had died.
    ///
    /// Otherwise, and at first, the call returns its error, and the communicator has failed until the members
    /// [`recreate`](Communicator::recreate) it. MPI calls these error handlers `MPI_ERRORS_ARE_FATAL`, which is its
    /// default, and `MPI_ERRORS_RETURN`. The environment variable `TASUKI_ABORT_ON_FAILURE=on` sets it for all ranks of
    /// a job. Only failures count that make a communicator fail, not wrong arguments that a call refuses before it
    /// begins. Local; applies to all communicators of the rank. Cost: a store.
    ///
    /// ```
    /// let ended = tasuki::local(2, |job| {
    ///     job.abort_on_failure(true);
    ///     let mine = vec![1_u64; if job.rank() == 1 { 2 } else { 1 }]; // a bug: lengths differ
    ///     let _ = job.world().allgather(&mine);
    ///     job.barrier() // the job is over
    /// });
    /// assert!(ended.is_err());
    /// ```
    pub fn abort_on_failure(&self, aborts: bool) {
        self.world.abort_on_failure(aborts);
    }

    /// Allocates `count` zeroed values on every rank.
    ///
    /// Collective ([rules](crate::collective#rules)), with the same type and count on all ranks. The memory is backed
    /// when the call returns, so that a later access cannot fail for lack of memory. Each rank frees its part when it
    /// drops its [`Array`].
    ///
    /// Errors: `count` is 0; type or count differ between ranks, or other ranks are in a barrier of the job; the
    /// machine, the container or the address range has no room. After an error no rank has allocated. Cost: two
    /// barriers and a system call.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(100)?;
    ///     let peer = tasuki::Rank(1 - job.rank().0);
    ///     job.put(table.on(peer).at(7), &[job.rank().0 as u64])?;
    ///     job.barrier()?;
    ///     assert_eq!(table.get(7)?, peer.0 as u64);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn alloc<T: Pod>(&self, count: usize) -> Result<Array<T>> {
        let (_limit, _call) = (self.limited(), in_one_call());
        let call = (JobCallSignature::alloc::<T>(count), &*format!("alloc({count} x {})", type_name::<T>()));
        let bytes = bytes_of::<T>(count);
        self.agree_on_size(*bytes.as_ref().unwrap_or(&0), call)?;
        let bytes = bytes.map_err(|error| error.in_call(|| call.1.into()).on_rank(self.rank()))?;
        let taken = match self.worker.registry().allocate_symmetric(bytes) {
            Ok(None) => self.freed_address(bytes, call)?,
            Ok(Some(start)) => Ok(start),
            Err(error) => Err(error),
        };
        let taken = taken.and_then(|start| map(&self.worker, start, bytes));
        Ok(Array::new(self.worker.clone(), self.unanimous(taken, call)?, count))
    }

    /// Makes a signal: a counter on every rank that only grows.
    ///
    /// All ranks must make their signals and payload signals ([`PayloadSignal`](crate::onesided::PayloadSignal)) in the
    /// same order. The call communicates nothing, and a peer may raise the signal before this rank has made it. A
    /// signal lives as long as the job and takes 128 bytes. A job has at most 2^20 signals and payload signals,
    /// including those of plans and communicators.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let (data, arrived) = (job.alloc::<f64>(4)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     job.put_signal(data.on(peer), &[0.5; 4], arrived.on(peer), 1)?;
    ///     arrived.wait_at_least(1)?; // the peer's values are here
    ///     assert_eq!(data.to_vec()?, [0.5; 4]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn signal(&self) -> Result<Signal<'_>> {
        Signal::new(self, self.next_signal("signal()")?)
    }

    /// Returns when all ranks have called it. Everything that any rank did before the barrier is visible to all ranks
    /// after it.
    ///
    /// Collective ([rules](crate::collective#rules)): barriers and allocations of the job are blocking calls of the
    /// world. Errors, besides failures: another thread of this rank is in a barrier or allocation; other ranks are in
    /// an allocation of the job, and then all ranks get an error, and may go on. If other ranks are in a call of the
    /// world, the world has failed: each rank gets that error in one call of the job or of the world, and then barriers
    /// and allocations of the job go on. Cost: ceil(log2 P) signals sent and awaited.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let data = job.alloc::<u64>(1)?;
    ///     job.put(data.on(job.rank_after(1)), &[7])?;
    ///     job.barrier()?; // all ranks have put
    ///     assert_eq!(data.get(0)?, 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn barrier(&self) -> Result<()> {
        self.agree((JobCallSignature::BARRIER, "job.barrier()"), 0).map(drop)
    }

    /// The rank `steps` after this one, counted around the end. Negative steps go back.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let around = [job.rank_after(1), job.rank_after(-1), job.rank_after(3)];
    ///     if job.rank() == 0 {
    ///         assert_eq!(around, [Rank(1), Rank(2), Rank(0)]);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank_after(&self, steps: i64) -> Rank {
        Rank((self.rank().0 as i64 + steps).rem_euclid(self.size() as i64) as usize)
    }

    /// All ranks, in order.
    ///
    /// ```
    /// use tasuki::{Rank, Slot};
    /// tasuki::local(3, |job| {
    ///     if job.rank() == 0 {
    ///         for to in job.ranks().skip(1) {
    ///             job.world().send(&to.index(), to, Slot(0))?;
    ///         }
    ///     } else {
    ///         let mut got = 0;
    ///         job.world().recv(&mut got, Rank(0), Slot(0))?;
    ///         assert_eq!(job.rank(), got);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator + Clone + use<> {
        Rank::all(self.size())
    }

    /// Allocates `count` zeroed values on this rank alone. Other ranks access them through [`Array::pointer`], which
    /// may be sent to them.
    ///
    /// Not collective. Errors: `count` is 0; there is no room. Cost: a system call.
    ///
    /// ```
    /// use tasuki::{GlobalPtr, Rank};
    /// tasuki::local(2, |job| {
    ///     let mut at = GlobalPtr::<u32>::NULL;
    ///     let table = if job.rank() == 1 { Some(job.alloc_local::<u32>(1000)?) } else { None };
    ///     if let Some(table) = &table {
    ///         table.set(999, 7)?;
    ///         at = table.pointer();
    ///     }
    ///     job.world().bcast(&mut at, Rank(1))?;
    ///     assert_eq!(job.get_value(at.at(999))?, 7);
    ///     job.barrier() // the array lives until all have read it
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn alloc_local<T: Pod>(&self, count: usize) -> Result<LocalArray<T>> {
        allocate_part(&self.worker, count, &|| format!("alloc_local({count} x {})", type_name::<T>()))
    }

    /// Allocates `count` zeroed values on every member of a communicator.
    ///
    /// Collective on that communicator ([rules](crate::collective#rules)), with the same type and count on all members.
    /// Each member frees its part when it drops its [`Array`].
    ///
    /// Errors: those of [`Job::alloc`], on all members; the communicator belongs to another job, and has then failed.
    /// After another error no member has allocated, and the communicator goes on. Cost: an allgather of 16 bytes and a
    /// system call; 8 bytes for each member.
    ///
    /// ```
    /// use tasuki::Member;
    /// tasuki::local(4, |job| {
    ///     let half = job.world().split(job.rank().0 / 2)?;
    ///     let table = job.alloc_on::<usize>(&half, 10)?;
    ///     let peer = Member(1 - half.rank().0);
    ///     job.put(table.on(peer).at(3), &[job.rank().0])?;
    ///     half.barrier()?;
    ///     assert_eq!(table.get(3)?, half.members().rank_of(peer).unwrap().0);
    ///     assert!(table.on(job.rank_after(2)).is_null()); // a rank of the other half
    ///     half.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn alloc_on<T: Pod>(&self, members: &Communicator, count: usize) -> Result<MemberArray<T>> {
        let _limit = self.limited();
        let call = || format!("alloc_on({count} x {}, {})", type_name::<T>(), members.inner().name());
        if !Arc::ptr_eq(members.messages().worker(), &self.worker) {
            let cause = Cause::Argument("the communicator belongs to another job".into());
            return Err(members.inner().refuse(cause, "alloc_on", &call));
        }
        let own: Result<MemberArray<T>> = allocate_part(&self.worker, count, &call);
        let start = own.as_ref().map_or(GlobalAddress::NULL, |part| part.pointer().address());
        let signature = JobCallSignature::alloc::<T>(count);
        let parts = members.inner().exchange_words("alloc_on", &[start.bits(), signature.bits()], &call);
        let (own, parts) = (own?, parts?);
        let signatures = parts.iter().skip(1).step_by(2).copied().map(JobCallSignature::from_bits);
        let starts: Box<[_]> = parts.iter().step_by(2).copied().map(GlobalAddress::from_bits).collect();
        let different = signatures.enumerate().find(|(_, other)| *other != signature);
        let cause = if let Some((member, other)) = different {
            let who = members.members().rank_of(Member(member));
            let who = who.map_or(String::new(), |rank| format!(", rank {rank},"));
            let text = format!(
                "member {member}{who} allocates {}, and this one {}",
                other.values(),
                signature.values()
            );
            Cause::mismatch(Some(member), text)
        } else if starts.iter().any(|start| start.is_null()) {
            Cause::no_room_at(None, "another member could not allocate its part, so no member has allocated")
        } else {
            return Ok(own.with_parts(members.messages(), starts));
        };
        let rank_of = |member| members.members().rank_of(Member(member));
        Err(self.worker.fault(cause, call).of_members(rank_of))
    }

    /// Agrees that all ranks want the same number of bytes and that the node has room for all of it. Otherwise all
    /// ranks fail and no rank allocates.
    fn agree_on_size(&self, bytes: u64, call: CallOfJob<'_>) -> Result<()> {
        const NO_ROOM: u64 = u64::MAX;
        let room = check_available(bytes.saturating_mul(self.size() as u64));
        let MinMax { least, most, .. } = self.agree(call, if room.is_ok() { bytes } else { NO_ROOM })?;
        room.map_err(|error| error.in_call(|| call.1.into()).on_rank(self.rank()))?;
        let cause = match most {
            NO_ROOM => {
                Cause::no_room_at(None, "another rank has no room for its part, so no rank has allocated")
            }
            _ if least != most => Cause::Disagree { member: None, what: "bytes", least, most },
            _ => return Ok(()),
        };
        Err(self.worker.fault(cause, || call.1.into()))
    }

    /// Finds an address that every rank has freed, when the fresh addresses are used up; they are used up on all
    /// ranks at once. The inner error is this rank's alone, the outer error is common to all ranks.
    fn freed_address(&self, bytes: u64, call: CallOfJob<'_>) -> Result<Result<u64>> {
        let mut from = 0;
        loop {
            let ours = self.worker.registry().freed_symmetric(bytes, from);
            let MinMax { least, most, busy, .. } = self.agree(call, ours)?;
            if most == u64::MAX || busy {
                let until = if busy {
                    " (freed memory cannot be used again before the operations of all ranks have ended)"
                } else {
                    ""
                };
                let limit = format!("the address range of symmetric memory{until}");
                let cause = Cause::NoMemory { wanted: bytes, available: 0, limit };
                return Err(self.worker.fault(cause, || call.1.into()));
            }
            if least == most {
                return Ok(self.worker.registry().allocate_symmetric_at(most, bytes));
            }
            from = most;
        }
    }

    /// The outcome of a step that every rank takes: an error on one rank is an error on all ranks.
    fn unanimous(&self, own: Result<u64>, call: CallOfJob<'_>) -> Result<u64> {
        let least = self.agree(call, u64::from(own.is_ok()))?.least;
        let own = own.map_err(|error| error.in_call(|| call.1.into()).on_rank(self.rank()))?;
        if least == 1 {
            return Ok(own);
        }
        self.worker.registry().free(own)?;
        let other =
            Cause::no_room_at(None, "another rank could not allocate its part, so no rank has allocated");
        Err(self.worker.fault(other, || call.1.into()))
    }

    /// A barrier that also computes the minimum and maximum of the ranks' values. If no rank had unfinished
    /// operations, memory that was freed before may be used again.
    fn agree(&self, (signature, call): CallOfJob<'_>, value: u64) -> Result<MinMax> {
        let _limit = self.limited();
        let agree = |is_after| self.job_barrier.agree(&self.worker, signature, value, is_after, call);
        let agreed = self.world.inner().run_job_call(signature, &|| call.into(), agree)?;
        if !agreed.busy {
            self.worker.registry().barrier_passed();
        }
        Ok(agreed)
    }

    pub(crate) fn next_signal(&self, call: &str) -> Result<u32> {
        self.worker.check().map_err(|cause| self.worker.fault(cause, || call.into()))?;
        self.worker.registry().signal().map_err(|error| error.in_call(|| call.into()).on_rank(self.rank()))
    }

    pub(crate) fn check_rank(&self, rank: Rank, call: &str) -> Result<()> {
        self.worker
            .check_rank(rank)
            .map_err(|cause| self.worker.fault(cause, || format!("{call}(rank {rank})")))
    }
}

/// Registers a rank's handlers and checks that they are equal on all ranks. It contains a barrier: no rank may call a
/// handler before all ranks have registered theirs.
fn register_handlers(
    worker: &Worker,
    job_barrier: &JobBarrier,
    handlers: &Handlers,
    locals: &Arc<Locals>,
) -> Result<()> {
    let call = || "registering handlers".to_string();
    let ours = if handlers.are_none() {
        0
    } else {
        worker.register_handlers(handlers.table(locals).map_err(|cause| worker.fault(cause, call))?)?
    };
    let (signature, name) = (JobCallSignature::HANDLERS, "registering handlers");
    let agree = |value| job_barrier.agree(worker, signature, value, false, name);
    let MinMax { least, most, .. } = agree(ours)?;
    if least == most {
        return Ok(());
    }
    // All ranks know that the handlers differ. They look for the first that does.
    for number in 0.. {
        let MinMax { least, most, .. } = agree(worker.handler_table().fingerprint_of(number))?;
        if least != most {
            let here = worker.handler_table().described(number);
            let text = format!("the ranks have different handlers: on this rank number {number} is {here}");
            return Err(worker.fault(Cause::mismatch(None, text), call).note(SAME_HANDLERS));
        }
        if most == 0 {
            break;
        }
    }
    Err(worker.fault(Cause::Bug("equal handlers have their queues at different addresses".into()), call))
}

/// Tells the user how to correct the error.
const SAME_HANDLERS: &str = "hint: add the same handlers on all ranks, in the same order";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetric_addresses_are_reused_where_all_ranks_have_freed() {
        crate::local(3, |job| {
            let mut arrays: Vec<Array<u8>> = (0..4).map(|_| job.alloc(100_000)).collect::<Result<_>>()?;
            job.worker.registry().exhaust_symmetric();
            assert!(matches!(job.alloc::<u8>(1).unwrap_err().cause(), Cause::NoMemory { .. }));
            let third = arrays[2].pointer();
            // Every rank frees two arrays, but only the third array is freed on all of them.
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
    fn alloc_with_different_counts_fails_on_all_ranks() {
        let errors = crate::local(3, |job| Ok(job.alloc::<u64>(job.rank().index()).unwrap_err())).unwrap();
        let text = "rank 0 in job.alloc(0 x u64), rank 2 in job.alloc(2 x u64)";
        for (rank, error) in errors.iter().enumerate() {
            let here = if rank == 1 { ", this one in job.alloc(1 x u64)" } else { "" };
            assert!(
                error.is_disagreement() && error.headline().ends_with(&format!("{text}{here}")),
                "{error}"
            );
            assert!(error.call().starts_with("alloc("));
        }
    }
}
