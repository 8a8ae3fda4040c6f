//! Finds members that wait for each other in different calls.
//!
//! The [call log](crate::failure::call_log) compares calls of equal numbers. Some things have no number among the calls,
//! since a program may begin them before or after other calls: starts of plans, fuzzy barriers, calls of the job, and
//! the call that recreates the communicator. But a member that waits for one of them waits for the others to begin it.
//! So if each of two members waits for something that the other one has not begun, both wait for ever.
//!
//! A member publishes what it waits for once it has waited long: a *lane* (calls, fuzzy barriers, calls of the job,
//! recreation, or starts of one plan), the number in that lane, a name for errors, and a ticket, which is new for each wait. Only the
//! member itself knows what it has begun. So it also publishes the ticket of a wait of another member for something
//! that it has not begun, and raises the alarm of that member, which looks again. A member that reads its own ticket
//! there, from a member that waits for something that this one has not begun, makes the communicator fail.
//!
//! *No false alarm.* Between two looks a waiting thread begins nothing. But other threads of the rank may: they may use
//! nonblocking calls, plans and fuzzy barriers in an order of their own. So only waits of the thread that has made the
//! communicator are published, and these come in one order on all members. A thread in `block_on` waits if it awaits one
//! thing and nobody else can wake it. A member whose wait has ended withdraws it. Any call may wait for all members,
//! although a broadcast, for instance, needs only its root. A program that relies on the contrary may be failed.
//!
//! *Not found.* Threads other than that one; several things awaited at a time; tests in a loop; circles of three members
//! of which no two wait for each other; members that do not read each other's words. There only time limits end
//! such waits.
//!
//! Each member writes the line with its wait alone. The cost is a line written in a wait of a millisecond, and nothing
//! in others.

use crate::current_call::CallWord;
use crate::failure::call_log::CallLog;
use crate::failure::member::WAIT;
use crate::failure::monitor::{FailureMonitor, FailureReason};
use crate::failure::signature::CallSignature;
use crate::plan::registry::Plans;
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use tasuki_core::base::Cause;
use tasuki_core::fabric::{LinePayload, SignalLine};
use tasuki_core::segment::layout::LINE_PAYLOAD;

/// Things that are begun one after the other. All members begin those of one lane in the same order.
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

/// The lanes with the names of their things, if those have none of their own.
const LANES: [(Lane, &str); 6] = [
    (Lane::Call, ""),
    (Lane::FuzzyBarrier, "fuzzy_barrier"),
    (Lane::JobBarrier, "job.barrier"),
    (Lane::JobAlloc, "job.alloc"),
    (Lane::Recreate, "recreate"),
    (Lane::Start, "plan.start"),
];
const NUMBER_BITS: u32 = 29;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl Lane {
    /// Returns what a probe is asked about in a wait for the thing of that number.
    #[inline]
    pub(crate) fn about(self, number: u64) -> u32 {
        (self as u32) << NUMBER_BITS | (number & NUMBER_MASK) as u32
    }

    /// Returns the lane, the name of its things, and the number; None: no thread waits for anything of a lane.
    fn of(about: u32) -> Option<(Lane, &'static str, u64)> {
        let (lane, name) = *LANES.get((about >> NUMBER_BITS) as usize)?;
        Some((lane, name, u64::from(about) & NUMBER_MASK))
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

/// What a member waits for, and what it has begun.
#[derive(Debug)]
pub(super) struct PublishedWaits {
    /// The thread that has made the communicator.
    maker: ThreadId,
    /// The last wait that was published, and whether it has not ended.
    last: Mutex<(PublishedWait, bool)>,
    /// How many things of each lane this member has begun, unless others count them. Calls of the job have one count.
    begun: [Arc<AtomicU64>; LANES.len()],
    plans: Plans,
}

impl PublishedWaits {
    /// The calling thread makes the communicator, with those plans.
    pub(super) fn new(plans: Plans) -> PublishedWaits {
        let last = Mutex::new((PublishedWait::zeroed(), false));
        PublishedWaits { maker: thread::current().id(), last, begun: Default::default(), plans }
    }

    fn last(&self) -> MutexGuard<'_, (PublishedWait, bool)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureMonitor {
    /// Returns the count of things that this member has begun of a lane without other counts.
    pub(crate) fn lane_count(&self, lane: Lane) -> &Arc<AtomicU64> {
        &self.waits.begun[lane as usize]
    }

    /// Returns what a probe is asked about in a wait for the call that this member has begun last.
    pub(crate) fn about_latest(&self) -> u32 {
        Lane::Call.about(self.log().map_or(0, CallLog::calls))
    }

    /// Returns how many things of a lane this member has begun, or starts of that plan; None: all, if it has freed
    /// the plan.
    fn begun(&self, lane: Lane, plan: u64) -> Option<u64> {
        match lane {
            Lane::Call => Some(self.log().map_or(0, CallLog::calls)),
            Lane::Start => {
                let plans = self.waits.plans.lock().unwrap_or_else(PoisonError::into_inner);
                plans.get(plan).map(|plan| plan.starts())
            }
            Lane::JobAlloc => self.begun(Lane::JobBarrier, plan),
            _ => Some(self.lane_count(lane).load(Ordering::Relaxed)),
        }
    }

    fn has_begun(&self, wait: &PublishedWait) -> bool {
        let begun = Lane::of(wait.lane as u32).and_then(|(lane, _, plan)| self.begun(lane, plan));
        begun.is_none_or(|begun| begun >= wait.number)
    }

    /// Returns what this thread waits for. None: for no call of the communicator.
    fn own_wait(&self, about: u32) -> Option<PublishedWait> {
        let (lane, name, low) = Lane::of(about)?;
        let begun = self.begun(lane, low)?;
        let number = match lane {
            Lane::Call if low == 0 => (self.word_of_call() != 0).then_some(begun)?,
            Lane::Start => begun,
            _ => begun - (begun.wrapping_sub(low) & NUMBER_MASK),
        };
        let named = || Some(CallSignature::of_named(CallWord::named(name)));
        let call = if lane == Lane::Call { self.log()?.call(number) } else { None };
        let lane = if lane == Lane::Start { about } else { lane.about(0) };
        let (call, missed_by) = (call.or_else(named)?.bits(), [0; 2]);
        Some(PublishedWait { lane: lane.into(), number, call, ticket: 0, missed_by })
    }

    /// Publishes what this thread waits for. Returns an error, and makes the communicator fail, if another member waits
    /// for something that this one has not begun, and has not begun what this one waits for.
    pub(crate) fn find_crossed_wait(&self, about: u32) -> Option<Cause> {
        if !self.reads_words || thread::current().id() != self.waits.maker {
            return None;
        }
        let mut own = self.own_wait(about)?;
        let mut last = self.waits.last();
        let (before, is_under_way) = *last;
        let is_same =
            is_under_way && (before.lane, before.number, before.call) == (own.lane, own.number, own.call);
        if is_same {
            own = before;
        } else {
            own.ticket = before.ticket + 1;
            self.publish_wait(&mut last, own, true);
        }
        let others = (0..self.members.len()).filter(|&member| member != self.me);
        let mut waiting = others.filter_map(|member| {
            let theirs = self.wait_of(member)?;
            let is_elsewhere = theirs.call != 0 && theirs.lane != own.lane && !self.has_begun(&theirs);
            is_elsewhere.then_some((member, theirs))
        });
        let mut first = None;
        let crossed = waiting.find(|&(member, theirs)| {
            first.get_or_insert([member as u64 + 1, theirs.ticket]);
            theirs.missed_by == [self.me as u64 + 1, own.ticket]
        });
        drop(waiting);
        let first = first.filter(|missed_by| *missed_by != own.missed_by && crossed.is_none());
        if let Some(missed_by) = first {
            self.publish_wait(&mut last, PublishedWait { missed_by, ..own }, true);
        }
        drop(last); // a report and a raise call the fabric
        let worker = self.worker.upgrade()?;
        if let Some((member, theirs)) = crossed {
            let word = match Lane::of(about)? {
                (Lane::Call, ..) => CallWord::from_bits(self.word_of_call()),
                (_, name, _) => CallWord::named(name),
            };
            let (theirs, ours) = (CallSignature::in_word(theirs.call), CallSignature::in_word(own.call));
            self.report_reason(&worker, word, FailureReason::Waits(member, theirs, ours));
            let text = format!(
                "member {member} waits in {theirs}, which this one has not begun, while this one waits in {ours}, which \
                 that one has not begun: members make the same calls in the same order"
            );
            return Some(Cause::mismatch(Some(member), text));
        }
        if let Some([member, _]) = first {
            self.raise_alarm(&worker, member as usize - 1);
        }
        None
    }

    /// Withdraws the wait of this thread, which has ended.
    pub(crate) fn withdraw_wait(&self) {
        let mut last = self.waits.last();
        if last.1 && thread::current().id() == self.waits.maker {
            let ended = PublishedWait { call: 0, ..last.0 };
            self.publish_wait(&mut last, ended, false);
        }
    }

    fn publish_wait(&self, last: &mut (PublishedWait, bool), wait: PublishedWait, is_under_way: bool) {
        *last = (wait, is_under_way);
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
