//! The state of one direction of a slot, kept by its own rank.
//!
//! ```text
//! idle --send, receive--> busy --its end--> idle
//!   | |                     | |
//!   | |                     | +--a receive was dropped, but has its message--> kept --the next receive--> busy
//!   | +--a message of the slot met a dropped receive of any slot---------------^ |
//!   |                       |     the message did not come after all -------------+
//!   |                       v     a receive ends without its message             v
//!   |                    suspect <-----------------------------------------------+
//!   |                       | |--the next receive on the slot--> busy
//!   |                       | a receive of any slot finds that the message has arrived after all
//!   |                       v
//!   |                    borrowed --its end--> idle, or suspect if the message is still there
//!   v
//! closed (the bank is not open; a closed slot remembers that it was suspect, or kept)
//! ```
//!
//! The fast path goes from idle to busy and back by plain stores, because a program must not use one direction of a
//! slot in two threads at once. A thread leaves the state suspect by a compare-and-swap, because two threads may
//! correctly try that at once: a receive of any slot does not know of a receive that names the slot.
//!
//! Kept means only that the next receive on the slot must look among the kept messages (`protocol/kept.rs`). Nobody
//! borrows such a slot, so a thread may go from idle to kept although it does not use the slot: a thread on the fast
//! path that has just seen idle overwrites kept, and still uses the slot alone. It finds the message when it waits.

use tasuki_core::base::sync::{
    AtomicU8, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use tasuki_core::base::{planted, relaxed_if_planted};

const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// A message to a withdrawn receive may lie in the slot.
const SUSPECT: u8 = 2;
/// A receive of any slot takes the message that lies in the slot.
const BORROWED: u8 = 3;
/// The next receive on the slot must look for a message that met a dropped receive.
const KEPT: u8 = 4;
/// The bank is not open. This is a flag that is added to idle, suspect or kept.
const CLOSED: u8 = 8;

/// The state of one direction of a slot.
#[derive(Debug)]
pub(crate) struct SlotState(AtomicU8);

/// Why a direction of a slot cannot be occupied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OccupyError {
    /// An earlier send or receive has not been waited for.
    Busy,
    /// A receive of any slot uses the slot and will end soon.
    Borrowed,
    /// The bank must be opened first.
    Closed,
}

impl SlotState {
    /// Makes the state of a bank that was never open.
    pub(crate) fn closed() -> SlotState {
        SlotState(AtomicU8::new(CLOSED))
    }

    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        let order = relaxed_if_planted("slot_state_idle_look_relaxed", Acquire); // SYNC bank-open, SYNC slot-idle
        self.0.load(order) == IDLE
    }

    /// Returns true if the slot is busy. Orders nothing: only protocols with preposted receives ask, and those
    /// make one call at a time.
    #[inline(always)]
    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Relaxed) == BUSY
    }

    /// Goes from idle to busy. The caller must have just seen idle, and must be the only user of the slot.
    #[inline(always)]
    pub(crate) fn set_busy(&self) {
        self.0.store(BUSY, Relaxed);
    }

    /// Goes back to idle. If the request of a send was dropped, the thread that ended the send calls this. The thread
    /// that occupies the slot next sees the new message numbers.
    #[inline(always)]
    pub(crate) fn set_idle(&self) {
        self.0.store(IDLE, relaxed_if_planted("slot_state_idle_relaxed", Release)); // SYNC slot-idle
    }

    /// Goes to busy from any state that is not in use. Returns true if there may be a kept message for a receive. The
    /// caller then sees what the previous user has written about the slot.
    // SYNC slot-suspect, SYNC slot-kept, SYNC slot-idle, SYNC bank-open
    pub(crate) fn occupy(&self) -> Result<bool, OccupyError> {
        let before = self.change(|state| match state {
            IDLE | SUSPECT | KEPT => Ok(BUSY),
            BUSY => Err(OccupyError::Busy),
            BORROWED => Err(OccupyError::Borrowed),
            _ => Err(OccupyError::Closed),
        })?;
        Ok(before != IDLE)
    }

    /// Goes to suspect: a receive has ended without its message, which may have arrived nevertheless, or may still
    /// arrive.
    pub(crate) fn suspect(&self) {
        self.0.store(SUSPECT, relaxed_if_planted("slot_state_suspect_relaxed", Release)); // SYNC slot-suspect
    }

    /// Goes from busy to kept: a receive was dropped that has its message, or is getting it.
    pub(crate) fn keep(&self) {
        self.0.store(KEPT, relaxed_if_planted("slot_state_keep_relaxed", Release)); // SYNC slot-kept
    }

    /// Goes from idle to kept, also if the slot is closed. Has no effect in other states: a receive on the slot is
    /// waiting for a message and looks itself, or a message in the line comes first.
    pub(crate) fn mark_kept(&self) {
        if planted("slot_state_mark_by_store") {
            return self.0.store(KEPT, Release);
        }
        let order = relaxed_if_planted("slot_state_mark_relaxed", Release); // SYNC slot-kept
        for closed in [0, CLOSED] {
            let _ = self.0.compare_exchange(IDLE | closed, KEPT | closed, order, Relaxed);
        }
    }

    /// Goes from kept to suspect: the message did not come to the dropped receive.
    pub(crate) fn suspect_if_kept(&self) {
        if planted("slot_state_suspect_kept_by_store") {
            return self.0.store(SUSPECT, Release);
        }
        for closed in [0, CLOSED] {
            // SYNC slot-suspect, SYNC slot-kept
            let _ = self.0.compare_exchange(KEPT | closed, SUSPECT | closed, AcqRel, Relaxed);
        }
    }

    /// Goes from suspect to borrowed. Returns false if the state was not suspect.
    pub(crate) fn borrow(&self) -> bool {
        if planted("slot_state_borrow_by_store") && self.is_suspect() {
            self.0.store(BORROWED, Relaxed);
            return true;
        }
        let order = relaxed_if_planted("slot_state_borrow_relaxed", Acquire); // SYNC slot-suspect
        self.0.compare_exchange(SUSPECT, BORROWED, order, Relaxed).is_ok()
    }

    /// Goes from borrowed to idle, or back to suspect if the message was not taken.
    pub(crate) fn give_back(&self, was_taken: bool) {
        let order = relaxed_if_planted("slot_state_give_back_relaxed", Release); // SYNC slot-suspect
        self.0.store(if was_taken { IDLE } else { SUSPECT }, order);
    }

    /// Returns true if the state is suspect or borrowed, or will be suspect when the bank is reopened.
    pub(crate) fn may_hold_late_match(&self) -> bool {
        matches!(self.0.load(Relaxed) & !CLOSED, SUSPECT | BORROWED)
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.0.load(relaxed_if_planted("slot_state_suspect_look_relaxed", Acquire)) == SUSPECT // SYNC bank-open
    }

    pub(crate) fn is_borrowed(&self) -> bool {
        self.0.load(Acquire) == BORROWED
    }

    /// Closes the slot, unless it is in use. Returns true if the slot is closed.
    pub(crate) fn close(&self) -> bool {
        let is_used = |state| matches!(state, BUSY | BORROWED) && !planted("slot_state_close_in_use");
        self.change(|state| if is_used(state) { Err(()) } else { Ok(state | CLOSED) }).is_ok()
    }

    /// Reopens the slot, if it is closed.
    pub(crate) fn reopen(&self) {
        // SYNC bank-open: a thread that sees a slot idle sees the present location of its lines.
        let order = relaxed_if_planted("slot_state_reopen_relaxed", Release);
        if planted("slot_state_reopen_by_store") {
            return self.0.store(self.0.load(Relaxed) & !CLOSED, order);
        }
        let _ = self.0.fetch_and(!CLOSED, order);
    }

    /// Returns true if a call uses the slot, or may use it.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.0.load(Relaxed), BUSY | BORROWED)
    }

    /// Sets the state to closed, without suspect or kept. No call may use the slot.
    pub(crate) fn reset(&self) {
        self.0.store(CLOSED, Relaxed);
    }

    /// Changes the state. Returns the state before.
    fn change<E>(&self, to: impl Fn(u8) -> Result<u8, E>) -> Result<u8, E> {
        let mut found = self.0.load(Relaxed);
        let order = relaxed_if_planted("slot_state_change_relaxed", Acquire);
        loop {
            if planted("slot_state_change_by_store") {
                self.0.store(to(found)?, Relaxed);
                return Ok(found);
            }
            match self.0.compare_exchange(found, to(found)?, order, Relaxed) {
                Ok(before) => return Ok(before),
                Err(other) => found = other,
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))] // a model includes this file
mod tests {
    use super::*;

    #[test]
    fn a_slot_in_use_cannot_be_occupied() {
        let state = SlotState::closed();
        assert_eq!(state.occupy(), Err(OccupyError::Closed));
        state.reopen();
        assert!(state.is_idle());
        assert_eq!((state.occupy(), state.occupy()), (Ok(false), Err(OccupyError::Busy)));
        assert!(state.is_busy() && !state.close() && !state.borrow());
        state.suspect();
        assert!(!state.is_idle() && state.borrow() && !state.borrow());
        assert_eq!(state.occupy(), Err(OccupyError::Borrowed));
        assert!(!state.close() && state.is_borrowed());
        state.give_back(false);
        assert_eq!(state.occupy(), Ok(true), "the next receive on the slot gets the message");
        state.suspect();
        assert!(state.borrow());
        state.give_back(true);
        assert!(state.is_idle());
    }

    #[test]
    fn a_kept_slot_is_occupied_and_never_borrowed() {
        let state = SlotState::closed();
        state.mark_kept();
        assert_eq!(state.occupy(), Err(OccupyError::Closed));
        state.reopen();
        assert!(!state.is_idle() && !state.borrow() && !state.may_hold_late_match());
        assert_eq!(state.occupy(), Ok(true));
        state.mark_kept();
        assert!(state.is_busy(), "its receive looks itself");
        state.keep();
        assert!(!state.is_in_use() && state.close());
        state.suspect_if_kept();
        state.reopen();
        assert!(state.borrow(), "the message did not come");
        state.mark_kept();
        assert!(state.is_borrowed());
    }

    #[test]
    fn a_closed_slot_remembers_that_it_is_suspect() {
        let state = SlotState::closed();
        state.reopen();
        state.suspect();
        assert!(state.close() && state.may_hold_late_match());
        assert!(!state.borrow() && state.occupy() == Err(OccupyError::Closed));
        state.reopen();
        assert!(state.is_suspect());
        assert!(state.close());
        state.reset();
        state.reopen();
        assert!(state.is_idle() && !state.may_hold_late_match());
    }
}
