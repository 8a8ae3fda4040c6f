//! Records the last calls of each member, so that a member that waits long can check that all are in the same call.
//!
//! Messages find members that disagree about a call, unless all wait for each other. Compiled steps do not: a member
//! that came with another length, or to another call, would wait for ever, and so would its partners. So each member
//! records its calls in words of its own memory that others can read: the number of the call on the communicator, and
//! its kind. A member that has waited long compares the words. On the communicator of all ranks, whose words have
//! equal numbers on all ranks, this works from the first call on. On other communicators it works from the first
//! compiled schedule on, because the members then exchange the numbers of their words.
//!
//! If two members both take themselves for the root, neither waits: each sends what nobody receives. So with two
//! members, a member also compares now and then without having waited.
//!
//! Each word is written by its member and read by others at any time, independently of other words. The words order
//! no other memory accesses.

use crate::cached::schedule_cache::CallKind;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{WaitProbe, Worker, set_wait_probe};
use tasuki_core::fabric::{DirectCell, SignalCell, SignalLine};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// Number of calls of a member that others can read.
pub(crate) const KEPT: u32 = 4;

/// Number of its own calls that a member keeps. A member that has found a mismatch makes no more calls. Members that
/// waited for nothing in that call are some calls further when they have to wait for it, but at most by the messages
/// that can be sent ahead.
const OWN: usize = 32;

/// Two members that are this many calls apart do not wait for each other at all: fewer can be sent ahead.
const APART_MIN: u16 = 16;

/// The words of all members, as one member reads them.
#[derive(Debug)]
pub(crate) struct CallLog {
    me: usize,
    /// The words of each member.
    words: Box<[[DirectCell; KEPT as usize]]>,
    /// Number of calls so far.
    calls: AtomicU64,
    /// This member's last calls, in the encoding of the shared words.
    own: [AtomicU64; OWN],
}

/// The entry of a call under way. Dropping it ends the use of the wait probe.
pub(crate) struct LoggedCall;

impl Drop for LoggedCall {
    fn drop(&mut self) {
        set_wait_probe(0);
    }
}

impl CallLog {
    /// Makes the call log of members whose words are the signals from `firsts` on. None: this member does not reach
    /// them.
    pub(crate) fn new(worker: &Worker, me: usize, firsts: &[(Rank, u32)]) -> Result<Option<CallLog>, Cause> {
        let mut words = Vec::with_capacity(firsts.len());
        for &(rank, first) in firsts {
            let mut cells = Vec::with_capacity(KEPT as usize);
            for number in first..first + KEPT {
                let cell = if rank == worker.rank() {
                    let SignalCell::Direct(cell) = worker.fabric().own_signal(number)? else {
                        return Ok(None);
                    };
                    cell.counter().store(0, Ordering::Relaxed);
                    cell
                } else {
                    let at = GlobalAddress::new(rank, signal_offset(number));
                    let SignalLine::Direct(line) = worker.fabric().line(at)? else { return Ok(None) };
                    line.cell()
                };
                cells.push(cell);
            }
            words.push(cells.try_into().map_err(|_| Cause::Bug("a call log has so many words".into()))?);
        }
        let own = std::array::from_fn(|_| AtomicU64::new(0));
        Ok(Some(CallLog { me, words: words.into(), calls: AtomicU64::new(0), own }))
    }

    /// Records the next call, which this thread is entering.
    #[inline]
    fn note(&self, call: u64) {
        let number = self.calls.load(Ordering::Relaxed) + 1;
        self.calls.store(number, Ordering::Relaxed);
        self.put(number, call);
    }

    #[inline]
    fn put(&self, number: u64, call: u64) {
        let word = number << 48 | call;
        self.own[number as usize % OWN].store(word, Ordering::Relaxed);
        let own = &self.words[self.me][(number % u64::from(KEPT)) as usize];
        own.counter().store(word, Ordering::Relaxed);
    }

    fn words_of(&self, member: usize) -> [u64; KEPT as usize] {
        self.words[member].each_ref().map(|word| word.counter().load(Ordering::Relaxed))
    }

    /// Returns an error if a recorded call of `member` differs from this member's call of that number.
    fn find_mismatch(&self, member: usize) -> Option<Cause> {
        let own = |number: usize| self.own[number % OWN].load(Ordering::Relaxed);
        let (theirs, ours) = find_mismatch(&self.words_of(member), own)?;
        Some(mismatch(member, theirs, ours))
    }

    /// Returns an error if the calls of the two members differ, or are too far apart.
    fn mismatch_of_two(&self) -> Option<Cause> {
        let (number, other) = (self.calls.load(Ordering::Relaxed), 1 - self.me);
        let ahead = |word: &u64| ((word >> 48) as u16).wrapping_sub(number as u16) as i16;
        let latest = self.words_of(other).into_iter().max_by_key(ahead)?;
        if ahead(&latest).unsigned_abs() >= APART_MIN {
            return Some(mismatch(other, latest, self.own[number as usize % OWN].load(Ordering::Relaxed)));
        }
        self.find_mismatch(other)
    }
}

impl WaitProbe for CallLog {
    fn probe_error(&self) -> Option<Cause> {
        (0..self.words.len()).find_map(|member| self.find_mismatch(member))
    }
}

/// Returns the first call in `theirs` that differs from our call of the same number, and ours.
fn find_mismatch(theirs: &[u64], own: impl Fn(usize) -> u64) -> Option<(u64, u64)> {
    let pairs = theirs.iter().map(|&theirs| (theirs, own((theirs >> 48) as usize)));
    let is_other = |theirs: u64, ours: u64| theirs != 0 && theirs >> 48 == ours >> 48 && theirs != ours;
    pairs.into_iter().find(|&(theirs, ours)| is_other(theirs, ours)) // 0: no call is recorded there
}

/// Returns the error that a member is in a different call than this one, from the words of both calls.
pub(crate) fn mismatch(member: usize, theirs: u64, ours: u64) -> Cause {
    if CallKind::name_of(ours) == CallKind::name_of(theirs)
        && CallKind::root_of(ours) == CallKind::root_of(theirs)
    {
        let (one, other) = (CallKind::bytes_of(ours), CallKind::bytes_of(theirs));
        if one != other {
            return Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
        }
    }
    Cause::Argument(format!(
        "member {member} is in another call, {}, while this one is in {}: members make the same calls in the \
         same order",
        CallName(theirs),
        CallName(ours)
    ))
}

/// A call, formatted for errors.
pub(crate) struct CallName(pub(crate) u64);

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_panicked = self.0 & CallKind::PANICKED == CallKind::PANICKED;
        let nameless = if is_panicked { "one that a panic ended" } else { "one that prepares something" };
        let Some(name) = CallKind::name_of(self.0) else { return f.write_str(nameless) };
        write!(f, "{name}({} bytes, root {})", CallKind::bytes_of(self.0), CallKind::root_of(self.0))
    }
}

/// The call log of a communicator and the number of its wait probe.
#[derive(Debug)]
pub(crate) struct MismatchCheck {
    call_log: Arc<CallLog>,
    number: u32,
}

impl MismatchCheck {
    pub(crate) fn new(worker: &Worker, call_log: CallLog) -> MismatchCheck {
        let call_log = Arc::new(call_log);
        MismatchCheck { number: worker.add_wait_probe(call_log.clone()), call_log }
    }

    /// Records a call, which lasts until the result is dropped, and sets the wait probe of this thread.
    #[inline]
    pub(crate) fn note(&self, kind: Option<&CallKind>) -> LoggedCall {
        self.call_log.note(kind.map_or(CallKind::OTHER, CallKind::log_word));
        set_wait_probe(self.number);
        LoggedCall
    }

    /// Records that a panic has ended the call that this thread is in.
    #[cold]
    pub(crate) fn log_panic(&self) {
        self.call_log.put(self.call_log.calls.load(Ordering::Relaxed), CallKind::PANICKED);
    }

    /// Compares the calls of two members without a wait.
    #[cold]
    pub(crate) fn mismatch_of_two(&self) -> Option<Cause> {
        self.call_log.mismatch_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_same_number_are_compared() {
        let noted = |number: u64, call: u64| number << 48 | call;
        // Our calls are 40 to 71, each at its number modulo the length.
        let own = |at: usize| {
            (40..72).map(|number| noted(number, 7)).find(|word| (word >> 48) as usize % OWN == at % OWN)
        };
        let own = |at: usize| own(at).expect("one of each rest");
        let theirs =
            |first: u64, call: u64| [0, 1, 2, 3].map(|at| noted(first + at, if at == 1 { call } else { 7 }));
        for first in [40, 55, 68] {
            assert_eq!(find_mismatch(&theirs(first, 7), own), None);
            assert_eq!(
                find_mismatch(&theirs(first, 8), own),
                Some((noted(first + 1, 8), noted(first + 1, 7)))
            );
        }
        assert_eq!(find_mismatch(&theirs(36, 8), own), None, "long ago");
        assert_eq!(find_mismatch(&theirs(72, 8), own), None, "still to come");
    }
}
