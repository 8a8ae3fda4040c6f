//! Finds members that are in a collective call of the job, such as `job.barrier()`, while others are in a call of the
//! world.
//!
//! Calls of the job have no place among the calls of the world: a program may begin nonblocking calls before or after a
//! barrier of the job. So they are not in the call log. But a member in a call of the job waits for all others, and a
//! member in a blocking call of the world that it has not made yet waits for it. Each member publishes a word: the
//! number of calls of the job that it has begun; whether it is in one; and how many calls of the world it had made
//! before. A member that has waited long in a call of the world reads the words of the others. It makes the world fail
//! if one of them is in a call of the job that this member has not begun, and has not made this member's call of the
//! world. The failure ends the wait of that member in turn.
//!
//! Each word is written by its member and read by others at any time. It orders no other memory accesses.

use crate::failure::call_log::CallLog;
use crate::failure::job_call_kind::JobCall;
use crate::failure::member::JOB;
use crate::failure::monitor::FailureMonitor;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tasuki_core::base::Cause;
use tasuki_core::engine::{WaitProbe, Worker};
use tasuki_core::fabric::{DirectCell, SignalCell};

/// The calls of the job that a member makes.
#[derive(Debug)]
pub(super) struct JobCalls {
    /// The word that others read. None: they cannot.
    word: Option<DirectCell>,
    /// The number of calls that it has begun.
    begun: AtomicU64,
    /// True while it is in one. A second one at the same time is refused, and counts for nothing.
    is_in_one: AtomicBool,
    /// The number of the blocking call of the world that it has begun last.
    world_call: AtomicU64,
    /// True if a rank has given up a call of the job, as far as this one knows.
    are_given_up: AtomicBool,
    /// The number of the probe that waits of calls of the job ask when the world has failed, or is not watched.
    probe: OnceLock<u32>,
}

/// The probe of calls of the job that asks only whether a rank has given up one.
#[derive(Debug)]
struct JobCallProbe(Weak<FailureMonitor>);

impl WaitProbe for JobCallProbe {
    fn probe_error(&self) -> Option<Cause> {
        self.0.upgrade()?.job_calls_given_up()
    }

    fn failure(&self) -> Option<Cause> {
        self.probe_error()
    }
}

/// The word of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct JobWord {
    /// The call that the member is in.
    call: Option<JobCall>,
    /// The number of calls of the job that it has begun.
    begun: u32,
    /// The number of calls of the world that it had made before.
    world_calls: u32,
}

/// A call of the job under way.
pub(crate) struct ActiveJobCall<'m> {
    monitor: &'m FailureMonitor,
    word: JobWord,
}

const CALL_AT: u32 = 62;
const BEGUN_AT: u32 = 32;
const BEGUN_MASK: u64 = (1 << (CALL_AT - BEGUN_AT)) - 1;

impl JobWord {
    fn bits(self) -> u64 {
        let call = match self.call {
            None => 0,
            Some(JobCall::Barrier) => 1,
            Some(JobCall::Alloc) => 2,
        };
        call << CALL_AT | (u64::from(self.begun) & BEGUN_MASK) << BEGUN_AT | u64::from(self.world_calls)
    }

    fn from_bits(bits: u64) -> JobWord {
        let call = [None, Some(JobCall::Barrier), Some(JobCall::Alloc), None][(bits >> CALL_AT) as usize];
        JobWord { call, begun: (bits >> BEGUN_AT & BEGUN_MASK) as u32, world_calls: bits as u32 }
    }

    /// Returns true if this member is in a call of the job that another one, which is in its call of the world of number
    /// `theirs`, has not begun, and if it has not made that call of the world.
    fn waits_for(self, other: JobWord, theirs: u32) -> bool {
        let is_ahead = |ahead: u32, of: u32, bits: u32| ((ahead.wrapping_sub(of) << bits) as i32) > 0;
        self.call.is_some()
            && is_ahead(self.begun, other.begun, 32 - (CALL_AT - BEGUN_AT))
            && is_ahead(theirs, self.world_calls, 0)
    }
}

impl JobCalls {
    pub(super) fn new(word: SignalCell) -> JobCalls {
        let word = if let SignalCell::Direct(cell) = word { Some(cell) } else { None };
        let (begun, is_in_one, world_call, are_given_up) = Default::default();
        JobCalls { word, begun, is_in_one, world_call, are_given_up, probe: OnceLock::new() }
    }

    pub(super) fn give_up(&self) {
        self.are_given_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn are_given_up(&self) -> bool {
        self.are_given_up.load(Ordering::Relaxed)
    }

    pub(super) fn probe(&self) -> Option<u32> {
        self.probe.get().copied()
    }

    fn publish(&self, word: JobWord) {
        if let Some(cell) = self.word {
            cell.counter().store(word.bits(), Ordering::Relaxed);
        }
    }

    fn own(&self) -> JobWord {
        JobWord::from_bits(self.word.map_or(0, |cell| cell.counter().load(Ordering::Relaxed)))
    }
}

impl FailureMonitor {
    /// Begins a call of the job. None: the communicator has failed, members cannot read each other's words, or another
    /// thread is in a call of the job, so that this one will be refused.
    pub(crate) fn begin_job_call(&self, what: JobCall) -> Option<ActiveJobCall<'_>> {
        if !self.reads_words || self.check().is_err() {
            return None;
        }
        if self.job_calls.is_in_one.swap(true, Ordering::Relaxed) {
            return None;
        }
        let begun = self.job_calls.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let world_calls = self.opened_log().map_or(0, CallLog::calls) as u32;
        let word = JobWord { call: Some(what), begun: begun as u32, world_calls };
        self.job_calls.publish(word);
        Some(ActiveJobCall { monitor: self, word })
    }

    /// Returns the number of the probe by which waits of calls of the job learn that a rank has given up one.
    pub(crate) fn job_call_probe(self: &Arc<Self>, worker: &Worker) -> u32 {
        let add = || worker.wait_probes().add(Arc::new(JobCallProbe(Arc::downgrade(self))));
        *self.job_calls.probe.get_or_init(add)
    }

    /// Notes that this member has begun a blocking call of the communicator.
    #[inline]
    pub(crate) fn note_blocking(&self) {
        let number = self.opened_log().map_or(0, CallLog::calls);
        self.job_calls.world_call.store(number, Ordering::Relaxed);
    }

    /// Returns the number of the blocking call that this member has begun last.
    pub(super) fn blocking_call(&self) -> u64 {
        self.job_calls.world_call.load(Ordering::Relaxed)
    }

    /// Returns an error if a member is in a call of the job instead of this member's blocking call of the world. Waits
    /// for calls that do not block, and for plans, may be for something that was begun before that call of the job.
    pub(super) fn find_job_call(&self, log: &CallLog) -> Option<Cause> {
        let own = self.job_calls.own();
        if own.call.is_some() || !self.is_in_call() {
            return None;
        }
        let number = self.blocking_call() as u32;
        self.others().find_map(|(member, theirs)| {
            let call = theirs.call.filter(|_| theirs.waits_for(own, number))?;
            let (theirs, ours) = (call.name(), log.latest());
            let text = format!(
                "member {member} is in {theirs}, while this one is in {ours}: members make the same calls in the same \
                 order"
            );
            Some(Cause::mismatch(Some(member), text))
        })
    }

    /// Returns the words of the other members.
    fn others(&self) -> impl Iterator<Item = (usize, JobWord)> {
        let others = (0..self.members.len()).filter(|&member| member != self.me);
        others.filter_map(|member| {
            let cell = self.cell(member, JOB)?;
            Some((member, JobWord::from_bits(cell.counter().load(Ordering::Relaxed))))
        })
    }
}

impl ActiveJobCall<'_> {
    /// Returns the error that another member is in a call of the world instead of this call of the job, if one is.
    pub(crate) fn find_mismatch(&self) -> Option<Cause> {
        let log = self.monitor.log()?;
        // Read before the words, which a member writes before it makes further calls.
        let made: Vec<u64> = (0..self.monitor.members.len()).map(|member| log.calls_of(member)).collect();
        self.monitor.others().find_map(|(member, theirs)| {
            let made = made[member];
            self.word.waits_for(theirs, made as u32).then(|| {
                let ours = self.word.call.map_or("", JobCall::name);
                let text = format!(
                    "member {member} is in another call, of the world, while this one is in {ours}: members make the \
                     same calls in the same order"
                );
                Cause::mismatch(Some(member), text)
            })
        })
    }
}

impl Drop for ActiveJobCall<'_> {
    fn drop(&mut self) {
        self.monitor.job_calls.publish(JobWord { call: None, ..self.word });
        self.monitor.job_calls.is_in_one.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_calls_and_numbers() {
        for call in [None, Some(JobCall::Barrier), Some(JobCall::Alloc)] {
            let word = JobWord { call, begun: 12_345, world_calls: u32::MAX };
            assert_eq!(JobWord::from_bits(word.bits()), word);
        }
    }

    #[test]
    fn a_member_waits_for_one_that_is_elsewhere() {
        let word = |call, begun, world_calls| JobWord { call, begun, world_calls };
        let (inside, outside) = (word(Some(JobCall::Barrier), 3, 7), word(None, 2, 5));
        assert!(inside.waits_for(outside, 8), "the other one is in call 8 of the world");
        assert!(!inside.waits_for(outside, 7), "both have made call 7");
        assert!(!inside.waits_for(word(None, 3, 5), 8), "the other one has been in this call of the job");
        assert!(!word(None, 3, 7).waits_for(outside, 8), "it has ended");
    }
}
