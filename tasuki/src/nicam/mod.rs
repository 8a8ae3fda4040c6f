//! Transfers with notification after the interface of NICAM: copies that set a flag where they arrive, copies that
//! are counted there, and copies whose two sides are matched by a key. All of them go on while the ranks compute.
//!
//! They are commands of a queue ([`Queue`]), so any rank that waits, posts or raises a signal moves them on. Each
//! transfer has a *ticket*: one of [`TICKETS`] signals of the issuing rank, used in turn, which every transfer raises
//! by the same total. Whatever follows a copy, such as its flag, has the ticket's signal as its trigger.
//! [`Transfers::sync`], which waits for all transfers, waits for the tickets that were given out. A count of
//! completed transfers would not do, because it does not say which transfers have completed.
//!
//! A copy also raises the signal of its *lane*. There is one lane for each destination, up to [`LANES`]. Copies have
//! no trigger, so they fire in the order in which they were posted, and effects on one signal happen in the order in
//! which their commands fired. So when a lane has counted as many copies as were announced before a moment, all these
//! copies have arrived. [`Transfers::write_one`] waits for that. Copies are announced before they are posted;
//! otherwise a copy of another thread might be counted in place of one's own.
//!
//! The flags of a rank are numbered in that rank's lane, and each waits until the previous one is set. Otherwise an
//! older value might overwrite a newer one, because a command's store may take time while the next command passes it.
//!
//! The calls of NICAM and their equivalents:
//!
//! | NICAM | here |
//! |---|---|
//! | `nicam_init`, `nicam_finalize` | the beginning and end of a job: [`main`](crate::main()), [`local`](crate::local()) |
//! | `nicam_self`, `nicam_nodes` | [`Job::rank`], [`Job::size`] |
//! | `nicam_alloc` | [`Job::alloc`]; [`Array::on`](crate::Array::on) is the address of each rank's part |
//! | `nicam_lock_memory` | [`Job::register`]; not needed for memory of `alloc` |
//! | `nicam_bcopy`, `nicam_sync` | [`Transfers::copy`], [`Transfers::sync`]; or [`Job::copy`], [`Job::complete`] |
//! | `nicam_write1` | [`Transfers::write_one`] |
//! | `nicam_bcopy_notify` | [`Transfers::copy_notify`] |
//! | `nicam_bcopy_countup`, `nicam_set_counter` | [`Transfers::copy_countup`], [`Transfers::set_counter`] |
//! | `nicam_bcast`, `nicam_bcast_discard` | [`Transfers::bcast`], [`Transfers::bcast_discard`] |
//! | `nicam_barrier` | [`Communicator::fuzzy_barrier`](crate::Communicator::fuzzy_barrier) |
//! | `nicam_bcopy_src`, `nicam_bcopy_dst` | [`Transfers::copy_source`], [`Transfers::copy_destination`] |
//!
//! Source: Matsuda, Tanaka, Kubota, Sato, "Network Interface Active Messages for SMP clusters".

mod bcast;
mod countup;
mod flag;
mod rendezvous;

pub(crate) use flag::check_words;
pub use flag::{Flag, Flags, RemoteFlag};

use crate::request::{Request, future_by_request};
use crate::{Command, Error, GlobalPtr, Job, Pod, Queue, Rank, Result, Signal};
use countup::Counter;
use rendezvous::MatchLists;
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition};

/// Transfers of a rank that may be in flight at a time; one more waits for the oldest.
///
/// ```
/// use tasuki::Request;
/// use tasuki::nicam::{Flags, TICKETS, Transfers};
/// tasuki::local(2, |job| {
///     let count = 2 * TICKETS; // the calls for the second half wait for the first
///     let (data, flags, transfers) = (job.alloc::<u64>(count)?, Flags::new(job, 1)?, Transfers::new(job)?);
///     let (peer, flag) = (job.rank_after(1), flags.at(0));
///     for index in 0..count {
///         let from = data.pointer().at(index);
///         transfers.copy_notify(from, data.on(peer).at(index), 1, flag.on(peer), index as u64 + 1)?;
///     }
///     transfers.sync().wait()?;
///     flag.wait(count as u64)?;
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub const TICKETS: usize = 64;
/// Destinations with a lane of their own, which orders the transfers to one destination. More destinations share
/// lanes.
///
/// ```
/// use tasuki::nicam::LANES;
/// tasuki::local(2, |job| {
///     // Transfers to one rank never wait for those to another one here.
///     assert!(job.size() <= LANES);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub const LANES: usize = 64;
/// The total by which each transfer raises its ticket's signal.
const STEP: u64 = 4;
/// Places of the queue: a transfer has up to three commands of at most two places each.
const QUEUE: usize = TICKETS * 6;

/// A rank's transfers with notification. Made by [`Transfers::new`]. Any thread may make any call, several threads at
/// once.
///
/// No call waits for a transfer, except for the oldest one if [`TICKETS`] are in flight. Memory that a transfer reads
/// or writes must stay allocated until the transfer has ended. An invalid address is an error at once, if this rank
/// can find it, and then nothing is copied. If a transfer fails later, the waits for its flag and for the flags of
/// the same block fail; [`Transfers::sync`] and all later transfers of this rank report the failure.
///
/// ```
/// use tasuki::Request;
/// use tasuki::nicam::{Flags, Transfers};
/// tasuki::local(2, |job| {
///     let (data, flags, transfers) = (job.alloc::<f64>(100)?, Flags::new(job, 1)?, Transfers::new(job)?);
///     let (me, peer) = (job.rank(), job.rank_after(1));
///     job.barrier()?;
///     let arrived = flags.at(0);
///     transfers.copy_notify(data.on(me), data.on(peer).at(50), 50, arrived.on(peer), 7)?;
///     arrived.wait(7)?;                                 // fifty values of the peer have arrived
///     transfers.sync().wait()?;                         // this rank's values are at the peer
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct Transfers<'job> {
    job: &'job Job,
    queue: Queue,
    tickets: Box<[Signal<'job>]>,
    given: AtomicU64,
    lanes: Box<[Lane<'job>]>,
    counter: Counter<'job>,
    discards: crate::Array<u64>,
    match_lists: MatchLists,
}

/// The transfers to one destination, or to several that share a lane.
#[derive(Debug)]
struct Lane<'job> {
    /// Counts copies that have arrived.
    arrived: Signal<'job>,
    announced: AtomicU64,
    /// Counts flags that are set.
    flagged: Signal<'job>,
    numbered: AtomicU64,
}

/// All transfers that a rank had issued at a moment. Made by [`Transfers::sync`].
///
/// It is finished when the data of all these transfers are visible at their destinations. It may be waited for any
/// number of times. Errors of a wait: a transfer has failed; a rank died. Cost of a test: a load for each ticket if it
/// is true; otherwise the call moves this rank's work on.
///
/// ```
/// use tasuki::Request;
/// use tasuki::nicam::{Sync, Transfers};
/// tasuki::local(2, |job| {
///     let (data, transfers, peer) = (job.alloc::<u64>(20)?, Transfers::new(job)?, job.rank_after(1));
///     data.set(0, 7)?;
///     transfers.copy(data.pointer(), data.on(peer).at(10), 1)?;
///     let mut sent: Sync<'_> = transfers.sync(); // the copy so far
///     transfers.copy(data.pointer(), data.on(peer).at(11), 1)?;
///     sent.wait()?; // says nothing about the second one
///     assert_eq!(job.get_value(data.on(peer).at(10))?, 7);
///     transfers.sync().wait()?;
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Sync<'t> {
    transfers: &'t Transfers<'t>,
    given: u64,
    awaited: AwaitedCondition,
}

/// One transfer: its signal, and the signal's count before the transfer.
struct Ticket<'t, 'job> {
    signal: &'t Signal<'job>,
    before: u64,
    me: Rank,
}

impl<'job> Transfers<'job> {
    /// Makes what transfers with notification need on every rank.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors: those of [`Job::alloc`] and [`Job::queue`]. Cost: two
    /// allocations, of 64 KiB and of 1088 bytes for each rank of the job; a queue of 512 places; up to 194 signals.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::nicam::Transfers;
    /// tasuki::local(2, |job| {
    ///     let (data, transfers) = (job.alloc::<u64>(2)?, Transfers::new(job)?);
    ///     data.set(0, 7)?;
    ///     transfers.copy(data.pointer(), data.on(job.rank_after(1)).at(1), 1)?;
    ///     transfers.sync().wait()?;
    ///     job.barrier()?;
    ///     assert_eq!(data.get(1)?, 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(job: &'job Job) -> Result<Transfers<'job>> {
        let lane = |_| Lane::new(job);
        Ok(Transfers {
            job,
            queue: job.queue(QUEUE)?,
            tickets: (0..TICKETS).map(|_| job.signal()).collect::<Result<_>>()?,
            given: AtomicU64::new(0),
            lanes: (0..LANES.min(job.size())).map(lane).collect::<Result<_>>()?,
            counter: Counter::new(job)?,
            discards: job.alloc(job.size())?,
            match_lists: MatchLists::new(job)?,
        })
    }
}

impl<'job> Lane<'job> {
    fn new(job: &'job Job) -> Result<Lane<'job>> {
        let zero = || AtomicU64::new(0);
        Ok(Lane { arrived: job.signal()?, announced: zero(), flagged: job.signal()?, numbered: zero() })
    }
}

impl Ticket<'_, '_> {
    fn add(&self, part: u64) -> crate::onesided::Effect {
        self.signal.on(self.me).add(part as u32)
    }

    /// The trigger that is met when the ticket's copy has arrived.
    fn has_copied(&self) -> crate::onesided::Trigger<'_> {
        self.signal.reaches(self.before + 1)
    }
}

impl<'job> Transfers<'job> {
    /// Copies `count` values between any two places. Any rank that may run it carries out a copy that a third rank
    /// requested.
    ///
    /// Only [`Transfers::sync`] reports its end. If the caller waits for the copy anyway, [`Job::copy`] costs less.
    /// Source: NICAM, `nicam_bcopy`.
    ///
    /// ```
    /// use tasuki::nicam::Transfers;
    /// use tasuki::{Rank, Request};
    /// tasuki::local(3, |job| {
    ///     let (data, transfers) = (job.alloc::<u64>(8)?, Transfers::new(job)?);
    ///     data.fill(job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     if job.rank() == 0 {
    ///         transfers.copy(data.on(Rank(1)), data.on(Rank(2)), 8)?; // between two other ranks
    ///         transfers.sync().wait()?;
    ///     }
    ///     job.barrier()?;
    ///     assert!(job.rank() != 2 || data.to_vec()? == [1; 8]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy<T: Pod>(&self, from: GlobalPtr<T>, to: GlobalPtr<T>, count: usize) -> Result<()> {
        self.check("copy", &[(from, count), (to, count)])?;
        let ticket = self.ticket("copy")?;
        let lane = self.announce(to.rank());
        self.post(&[Command::copy(from, to, count).then(ticket.add(STEP)).then(lane)])
    }

    /// Copies, then sets a flag at the destination or on another rank.
    ///
    /// The flag is not set before earlier copies to the destination have arrived, nor before the flags of the same
    /// rank that this thread requested earlier, by this call or by [`Transfers::write_one`]: a flag whose values grow
    /// never goes back. Source: NICAM, `nicam_bcopy_notify`.
    ///
    /// ```
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (data, flags, transfers) = (job.alloc::<u64>(20)?, Flags::new(job, 1)?, Transfers::new(job)?);
    ///     let (flag, peer) = (flags.at(0), job.rank_after(1));
    ///     data.write(0, &[job.rank().index() as u64; 10])?;
    ///     transfers.copy_notify(data.pointer(), data.on(peer).at(10), 10, flag.on(peer), 1)?;
    ///     flag.wait(1)?; // the peer's values are here
    ///     assert_eq!(data.to_vec()?[10..], [peer.index() as u64; 10]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy_notify<T: Pod>(
        &self,
        from: GlobalPtr<T>,
        to: GlobalPtr<T>,
        count: usize,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<()> {
        self.check("copy_notify", &[(from, count), (to, count)])?;
        self.check_flag("copy_notify", flag)?;
        let ticket = self.ticket("copy_notify")?;
        let lane = self.announce(to.rank());
        let copy = Command::copy(from, to, count).then(ticket.add(1)).then(lane);
        let [set, end] = self.set_in_order(flag, value, ticket.has_copied(), ticket.add(STEP - 1));
        self.post(&[copy, set, end])
    }

    /// Sets a flag of some rank after everything that this thread has copied to that rank before has arrived, and
    /// after the flags there that this thread requested before.
    ///
    /// Source: NICAM, `nicam_write1`.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::nicam::{Flags, Transfers};
    /// tasuki::local(2, |job| {
    ///     let (flags, transfers) = (Flags::new(job, 1)?, Transfers::new(job)?);
    ///     transfers.write_one(flags.at(0).on(job.rank_after(1)), 5)?;
    ///     flags.at(0).wait(5)?;
    ///     transfers.sync().wait()?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn write_one(&self, flag: RemoteFlag, value: u64) -> Result<()> {
        self.check_flag("write_one", flag)?;
        let ticket = self.ticket("write_one")?;
        let lane = self.lane(flag.rank());
        let arrived = lane.arrived.reaches(lane.announced.load(Ordering::Relaxed));
        self.post(&self.set_in_order(flag, value, arrived, ticket.add(STEP)))
    }

    /// All transfers that this rank has issued so far, with their flags, including copies between other ranks that it
    /// requested. Copies by key are not included; their flags report their end.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::nicam::Transfers;
    /// tasuki::local(2, |job| {
    ///     let (data, transfers) = (job.alloc::<u64>(20)?, Transfers::new(job)?);
    ///     data.write(0, &[7; 10])?;
    ///     for index in 0..10 {
    ///         transfers.copy(data.pointer().at(index), data.on(job.rank_after(1)).at(10 + index), 1)?;
    ///     }
    ///     transfers.sync().wait()?; // all ten are at the peer
    ///     job.barrier()?;
    ///     assert_eq!(data.to_vec()?, [7; 20]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Source: NICAM, `nicam_sync`.
    pub fn sync(&self) -> Sync<'_> {
        let given = self.given.load(Ordering::Relaxed);
        Sync { transfers: self, given, awaited: AwaitedCondition::default() }
    }

    /// The next ticket. Waits until the previous transfer with the same signal has ended; `call` is the name of the
    /// call for errors. Error: a transfer has failed.
    fn ticket(&self, call: &str) -> Result<Ticket<'_, 'job>> {
        self.check_no_failure(call)?;
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let (signal, before) = self.signal_of(number);
        signal.wait_in_call(before, &|| format!("{call}: waiting for the oldest of {TICKETS} transfers"))?;
        Ok(Ticket { signal, before, me: self.job.rank() })
    }

    /// Checks that no transfer of this rank has failed.
    fn check_no_failure(&self, call: &str) -> Result<()> {
        let failure = self.queue.failure_cause();
        failure.map_or(Ok(()), |cause| Err(self.job.worker.fault(cause, || call.into())))
    }

    /// The command that sets a flag when `trigger` is met and the earlier flags of its lane are set, and the command
    /// that then ends the transfer.
    fn set_in_order(
        &self,
        flag: RemoteFlag,
        value: u64,
        trigger: crate::onesided::Trigger<'_>,
        end: crate::onesided::Effect,
    ) -> [Command; 2] {
        let lane = self.lane(flag.rank());
        let before = lane.numbered.fetch_add(1, Ordering::Relaxed);
        let set = flag.set(value).when(trigger).when(lane.flagged.reaches(before));
        [
            set.then(lane.flagged.on(self.job.rank()).add(1)),
            Command::nothing().when(lane.flagged.reaches(before + 1)).then(end),
        ]
    }

    /// The signal of a ticket, and its count when the ticket's transfer may begin.
    fn signal_of(&self, number: u64) -> (&Signal<'job>, u64) {
        let all = self.tickets.len() as u64;
        (&self.tickets[(number % all) as usize], number / all * STEP)
    }

    fn lane(&self, to: Rank) -> &Lane<'job> {
        &self.lanes[to.index() % self.lanes.len()]
    }

    /// Announces a copy to that rank. Returns the effect that counts the copy.
    fn announce(&self, to: Rank) -> crate::onesided::Effect {
        let lane = self.lane(to);
        lane.announced.fetch_add(1, Ordering::Relaxed);
        lane.arrived.on(self.job.rank()).add(1)
    }

    /// Posts the commands of a transfer. Waits while the queue is full, because announced copies must be posted.
    fn post(&self, commands: &[Command]) -> Result<()> {
        loop {
            match self.queue.post_many(commands) {
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                    self.job.worker.relax("a transfer: waiting for room in the queue")?;
                }
                posted => return posted.map(drop),
            }
        }
    }

    /// Checks that these addresses are valid memory, as far as this rank can see.
    fn check<T>(&self, call: &str, places: &[(GlobalPtr<T>, usize)]) -> Result<()> {
        let worker = &self.job.worker;
        for &(place, count) in places {
            let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
            let checked = worker.check_rank(place.rank()).and_then(|()| match (place.is_null(), bytes) {
                (true, _) => Err(Cause::NullAddress),
                (false, 0) => Ok(()),
                _ => worker.fabric().check(place.address(), bytes),
            });
            checked.map_err(|cause| worker.fault(cause, || format!("{call}({bytes} bytes)")))?;
        }
        Ok(())
    }

    fn check_flag(&self, call: &str, flag: RemoteFlag) -> Result<()> {
        if flag.word().is_null() {
            return Err(self.fault("the block has no such flag".into(), call));
        }
        self.check(call, &[(flag.word(), 1)])
    }

    fn fault(&self, text: String, call: &str) -> Error {
        self.job.worker.fault(Cause::Argument(text), || call.into())
    }
}

impl Request for Sync<'_> {
    type Value = ();

    fn test(&mut self) -> bool {
        self.unfinished().is_none_or(|condition| {
            let is_met = self.transfers.job.worker.test(&condition, &String::new);
            is_met.map_or(true, |is_met| is_met && self.unfinished().is_none())
        })
    }

    fn wait(&mut self) -> Result<()> {
        self.signals().try_for_each(|(signal, end)| signal.wait_in_call(end, &|| "sync().wait".into()))
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        if let Some(condition) = self.unfinished() {
            let worker = &self.transfers.job.worker;
            self.awaited.set(worker, Awaited::only(condition), context.waker());
            return Poll::Pending;
        }
        Poll::Ready(()) // the last one has ended since the test
    }
}

future_by_request!(['t] Sync<'t>);

impl Sync<'_> {
    /// The condition of the first transfer that has not ended.
    fn unfinished(&self) -> Option<Condition> {
        let has_reached = |(signal, end): &(&Signal<'_>, u64)| signal.value().wrapping_sub(*end) as i64 >= 0;
        self.signals().find(|one| !has_reached(one)).map(|(signal, end)| signal.condition(end))
    }

    /// The signals of the last tickets, and the count that each reaches.
    fn signals(&self) -> impl Iterator<Item = (&Signal<'_>, u64)> {
        let first = self.given.saturating_sub(self.transfers.tickets.len() as u64);
        (first..self.given).map(|number| {
            let (signal, before) = self.transfers.signal_of(number);
            (signal, before + STEP)
        })
    }
}
