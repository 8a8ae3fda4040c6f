//! Records the last calls of each member, so that a member that waits long can check that all are in the same call.
//!
//! A member that receives anything from one in another call finds out by the hash of
//! [`call_history`](crate::failure::call_history). Members that only wait for each other receive nothing, and would
//! wait for ever. So each member records its calls in words of its own memory that others can read: the number of the
//! call on the communicator, and its kind. A member that has waited long compares the words.
//!
//! Each word is written by its member and read by others at any time, independently of other words. The words order
//! no other memory accesses.

use crate::failure::member::CALLS;
use crate::failure::signature::{CallSignature, SIGNATURE_BITS, mismatch};
use tasuki_core::base::Cause;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::fabric::DirectCell;

/// Number of its own calls that a member keeps. A member that has found a mismatch makes no more calls. A member that
/// did not wait in that call may be some calls ahead before it must wait; the number of messages that can be sent ahead
/// limits how many.
const OWN: usize = 32;

/// The words of all members, as one member reads them.
#[derive(Debug)]
pub(crate) struct CallLog {
    me: usize,
    /// The words of each member.
    words: Box<[[DirectCell; CALLS as usize]]>,
    /// Number of calls so far.
    calls: AtomicU64,
    /// This member's last calls, in the encoding of the shared words.
    own: [AtomicU64; OWN],
}

impl CallLog {
    /// Makes the call log of member `me` from the words of all members.
    pub(crate) fn new(me: usize, words: Vec<[DirectCell; CALLS as usize]>) -> CallLog {
        words[me].iter().for_each(|word| word.counter().store(0, Ordering::Relaxed));
        let own = std::array::from_fn(|_| AtomicU64::new(0));
        CallLog { me, words: words.into(), calls: AtomicU64::new(0), own }
    }

    /// Returns the number of calls that this member has made.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns this member's call of that number, if it is among the last ones.
    pub(crate) fn call(&self, number: u64) -> Option<CallSignature> {
        let word = self.own[number as usize % OWN].load(Ordering::Relaxed);
        (word >> SIGNATURE_BITS == number & 0xffff).then_some(CallSignature::in_word(word))
    }

    /// Records the next call, which this thread is entering.
    #[inline]
    pub(crate) fn note(&self, call: CallSignature) {
        let number = self.calls.load(Ordering::Relaxed) + 1;
        self.calls.store(number, Ordering::Relaxed);
        self.put(number, call);
    }

    #[inline]
    fn put(&self, number: u64, call: CallSignature) {
        let word = number << SIGNATURE_BITS | call.bits();
        self.own[number as usize % OWN].store(word, Ordering::Relaxed);
        let own = &self.words[self.me][(number % u64::from(CALLS)) as usize];
        own.counter().store(word, Ordering::Relaxed);
    }

    fn words_of(&self, member: usize) -> [u64; CALLS as usize] {
        self.words[member].each_ref().map(|word| word.counter().load(Ordering::Relaxed))
    }

    /// Returns a member of which a recorded call differs from this member's call of that number, and both calls, theirs
    /// first.
    pub(crate) fn find_different(&self) -> Option<(usize, CallSignature, CallSignature)> {
        let own = |number: usize| self.own[number % OWN].load(Ordering::Relaxed);
        (0..self.words.len()).find_map(|member| {
            let (theirs, ours) = find_mismatch(&self.words_of(member), own)?;
            Some((member, CallSignature::in_word(theirs), CallSignature::in_word(ours)))
        })
    }

    /// Returns an error if a recorded call of any member differs from this member's call of that number.
    pub(crate) fn find_mismatch(&self) -> Option<Cause> {
        self.find_different().map(|(member, theirs, ours)| mismatch(member, theirs, ours))
    }
}

/// Returns the first word in `theirs` that differs from this member's word of that call, and the latter.
fn find_mismatch(theirs: &[u64], own: impl Fn(usize) -> u64) -> Option<(u64, u64)> {
    let pairs = theirs.iter().map(|&theirs| (theirs, own((theirs >> 48) as usize)));
    let is_other = |theirs: u64, ours: u64| theirs != 0 && theirs >> 48 == ours >> 48 && theirs != ours;
    pairs.into_iter().find(|&(theirs, ours)| is_other(theirs, ours)) // 0: no call is recorded there
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
