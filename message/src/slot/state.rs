//! Whether one direction of a slot is in use, as its own rank knows.
//!
//! ```text
//! idle --send, receive--> busy --its end--> idle
//!   |                       | a receive without its message
//!   |                       v
//!   |                    suspect --the next receive there--> busy
//!   |                       | a receive of any slot finds that the message came after all
//!   |                       v
//!   |                     lent --its end--> idle, or suspect if the message is still there
//!   v
//! closed (the bank is not open; a suspect remembers that it was one)
//! ```
//!
//! The fast path goes from idle to busy and back by plain stores: two threads that use one slot in one direction at
//! once are in error. What leads out of suspect is a compare-and-swap, since two threads may well take it at once: one
//! that receives from any slot knows nothing of one that names it.

use std::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// What was sent to a receive that was withdrawn may lie there.
const SUSPECT: u8 = 2;
/// A receive of any slot takes what lies there.
const LENT: u8 = 3;
/// The bank is not open. A bit, beside idle or suspect.
const CLOSED: u8 = 4;

/// Whether one direction of a slot is in use.
#[derive(Debug)]
pub(crate) struct SlotState(AtomicU8);

/// Why a direction of a slot cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OccupyError {
    /// A message that has not been waited for.
    Busy,
    /// A receive of any slot is about to be done with it.
    Lent,
    /// The bank is to be opened first.
    Closed,
}

impl SlotState {
    /// Of a bank that was never open.
    pub(crate) fn closed() -> SlotState {
        SlotState(AtomicU8::new(CLOSED))
    }

    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Acquire) == IDLE // SYNC bank-open, SYNC slot-idle
    }

    #[inline(always)]
    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Acquire) == BUSY // SYNC bank-open
    }

    /// From idle to busy: by whoever has just seen it idle, and alone uses the slot.
    #[inline(always)]
    pub(crate) fn set_busy(&self) {
        self.0.store(BUSY, Relaxed);
    }

    /// Back to idle. Of a send whose request was dropped the thread that moved it on says so: whoever takes the slot
    /// next sees how many messages it has counted.
    #[inline(always)]
    pub(crate) fn set_idle(&self) {
        self.0.store(IDLE, Release); // SYNC slot-idle
    }

    /// To busy from whatever is not in use. Whoever does sees what the one before knew of the slot.
    // SYNC slot-suspect, SYNC slot-idle
    pub(crate) fn occupy(&self) -> Result<(), OccupyError> {
        self.change(|mark| match mark {
            IDLE | SUSPECT => Ok(BUSY),
            BUSY => Err(OccupyError::Busy),
            LENT => Err(OccupyError::Lent),
            _ => Err(OccupyError::Closed),
        })
    }

    /// A receive has ended without its message, which may have come all the same, or come still.
    pub(crate) fn suspect(&self) {
        self.0.store(SUSPECT, Release); // SYNC slot-suspect
    }

    /// From suspect to lent. False if it was not suspect.
    pub(crate) fn lend(&self) -> bool {
        self.0.compare_exchange(SUSPECT, LENT, Acquire, Relaxed).is_ok() // SYNC slot-suspect
    }

    /// From lent to idle, or to suspect if what lies there was not taken.
    pub(crate) fn give_back(&self, was_taken: bool) {
        self.0.store(if was_taken { IDLE } else { SUSPECT }, Release); // SYNC slot-suspect
    }

    /// Whether it is suspect, lent, or will be suspect again.
    pub(crate) fn may_hold_late_match(&self) -> bool {
        matches!(self.0.load(Relaxed) & !CLOSED, SUSPECT | LENT)
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.0.load(Acquire) == SUSPECT
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.0.load(Acquire) == LENT
    }

    /// Closes it, unless it is in use. Whether it is closed.
    pub(crate) fn close(&self) -> bool {
        let closed = |mark| if matches!(mark, BUSY | LENT) { Err(()) } else { Ok(mark | CLOSED) };
        self.change(closed).is_ok()
    }

    /// Opens it, if it is closed.
    pub(crate) fn reopen(&self) {
        // SYNC bank-open: whoever sees a slot idle sees where it lies now.
        let _ = self.0.fetch_and(!CLOSED, Release);
    }

    /// Nothing lies there any more. For one that is closed.
    pub(crate) fn reset(&self) {
        self.0.store(CLOSED, Relaxed);
    }

    fn change<E>(&self, to: impl Fn(u8) -> Result<u8, E>) -> Result<(), E> {
        let mut found = self.0.load(Relaxed);
        loop {
            match self.0.compare_exchange(found, to(found)?, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => found = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_not_given_away() {
        let mark = SlotState::closed();
        assert_eq!(mark.occupy(), Err(OccupyError::Closed));
        mark.reopen();
        assert!(mark.is_idle());
        assert_eq!((mark.occupy(), mark.occupy()), (Ok(()), Err(OccupyError::Busy)));
        assert!(mark.is_busy() && !mark.close() && !mark.lend());
        mark.suspect();
        assert!(!mark.is_idle() && mark.lend() && !mark.lend());
        assert_eq!(mark.occupy(), Err(OccupyError::Lent));
        assert!(!mark.close() && mark.is_lent());
        mark.give_back(false);
        assert_eq!(mark.occupy(), Ok(()), "the next receive on the slot meets what lies there");
        mark.suspect();
        assert!(mark.lend());
        mark.give_back(true);
        assert!(mark.is_idle());
    }

    #[test]
    fn a_closed_slot_remembers_what_may_lie_there() {
        let mark = SlotState::closed();
        mark.reopen();
        mark.suspect();
        assert!(mark.close() && mark.may_hold_late_match());
        assert!(!mark.lend() && mark.occupy() == Err(OccupyError::Closed));
        mark.reopen();
        assert!(mark.is_suspect());
        assert!(mark.close());
        mark.reset();
        mark.reopen();
        assert!(mark.is_idle() && !mark.may_hold_late_match());
    }
}
