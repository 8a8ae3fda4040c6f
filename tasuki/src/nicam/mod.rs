//! Transfers with notification, in the manner of NICAM: copies that set a flag where they arrive, that are counted
//! there, that wait for each other by a key; all of them go on while the ranks compute.
//!
//! They are commands of a queue ([`Queue`]), so whoever waits, posts or raises a signal moves them on. What they are
//! told apart by is a *ticket*: one of [`TICKETS`] signals of the issuing rank, taken in turn, which grows by the same
//! amount for every transfer. What follows a copy, such as the flag, has that signal as its trigger; what waits for all
//! transfers ([`Transfers::sync`]) waits for the tickets that were given. A count of all that have ended would not do:
//! it does not say which.
//!
//! A copy also raises the signal of its *lane*, one for each destination up to [`LANES`] of them. Copies have no
//! trigger, so they fire in the order of their posts, and effects on one signal happen in the order in which their
//! commands fired. So when a lane has come as far as copies were announced before a moment, those have all arrived:
//! that is what [`Transfers::write_one`] waits for. They are announced before they are posted, or one of another thread
//! might count for one's own.
//!
//! Flags are numbered in the lane of the rank whose they are, and each waits until the one before it is set, or a value
//! might be overwritten by an older one: what a command stores may take its time, and the next one pass it by.
//!
//! Where the calls of NICAM are:
//!
//! | NICAM | here |
//! |---|---|
//! | `nicam_init`, `nicam_finalize` | a job begins and ends: [`main`](crate::main()), [`local`](crate::local()) |
//! | `nicam_self`, `nicam_nodes` | [`Job::rank`], [`Job::size`] |
//! | `nicam_alloc` | [`Job::alloc`], of which [`Array::on`](crate::Array::on) names every rank's part |
//! | `nicam_lock_memory` | [`Job::register`]; what `alloc` gives needs none |
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

pub use flag::{Flag, Flags, RemoteFlag};

use crate::{Command, Error, GlobalPtr, Job, Pod, Queue, Rank, Result, Signal};
use countup::Counter;
use rendezvous::Meetings;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::base::Cause;

/// Transfers of a rank that may be under way at a time; one more waits for the oldest.
pub const TICKETS: usize = 64;
/// Destinations that are told apart where transfers to one must keep an order.
pub const LANES: usize = 64;
/// By how much each transfer raises the signal of its ticket, in all.
const STEP: u64 = 4;
/// Room in the queue: a transfer has up to three commands, of two lines at most.
const QUEUE: usize = TICKETS * 6;

/// A rank's transfers with notification. Made by [`Job::transfers`]. Any thread may make any call, several at once.
///
/// No call waits for a transfer, but for one of the oldest if [`TICKETS`] are under way. Memory that a transfer reads
/// or writes must stay until it has ended. Addresses that are wrong are errors at once, and nothing is touched, where
/// this rank can see that. A transfer that fails later ends the waits for the flag that it was to set, and for those
/// made with it; [`Transfers::sync`] and every further transfer of this rank's then tell the failure.
///
/// ```
/// tasuki::local(2, |job| {
///     let (data, flags, transfers) = (job.alloc::<f64>(100)?, job.flags(1)?, job.transfers()?);
///     let (me, peer) = (job.rank(), job.rank_after(1));
///     job.barrier()?;
///     let arrived = flags.at(0);
///     transfers.copy_notify(data.on(me), data.on(peer).at(50), 50, arrived.on(peer), 7)?;
///     arrived.wait(7)?;                                 // fifty values of the peer's have arrived
///     transfers.sync().wait()?;                         // and this rank's are there
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
    meetings: Meetings,
}

/// What goes to one destination, or several.
#[derive(Debug)]
struct Lane<'job> {
    /// Counts copies.
    arrived: Signal<'job>,
    announced: AtomicU64,
    /// Counts flags.
    flagged: Signal<'job>,
    numbered: AtomicU64,
}

/// All that a rank had issued at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Sync<'t> {
    transfers: &'t Transfers<'t>,
    given: u64,
}

/// One transfer: its signal, and what that has counted before it.
struct Ticket<'t, 'job> {
    signal: &'t Signal<'job>,
    before: u64,
    me: Rank,
}

impl Job {
    /// Makes what transfers with notification need on every rank.
    ///
    /// Collective. Errors as of [`Job::alloc`] and [`Job::queue`]. Costs two allocations of 64 KiB, and of 1088 bytes a
    /// rank of the job; a queue of 512 places; up to 194 signals.
    pub fn transfers(&self) -> Result<Transfers<'_>> {
        let lane = |_| Lane::new(self);
        Ok(Transfers {
            job: self,
            queue: self.queue(QUEUE)?,
            tickets: (0..TICKETS).map(|_| self.signal()).collect::<Result<_>>()?,
            given: AtomicU64::new(0),
            lanes: (0..LANES.min(self.size())).map(lane).collect::<Result<_>>()?,
            counter: Counter::new(self)?,
            discards: self.alloc(self.size())?,
            meetings: Meetings::new(self)?,
        })
    }
}

impl<'job> Lane<'job> {
    fn new(job: &'job Job) -> Result<Lane<'job>> {
        let none = || AtomicU64::new(0);
        Ok(Lane { arrived: job.signal()?, announced: none(), flagged: job.signal()?, numbered: none() })
    }
}

impl Ticket<'_, '_> {
    fn add(&self, part: u64) -> crate::Effect {
        self.signal.on(self.me).add(part as u32)
    }

    /// Fires when its copy has arrived.
    fn has_copied(&self) -> crate::Trigger {
        self.signal.reaches(self.before + 1)
    }
}

impl<'job> Transfers<'job> {
    /// Copies `count` values from anywhere to anywhere: a request of a third rank is carried out by whoever may.
    ///
    /// Told by [`Transfers::sync`] only; where the caller waits for it anyway, [`Job::copy`] costs less. Source: NICAM,
    /// `nicam_bcopy`.
    pub fn copy<T: Pod>(&self, from: GlobalPtr<T>, to: GlobalPtr<T>, count: usize) -> Result<()> {
        self.check("copy", &[(from, count), (to, count)])?;
        let ticket = self.ticket("copy")?;
        let lane = self.announce(to.rank());
        self.post(&[Command::copy(from, to, count).then(ticket.add(STEP)).then(lane)])
    }

    /// Copies, then sets a flag at the destination, or anywhere.
    ///
    /// A flag is not set before earlier copies to that destination have arrived, nor before the flags of its rank that
    /// this thread has asked for before, by this call or [`Transfers::write_one`]: a flag that counts up never goes
    /// back. Source: NICAM, `nicam_bcopy_notify`.
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

    /// Sets a flag of some rank, after everything that this thread has copied to that rank before has arrived, and
    /// after the flags there that it has asked for before.
    ///
    /// Source: NICAM, `nicam_write1`.
    pub fn write_one(&self, flag: RemoteFlag, value: u64) -> Result<()> {
        self.check_flag("write_one", flag)?;
        let ticket = self.ticket("write_one")?;
        let lane = self.lane(flag.rank());
        let arrived = lane.arrived.reaches(lane.announced.load(Ordering::Relaxed));
        self.post(&self.set_in_order(flag, value, arrived, ticket.add(STEP)))
    }

    /// All that this rank has issued up to now: flags included, and copies that it asked for between other ranks; not
    /// copies by key, which are told by their flags.
    ///
    /// Source: NICAM, `nicam_sync`.
    pub fn sync(&self) -> Sync<'_> {
        Sync { transfers: self, given: self.given.load(Ordering::Relaxed) }
    }

    /// The next ticket, when the transfer that had its signal before has ended; for that call. Error: a transfer has
    /// failed.
    fn ticket(&self, call: &str) -> Result<Ticket<'_, 'job>> {
        self.check_sound(call)?;
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let (signal, before) = self.signal_of(number);
        signal.wait_in_call(before, &|| format!("{call}: waiting for the oldest of {TICKETS} transfers"))?;
        Ok(Ticket { signal, before, me: self.job.rank() })
    }

    /// That no transfer of this rank has failed.
    fn check_sound(&self, call: &str) -> Result<()> {
        let failure = self.queue.failure_cause();
        failure.map_or(Ok(()), |cause| Err(self.job.worker.fault(cause, || call.into())))
    }

    /// What sets a flag when `trigger` is met and those before it in its lane are set, and what ends the transfer then.
    fn set_in_order(
        &self,
        flag: RemoteFlag,
        value: u64,
        trigger: crate::Trigger,
        end: crate::Effect,
    ) -> [Command; 2] {
        let lane = self.lane(flag.rank());
        let before = lane.numbered.fetch_add(1, Ordering::Relaxed);
        let set = flag.set(value).when(trigger).when(lane.flagged.reaches(before));
        [
            set.then(lane.flagged.on(self.job.rank()).add(1)),
            Command::nothing().when(lane.flagged.reaches(before + 1)).then(end),
        ]
    }

    /// The signal of a ticket, and how far it has come when the ticket's transfer may begin.
    fn signal_of(&self, number: u64) -> (&Signal<'job>, u64) {
        let all = self.tickets.len() as u64;
        (&self.tickets[(number % all) as usize], number / all * STEP)
    }

    fn lane(&self, to: Rank) -> &Lane<'job> {
        &self.lanes[to.index() % self.lanes.len()]
    }

    /// A copy to that rank will be posted; the effect that counts it.
    fn announce(&self, to: Rank) -> crate::Effect {
        let lane = self.lane(to);
        lane.announced.fetch_add(1, Ordering::Relaxed);
        lane.arrived.on(self.job.rank()).add(1)
    }

    /// Posts the commands of a transfer. Waits while there is no room: what was announced has to come.
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

    /// That those places are memory, as far as this rank can see.
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
            return Err(self.fault("a flag that its block does not have".into(), call));
        }
        self.check(call, &[(flag.word(), 1)])
    }

    fn fault(&self, text: String, call: &str) -> Error {
        self.job.worker.fault(Cause::Argument(text), || call.into())
    }
}

impl Sync<'_> {
    /// Whether all of it is visible where it was to go. Never waits; costs a load for each ticket once it is so, and
    /// before that moves this rank's work on. Errors as of [`Sync::wait`].
    pub fn is_done(&self) -> Result<bool> {
        let has_come = |(signal, end): &(&Signal<'_>, u64)| signal.value().wrapping_sub(*end) as i64 >= 0;
        let Some((signal, end)) = self.signals().find(|one| !has_come(one)) else { return Ok(true) };
        Ok(signal.test(end, &|| "sync().is_done".into())? && self.signals().all(|one| has_come(&one)))
    }

    /// Waits for that. Errors: a transfer has failed, a rank died.
    pub fn wait(&self) -> Result<()> {
        self.signals().try_for_each(|(signal, end)| signal.wait_in_call(end, &|| "sync().wait".into()))
    }

    /// The signals of the last tickets, and how far each comes.
    fn signals(&self) -> impl Iterator<Item = (&Signal<'_>, u64)> {
        let first = self.given.saturating_sub(self.transfers.tickets.len() as u64);
        (first..self.given).map(|number| {
            let (signal, before) = self.transfers.signal_of(number);
            (signal, before + STEP)
        })
    }
}
