//! Finds members that wait for each other in different calls.
//!
//! The [call log](crate::failure::call_log) compares calls of equal numbers. Some things have no number among the
//! calls, since a program may begin them before or after other calls: starts of plans, fuzzy barriers, calls of the
//! job, and the call that recreates the communicator. But a member that waits for one of them waits for the others to
//! begin it. So if each of two members waits for something that the other one has not begun, both wait for ever.
//!
//! A member publishes what it waits for once it has waited long: a *lane* (calls, fuzzy barriers, calls of the job,
//! recreation, or starts of one plan), the number in that lane, a name for errors, and a ticket, which is new for
//! each wait. Only the member itself knows what it has begun. So it also publishes the ticket of a wait of another
//! member for something that it has not begun, and raises the alarm of that member, which looks again. A member that
//! reads its own ticket there, from a member that waits for something that this one has not begun, makes the
//! communicator fail.
//!
//! *No false alarm.* Between two looks a waiting thread begins nothing. But other threads of the rank may: they may use
//! nonblocking calls, plans and fuzzy barriers in an order of their own. So only waits of the thread that has made the
//! communicator are published, and these come in one order on all members. A thread in `block_on` waits if it awaits
//! one thing and nobody else can wake it. A member whose wait has ended withdraws it. Any call may wait for all
//! members, although a broadcast, for instance, needs only its root. A program that relies on the contrary may be
//! failed.
//!
//! *Not found.* Threads other than that one; several things awaited at a time; tests in a loop; circles of three
//! members of which no two wait for each other; members that do not read each other's words, or are more than 32. There
//! only time limits end such waits.
//!
//! Each member writes the line with its wait alone. The cost is a line written in a wait of a millisecond, and nothing
//! in others.

use crate::call_name::CallName;
use crate::current_call::CallWord;
use crate::failure::call_log::CallLog;
use crate::failure::job_call::JobCallSignature;
use crate::failure::member::WAIT;
use crate::failure::monitor::{FailureMonitor, FailureReason};
use crate::failure::signature::CallSignature;
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use tasuki_core::base::Cause;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::engine::scoped_wait_probe_about;
use tasuki_core::fabric::{LinePayload, SignalLine};
use tasuki_core::segment::layout::LINE_PAYLOAD;
use tasuki_schedule::selection::MEMBERS_MAX;

/// Things that are begun one after the other. All members begin those of one lane in the same order. Its place is that
/// of its name in [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// Calls in the call log, blocking or not. Number 0 is the blocking call under way.
    Call,
    FuzzyBarrier,
    /// Calls of the job: their lanes have numbers in common.
    JobBarrier,
    JobAlloc,
    Recreate,
    /// Starts of a plan, which the number stands for.
    Start,
    /// Calls of the job that are not compared with others.
    JobAlone,
}

/// The names of what is in lanes; calls have names of their own.
const NAMES: [&str; 6] = ["", "fuzzy_barrier", "job.barrier", "job.alloc", "recreate", "plan.start"];
const NUMBER_BITS: u32 = 29;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl Lane {
    /// Returns the name of what is in the lane, other than calls.
    pub(crate) fn name(self) -> CallName {
        CallName::named(NAMES[self as usize])
    }

    /// Returns what a probe is asked about in a wait for the thing of that number.
    #[inline]
    pub(crate) fn about(self, number: u64) -> u32 {
        (self as u32) << NUMBER_BITS | (number & NUMBER_MASK) as u32
    }
}

/// What a member publishes about its wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct PublishedWait {
    /// The lane, and the number of the plan.
    lane: u64,
    number: u64,
    /// The [`CallSignature`] of what it waits for; 0: it does not wait.
    call: u64,
    ticket: u64,
    /// The member, plus one, that waits for something which this one has not begun, and the ticket of that wait.
    missed_by: [u64; 2],
}

const _: () = assert!(size_of::<PublishedWait>() <= LINE_PAYLOAD);

impl PublishedWait {
    /// Returns the number of the plan of whose start it is.
    fn plan(&self) -> Option<u64> {
        (self.lane >> NUMBER_BITS == Lane::Start as u64).then_some(self.lane & NUMBER_MASK)
    }
}

impl fmt::Display for PublishedWait {
    /// The call; of a start also which plan of the communicator it is, in the order in which they were made.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.plan() {
            Some(plan) => write!(f, "start {} of plan {}", self.number, plan + 1),
            None => CallSignature::in_word(self.call).fmt(f),
        }
    }
}

/// What a member waits for, and what it has begun.
#[derive(Debug)]
pub(super) struct PublishedWaits {
    /// The thread that has made the communicator.
    maker: ThreadId,
    /// The wait that was published last.
    last: Mutex<PublishedWait>,
    /// How many things of each lane this member has begun, unless others count them. Calls of the job have one count.
    begun: [Arc<AtomicU64>; NAMES.len()],
    plans: Arc<dyn StartedPlans>,
}

/// The plans of a communicator.
pub(crate) trait StartedPlans: fmt::Debug + Send + Sync {
    /// Returns how many starts of a plan this member has made. None: it has freed the plan.
    fn starts(&self, plan: u64) -> Option<u64>;
}

impl PublishedWaits {
    /// The calling thread makes the communicator, with those plans.
    pub(super) fn new(plans: Arc<dyn StartedPlans>) -> PublishedWaits {
        let last = Mutex::new(PublishedWait::zeroed());
        PublishedWaits { maker: thread::current().id(), last, begun: Default::default(), plans }
    }

    fn last(&self) -> MutexGuard<'_, PublishedWait> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call of the job under way, whose waits ask the probe of the world.
struct ActiveJobCall<'m, P>(&'m FailureMonitor, P);

impl FailureMonitor {
    /// Begins a call of the job. None: the communicator has failed, members cannot read each other's words, or another
    /// thread is in a call of the job, so that this one will be refused.
    pub(crate) fn begin_job_call(&self, what: JobCallSignature) -> Option<impl Drop> {
        if !self.reads_words || self.is_failed() || self.is_in_job_call.swap(true, Ordering::Relaxed) {
            return None;
        }
        let number = self.lane_count(Lane::JobBarrier).fetch_add(1, Ordering::Relaxed) + 1;
        Some(ActiveJobCall(self, scoped_wait_probe_about(self.probe(), what.lane().about(number))))
    }

    /// Returns the count of things that this member has begun of a lane without other counts.
    pub(crate) fn lane_count(&self, lane: Lane) -> &Arc<AtomicU64> {
        &self.waits.begun[lane as usize]
    }

    /// Returns what a probe is asked about in a wait for the call that this member has begun last.
    pub(crate) fn about_latest(&self) -> u32 {
        Lane::Call.about(self.log().map_or(0, CallLog::calls))
    }

    /// Returns how many things of a lane this member has begun. None: all of that plan, which it has freed.
    fn begun(&self, about: u64) -> Option<u64> {
        const CALL: u64 = Lane::Call as u64;
        const JOB_ALLOC: u64 = Lane::JobAlloc as u64;
        const START: u64 = Lane::Start as u64;
        match about >> NUMBER_BITS {
            CALL => Some(self.log().map_or(0, CallLog::calls)),
            JOB_ALLOC => self.begun(Lane::JobBarrier.about(0).into()),
            START => self.waits.plans.starts(about & NUMBER_MASK),
            lane => self.waits.begun.get(lane as usize).map(|count| count.load(Ordering::Relaxed)),
        }
    }

    /// Returns what this thread waits for. None: for no call of the communicator.
    fn own_wait(&self, about: u32) -> Option<PublishedWait> {
        let (about, place) = (u64::from(about), (about >> NUMBER_BITS) as usize);
        let (low, begun) = (about & NUMBER_MASK, self.begun(about)?);
        let is_start = place == Lane::Start as usize;
        let number = match place == Lane::Call as usize && low == 0 {
            true => (self.word_of_call() != 0).then_some(begun)?,
            false if is_start => begun,
            false => begun - (begun.wrapping_sub(low) & NUMBER_MASK),
        };
        let call = if place == Lane::Call as usize { self.log()?.call(number) } else { None };
        let named = || CallSignature::of_name(CallName::named(NAMES[place]));
        let lane = if is_start { about } else { about - low };
        Some(PublishedWait {
            lane,
            number,
            call: call.unwrap_or_else(named).bits(),
            ticket: 0,
            missed_by: [0; 2],
        })
    }

    /// Publishes what this thread waits for. Returns an error, and makes the communicator fail, if another member waits
    /// for something that this one has not begun, and has not begun what this one waits for.
    pub(super) fn find_crossed_wait(&self, about: u32) -> Option<Cause> {
        let is_among_few = self.members.len() <= MEMBERS_MAX; // to read the lines of all
        if !self.reads_words || !is_among_few || thread::current().id() != self.waits.maker {
            return None;
        }
        let (own, worker) = (self.own_wait(about)?, self.worker.upgrade()?);
        let mut last = self.waits.last();
        if (last.lane, last.number, last.call) != (own.lane, own.number, own.call) {
            let ticket = last.ticket + 1;
            self.publish_wait(&mut last, PublishedWait { ticket, ..own });
        }
        let mut missed_by = None;
        for member in (0..self.members.len()).filter(|&member| member != self.me) {
            let waits_for_us =
                |theirs: &PublishedWait| self.begun(theirs.lane).is_some_and(|begun| begun < theirs.number);
            let is_elsewhere = |theirs: &PublishedWait| theirs.call != 0 && theirs.lane != own.lane;
            let theirs = self.wait_of(member).filter(|theirs| is_elsewhere(theirs) && waits_for_us(theirs));
            let Some(theirs) = theirs else { continue };
            if theirs.missed_by == [self.me as u64 + 1, last.ticket] {
                drop(last); // a report calls the fabric
                let [called, ours] = [theirs.call, own.call].map(CallSignature::in_word);
                let reason = FailureReason::Waits(member, called, ours);
                self.report_reason(&worker, CallWord::from_bits(self.word_of_call()), reason);
                return Some(Cause::mismatch(Some(member), self.crossed(member, &theirs, &own)));
            }
            missed_by.get_or_insert((member, [member as u64 + 1, theirs.ticket]));
        }
        if let Some((member, missed_by)) = missed_by.filter(|(_, missed_by)| *missed_by != last.missed_by) {
            let wait = PublishedWait { missed_by, ..*last };
            self.publish_wait(&mut last, wait);
            drop(last);
            self.raise_alarm(&worker, member);
        }
        None
    }

    /// Says that this member waits for one thing and that member for another one.
    fn crossed(&self, member: usize, theirs: &PublishedWait, own: &PublishedWait) -> String {
        let mut text = format!("{own} here and {theirs} of member {member} wait for each other");
        let starts = [theirs, own].map(|wait| wait.plan().is_some());
        if let Some(made) = self.begun(theirs.lane).filter(|_| starts[0]) {
            let s = if made == 1 { "" } else { "s" };
            text += &format!(", for this member has made {made} start{s} of that plan");
        }
        text + match starts {
            [false, false] => ": members make the same calls in the same order",
            _ => ": make a start that other members wait for before you wait for something else",
        }
    }

    /// Withdraws the wait of this thread, which has ended.
    pub(super) fn withdraw_wait(&self) {
        let mut last = self.waits.last();
        if last.call != 0 && thread::current().id() == self.waits.maker {
            let ended = PublishedWait { call: 0, ..*last };
            self.publish_wait(&mut last, ended);
        }
    }

    fn publish_wait(&self, last: &mut PublishedWait, wait: PublishedWait) {
        *last = wait;
        if let Ok(SignalLine::Direct(line)) = self.fabric.line(self.members[self.me].signal(WAIT)) {
            let count = line.cell().counter().load(Ordering::Relaxed) + 1;
            line.write(LinePayload::of(&wait), count);
        }
    }

    fn wait_of(&self, member: usize) -> Option<PublishedWait> {
        let cell = self.cell(member, WAIT)?;
        let count = cell.counter().load(Ordering::Acquire); // SYNC signal-raise
        cell.payload(count, size_of::<PublishedWait>() / 8).filter(|_| count != 0).map(|payload| payload.to())
    }
}

impl<P> Drop for ActiveJobCall<'_, P> {
    fn drop(&mut self) {
        self.0.is_in_job_call.store(false, Ordering::Relaxed);
    }
}
