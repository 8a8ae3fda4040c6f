//! Finds members in different calls if members cannot read each other's words: a member that waits long sends a notice
//! to the next member.
//!
//! The headers of messages find members in different calls only if one receives from the other: an allgather among
//! allreduces can wait for members that wait for it. The collectives of the network do not even find a member that has
//! left. So each member counts its calls, as for the [call_log](crate::failure::call_log). When it has waited long, it
//! writes its present call and the calls before it into a line of the next member. A member that leaves after calls of
//! the network, or has failed in one, writes that. A member whose wait reads of a different call than its own, or of a
//! member that will never come to its call, ends with an error.
//!
//! The member whose wait has ended passes the notice on to the next member. So does each waiting member that reads the
//! notice of a member that has left or failed. So the notice reaches all members that wait in calls of the
//! communicator, one after the other. A member that waits for something else passes it on when it waits in its next
//! call.
//!
//! Each member has two lines: one for the notices of the member before it, one for notices that the member before
//! passes on. They are the signals that hold the words of the call log where members read those. The cost is one line
//! written in a long wait, and nothing in other waits.

use crate::failure::member::{CALLS, MonitoredMember};
use crate::failure::notice_line::NoticeLine;
use crate::failure::signature::{CallSignature, mismatch};
use bytemuck::{Pod, Zeroable};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Fabric, SignalCell};
use tasuki_core::segment::layout::LINE_PAYLOAD;
use tasuki_message::FinalizeHook;

/// Number of lines of each member: the first ones of its signals.
const LINES: u32 = 2;
/// Number of calls in a notice.
const REPORTED: usize = 4;
/// Number of its own calls that a member keeps: one that sends ahead may be some calls further than one that waits.
const KEPT: usize = 32;
/// Bit: the member has left and takes part in no later call.
const LEFT: u64 = 1 << 63;
/// Bit: the member has failed in its last call and takes part in no later collective of the network.
const FAILED: u64 = 1 << 62;
/// The other bits: the number of calls that the member has made.
const COUNT: u64 = FAILED - 1;
/// `from` holds the number of barriers above the member's number, in multiples of this.
const BARRIER: u64 = 1 << 24;
/// The bits of `from` that hold the member's number.
const MEMBER: u64 = BARRIER - 1;

/// What a member reports about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct CallNotice {
    /// The number of calls that it has made, with [`LEFT`] and [`FAILED`].
    status: u64,
    /// Its last calls, each at its number modulo [`REPORTED`].
    calls: [u64; REPORTED],
    /// The member's number, plus [`BARRIER`] times the number of network barriers that it has entered.
    from: u64,
}

const _: () = assert!(size_of::<CallNotice>() <= LINE_PAYLOAD && LINES <= CALLS);

/// The notices that one member sends and receives.
#[derive(Debug)]
pub(crate) struct CallNotices {
    fabric: Arc<dyn Fabric>,
    ranks: Box<[Rank]>,
    member: u64,
    own: NoticeLine,
    pass_on_line: NoticeLine,
    incoming: [SignalCell; LINES as usize],
    status: AtomicU64,
    calls: [AtomicU64; KEPT],
    /// Number of barriers of the network that it has entered.
    barriers: AtomicU64,
    /// The status that was last written to the next member.
    published: AtomicU64,
    /// True while a thread writes lines: each has one writer at a time.
    is_publishing: AtomicBool,
    /// The notice to pass on, when there is room for it.
    to_pass_on: Mutex<Option<CallNotice>>,
    /// The notice that was passed on last.
    last: Mutex<Option<CallNotice>>,
}

/// How far a waiting member has come.
#[derive(Clone, Copy, Debug)]
struct CallPosition {
    /// The number of its present call; that call and the calls before it, each at its number modulo [`KEPT`].
    number: u64,
    calls: [u64; KEPT],
    barriers: u64,
}

/// Returns the call of a number among the last ones.
fn call_at(calls: &[u64], number: u64) -> u64 {
    calls[(number % calls.len() as u64) as usize]
}

impl CallNotice {
    fn member(&self) -> usize {
        (self.from & MEMBER) as usize
    }

    /// Returns the reason why the present call at the position `ours` cannot complete, if this notice shows one.
    fn probe_error(&self, ours: &CallPosition, rank: impl Fn(usize) -> Rank) -> Option<Cause> {
        let (made, number) = (self.status & COUNT, ours.number);
        let oldest_of = |latest: u64, kept: usize| (latest + 1).saturating_sub(kept as u64).max(1);
        let mut both = oldest_of(made, REPORTED).max(oldest_of(number, KEPT))..=made.min(number);
        if let Some(at) = both.find(|&at| call_at(&self.calls, at) != call_at(&ours.calls, at)) {
            let call = |calls: &[u64]| CallSignature::in_word(call_at(calls, at));
            return Some(mismatch(self.member(), call(&self.calls), call(&ours.calls)));
        }
        if self.status & FAILED != 0 && number >= made {
            let (member, call) = (self.member(), CallSignature::in_word(call_at(&self.calls, made)));
            let text = format!("member {member} has failed in {call}, and takes no more part");
            return Some(Cause::mismatch(Some(member), text));
        }
        // A member that has completed a call has entered all barriers until then, unless it made different calls long
        // ago.
        let has_left = self.status & LEFT != 0;
        let is_through = made > number || has_left && made == number;
        let is_out_of_step = is_through && self.from / BARRIER < ours.barriers;
        if has_left && (number > made || is_out_of_step) {
            return Some(Cause::PeerLeft { peer: rank(self.member()) });
        }
        let text =
            format!("member {} is out of step: it made other calls, or in another order", self.member());
        is_out_of_step.then(|| Cause::mismatch(Some(self.member()), text))
    }
}

impl CallNotices {
    /// Makes the notices of member `me`. The lines of all members must never have been written.
    pub(crate) fn new(
        fabric: &Arc<dyn Fabric>,
        me: usize,
        members: &[MonitoredMember],
    ) -> Result<CallNotices, Cause> {
        let next = &members[(me + 1) % members.len()];
        let [own, pass_on_line] = [0, 1].map(|line| NoticeLine::new(next.signal(line), 0));
        let incoming = [0, 1].map(|line| fabric.own_signal(members[me].first + line));
        let [own_notices, passed_on] = incoming;
        Ok(CallNotices {
            ranks: members.iter().map(|member| member.rank).collect(),
            member: me as u64,
            own,
            pass_on_line,
            incoming: [own_notices?, passed_on?],
            status: AtomicU64::new(0),
            calls: Default::default(),
            barriers: AtomicU64::new(0),
            published: AtomicU64::new(0),
            is_publishing: AtomicBool::new(false),
            to_pass_on: Mutex::default(),
            last: Mutex::default(),
            fabric: fabric.clone(),
        })
    }

    /// Records the next call, which this thread is entering.
    #[inline]
    pub(crate) fn note(&self, call: CallSignature) {
        let status = self.status.load(Ordering::Relaxed);
        if status & FAILED == 0 {
            self.calls[(status + 1) as usize % KEPT].store(call.bits(), Ordering::Relaxed);
            self.status.store(status + 1, Ordering::Relaxed);
        }
    }

    /// Returns the number of barriers of the network that this member has entered.
    pub(crate) fn barriers(&self) -> u64 {
        self.barriers.load(Ordering::Relaxed)
    }

    /// Counts the next barrier, which this member enters.
    pub(crate) fn count_barrier(&self) {
        self.barriers.fetch_add(1, Ordering::Relaxed);
    }

    fn position(&self) -> CallPosition {
        let calls = self.calls.each_ref().map(|call| call.load(Ordering::Relaxed));
        let number = self.status.load(Ordering::Relaxed) & COUNT;
        CallPosition { number, calls, barriers: self.barriers() }
    }

    /// Records and publishes that this member has failed in its present call.
    pub(crate) fn fail(&self) {
        self.status.fetch_or(FAILED, Ordering::Relaxed);
        self.publish();
    }

    /// Writes what is new to the next member. Returns false if there was no room, or another thread is writing.
    fn publish(&self) -> bool {
        // Not a lock, which a thread would hold while the fabric runs.
        if self.is_publishing.swap(true, Ordering::Acquire) {
            return false;
        }
        let is_written = self.write_lines();
        self.is_publishing.store(false, Ordering::Release);
        is_written
    }

    fn write_lines(&self) -> bool {
        let status = self.status.load(Ordering::Relaxed);
        if self.published.load(Ordering::Relaxed) != status {
            let CallPosition { calls: kept, barriers, .. } = self.position();
            let mut calls = [0; REPORTED];
            let made = status & COUNT;
            for number in (made + 1).saturating_sub(REPORTED as u64)..=made {
                calls[number as usize % REPORTED] = call_at(&kept, number);
            }
            let from = self.member + barriers * BARRIER;
            if !self.own.write(&*self.fabric, &CallNotice { status, calls, from }) {
                return false;
            }
            self.published.store(status, Ordering::Relaxed);
        }
        let to_pass_on = *self.lock_to_pass_on(); // the lock is released before the write, which calls the fabric
        let Some(to_pass_on) = to_pass_on else { return true };
        let is_written = self.pass_on_line.write(&*self.fabric, &to_pass_on);
        if is_written {
            *self.lock_to_pass_on() = None;
        }
        is_written
    }

    /// Passes a notice on to the next member, once; not if it is about this member or the next one.
    fn pass_on(&self, notice: CallNotice) {
        let next = (self.member as usize + 1) % self.ranks.len();
        let is_news =
            self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(notice) != Some(notice);
        if is_news && ![self.member as usize, next].contains(&notice.member()) {
            *self.lock_to_pass_on() = Some(notice);
            self.publish();
        }
    }

    fn lock_to_pass_on(&self) -> std::sync::MutexGuard<'_, Option<CallNotice>> {
        self.to_pass_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the notice in a line, if one was ever written there.
    fn read(&self, line: usize) -> Option<CallNotice> {
        let count = self.incoming[line].read(&*self.fabric);
        if count == 0 { None } else { self.incoming[line].read_payload(&*self.fabric, count) }
    }

    /// Writes what is new to the next member, and returns an error if a member is in another call than this one, or
    /// will never come to it.
    pub(crate) fn find_mismatch(&self) -> Option<Cause> {
        self.publish();
        let ours = self.position();
        let rank = |member: usize| self.ranks.get(member).copied().unwrap_or_default();
        let incoming = [self.read(0), self.read(1)];
        let found =
            incoming.iter().flatten().find_map(|notice| Some((*notice, notice.probe_error(&ours, rank)?)));
        let is_final = |notice: &&CallNotice| notice.status & (LEFT | FAILED) != 0;
        let notice = found.as_ref().map(|(notice, _)| notice);
        if let Some(notice) = notice.or_else(|| incoming.iter().flatten().find(is_final)) {
            self.pass_on(*notice);
        }
        found.map(|(_, cause)| cause)
    }
}

/// Announces that a member leaves.
#[derive(Debug)]
pub(crate) struct LeaveNotice {
    pub(crate) call_notices: Arc<CallNotices>,
    /// True once all members have dropped the communicator.
    pub(crate) is_freed: Arc<AtomicBool>,
}

impl FinalizeHook for LeaveNotice {
    /// Other members may wait for this one until they read that it has left, unless all have dropped the communicator.
    fn is_finalized(&self, _worker: &Worker) -> bool {
        self.is_freed.load(Ordering::Relaxed)
    }

    fn announce_finalize(&self, worker: &Worker) -> Result<bool> {
        if self.is_freed.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.call_notices.announce_leave(worker)
    }

    fn finalize(&self, _worker: &Worker) -> Result<()> {
        Ok(())
    }
}

impl CallNotices {
    fn announce_leave(&self, worker: &Worker) -> Result<bool> {
        self.status.fetch_or(LEFT, Ordering::Relaxed);
        while !self.publish() {
            worker.relax("leave()")?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_kind::CallKind;
    use tasuki_schedule::shape::CollectiveKind;

    fn call(collective: CollectiveKind, bytes: usize) -> u64 {
        CallSignature::of(&CallKind::of::<u8>(collective, Rank(0), bytes)).bits()
    }

    #[test]
    fn a_notice_shows_who_cannot_come_to_a_call() {
        let (barrier, bcast) = (call(CollectiveKind::Barrier, 0), call(CollectiveKind::Bcast, 8));
        let longer = call(CollectiveKind::Bcast, 9);
        // Calls 4, 5, 2 and 3 of member 7, which entered 5 barriers.
        let calls = [barrier, bcast, barrier, bcast];
        let of = |status| CallNotice { status, calls, from: 7 + 5 * BARRIER };
        // A member whose calls are equal, except for the present one.
        let ask = |status, number, call, barriers| {
            let mut kept = [0; KEPT];
            (2..=5).for_each(|at| kept[at] = call_at(&calls, at as u64));
            kept[number as usize] = call;
            let calls = kept;
            of(status).probe_error(&CallPosition { number, calls, barriers }, |member| Rank(member + 10))
        };
        assert_eq!(ask(5, 5, bcast, 6), None);
        assert_eq!(ask(5, 2, barrier, 5), None, "it is ahead");
        assert_eq!(ask(5, 1, longer, 5), None, "that is not told any more");
        assert_eq!(ask(5, 6, longer, 6), None, "it is late");
        let disagree = Some(Cause::bytes_differ(7, 8, 9));
        assert_eq!((ask(5, 5, longer, 6), ask(5, 3, longer, 5)), (disagree.clone(), disagree));
        assert!(matches!(ask(5, 5, barrier, 6), Some(Cause::Mismatch { member: Some(7), .. })));
        let left = Some(Cause::PeerLeft { peer: Rank(17) });
        assert_eq!((ask(5 | LEFT, 5, bcast, 5), ask(5 | LEFT, 6, bcast, 5)), (None, left.clone()));
        assert_eq!(
            (ask(5 | LEFT, 5, bcast, 6), ask(5, 4, barrier, 6).is_some()),
            (left, true),
            "out of step"
        );
        assert_eq!(ask(5 | FAILED, 4, barrier, 5), None);
        assert!([5, 6].iter().all(|&at| ask(5 | FAILED | LEFT, at, bcast, 5).is_some()));
    }
}
