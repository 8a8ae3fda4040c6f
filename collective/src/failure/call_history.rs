//! A hash of all collective calls of a member on a communicator, in their order.
//!
//! Members that make the same calls have equal hashes. The hash of a call travels where it costs nothing: in the header
//! of each message, and beside each signal and inline flag of compiled steps. So a member that receives anything in a
//! call finds out whether the sender is in the same call, and has made the same calls before it.

use crate::failure::signature::{CallSignature, SIGNATURE_BITS};
use tasuki_core::base::sync::{AtomicU64, Ordering};

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct CallHistory(AtomicU64);

/// The hash of a call and all calls before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallMark(u64);

impl CallHistory {
    /// Returns the mark of the next call, if it has that signature.
    #[inline]
    pub(crate) fn mark_of_next(&self, call: CallSignature) -> CallMark {
        // A multiplication by an odd number maps no two hashes to one. So members that differ in one call differ
        // in all later ones, too.
        let before = self.0.load(Ordering::Relaxed);
        CallMark((before.rotate_left(7) ^ call.with_rest()).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Adds a call. Returns its mark.
    #[inline]
    pub(crate) fn add(&self, call: CallSignature) -> CallMark {
        let mark = self.mark_of_next(call);
        self.0.store(mark.0, Ordering::Relaxed);
        mark
    }
}

impl CallMark {
    /// Returns the header of the call's messages: its signature, and bits of the hash. The highest bit is free.
    #[inline]
    pub(crate) fn header(self, call: CallSignature) -> u64 {
        self.0 >> (SIGNATURE_BITS + 1) << SIGNATURE_BITS | call.bits()
    }

    /// Returns the tag of the call's compiled steps.
    #[inline]
    pub(crate) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_kind::CallKind;
    use tasuki_core::base::Rank;
    use tasuki_schedule::shape::CollectiveKind;

    fn call(bytes: usize) -> CallSignature {
        CallSignature::of(&CallKind::of::<u8>(CollectiveKind::Bcast, Rank(0), bytes))
    }

    #[test]
    fn one_other_call_shows_in_the_tags_and_headers_of_all_later_ones() {
        let (one, other) = (CallHistory::default(), CallHistory::default());
        for number in 0..5 {
            assert_eq!(one.add(call(number)), other.add(call(number)));
        }
        assert_eq!(one.mark_of_next(call(8)), other.mark_of_next(call(8)));
        one.add(call(8));
        other.add(call(16));
        let mut headers = 0;
        for _ in 0..1000 {
            let (one, other) = (one.add(call(8)), other.add(call(8)));
            assert_ne!(one.tag(), other.tag());
            headers += usize::from(one.header(call(8)) == other.header(call(8)));
        }
        assert!(headers < 10, "{headers} of 1000 headers are equal: they hold 15 bits of the hash");
    }

    #[test]
    fn the_order_of_calls_shows() {
        let (one, other) = (CallHistory::default(), CallHistory::default());
        one.add(call(8));
        other.add(call(16));
        assert_ne!(one.add(call(16)).tag(), other.add(call(8)).tag());
    }
}
