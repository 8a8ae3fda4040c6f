//! Models of the state of one direction of a slot: one call at a time uses the slot, and sees what those before it
//! knew.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use state::SlotState;

#[allow(dead_code)] // no model is about the checks of a bank that is closed
#[path = "../src/slot/state.rs"]
mod state;

/// A direction of a slot, with a number that its user changes by a load and a store.
struct Slot {
    state: SlotState,
    messages: AtomicU32,
}

impl Slot {
    /// Makes a slot of an open bank, which the caller uses.
    fn occupied() -> Arc<Slot> {
        let slot = Slot { state: SlotState::closed(), messages: AtomicU32::new(0) };
        slot.state.reopen();
        assert_eq!(slot.state.occupy(), Ok(false));
        Arc::new(slot)
    }

    /// Counts a message. Returns its number.
    fn count_message(&self) -> u32 {
        let number = self.messages.load(Ordering::Relaxed) + 1;
        self.messages.store(number, Ordering::Relaxed);
        number
    }
}

fn next_user_sees_the_last_number(begin: fn(&SlotState) -> bool) {
    loom::model(move || {
        let slot = Slot::occupied();
        let next = {
            let slot = slot.clone();
            thread::spawn(move || {
                if begin(&slot.state) {
                    assert_eq!(slot.count_message(), 2, "the last user has not ended, or is not seen");
                }
            })
        };
        assert_eq!(slot.count_message(), 1);
        slot.state.set_idle();
        next.join().unwrap();
    });
}

#[test]
fn the_fast_path_sees_the_last_number() {
    next_user_sees_the_last_number(|state| {
        let is_idle = state.is_idle();
        if is_idle {
            state.set_busy();
        }
        is_idle
    });
}

#[test]
fn the_slow_path_sees_the_last_number() {
    next_user_sees_the_last_number(|state| state.occupy().is_ok());
}

/// A receive has ended without its message. A receive of any slot and one that names the slot try to take it.
#[test]
fn one_of_two_receives_uses_a_suspect_slot() {
    loom::model(|| {
        let slot = Slot::occupied();
        let any = {
            let slot = slot.clone();
            thread::spawn(move || {
                let borrowed = slot.state.borrow();
                if borrowed {
                    assert!(slot.count_message() > 1, "the receive that was withdrawn is not seen");
                    slot.state.give_back(false);
                }
                borrowed
            })
        };
        slot.count_message();
        slot.state.suspect();
        let named = slot.state.occupy().is_ok();
        if named {
            slot.count_message();
            slot.state.suspect();
        }
        let uses = 1 + u32::from(any.join().unwrap()) + u32::from(named);
        assert_eq!(slot.count_message(), uses + 1, "two receives used the slot at once");
    });
}

#[test]
fn a_bank_with_a_slot_in_use_is_not_closed() {
    loom::model(|| {
        let slot = Slot::occupied();
        slot.state.suspect();
        let any = {
            let slot = slot.clone();
            thread::spawn(move || slot.state.borrow())
        };
        let closed = slot.state.close();
        assert!(closed != any.join().unwrap(), "the slot is closed and borrowed, or neither");
    });
}

fn user_sees_where_the_lines_are(close: fn(&SlotState), begin: fn(&SlotState) -> bool) {
    loom::model(move || {
        let shared = Arc::new((Slot::occupied(), AtomicU32::new(1)));
        close(&shared.0.state);
        let user = {
            let shared = shared.clone();
            thread::spawn(move || {
                if begin(&shared.0.state) {
                    assert_eq!(shared.1.load(Ordering::Relaxed), 2, "the lines of a bank that was closed");
                }
            })
        };
        shared.1.store(2, Ordering::Relaxed);
        shared.0.state.reopen();
        user.join().unwrap();
    });
}

#[test]
fn a_user_of_a_reopened_slot_sees_where_its_lines_are() {
    for begin in [SlotState::is_idle, |state: &SlotState| state.occupy().is_ok()] {
        user_sees_where_the_lines_are(SlotState::reset, begin);
    }
}

#[test]
fn a_search_for_late_matches_sees_where_the_lines_are() {
    let close = |state: &SlotState| {
        state.suspect();
        assert!(state.close());
    };
    user_sees_where_the_lines_are(close, SlotState::is_suspect);
}

/// If a close is refused, all slots of the bank are reopened, also those in use.
#[test]
fn reopening_a_slot_does_not_disturb_its_user() {
    loom::model(|| {
        let slot = Slot::occupied();
        slot.state.suspect();
        let any = {
            let slot = slot.clone();
            thread::spawn(move || assert!(slot.state.borrow()))
        };
        slot.state.reopen();
        any.join().unwrap();
        assert!(!slot.state.borrow(), "the slot is borrowed twice");
    });
}

/// A receive was dropped that has its message. The next receive on the slot sees its number.
#[test]
fn the_next_receive_on_a_kept_slot_sees_the_last_number() {
    loom::model(|| {
        let slot = Slot::occupied();
        let next = {
            let slot = slot.clone();
            thread::spawn(move || {
                if let Ok(may_be_kept) = slot.state.occupy() {
                    assert!(may_be_kept, "the receive does not look for the message");
                    assert_eq!(slot.count_message(), 2, "the receive that was dropped is not seen");
                }
            })
        };
        assert_eq!(slot.count_message(), 1);
        slot.state.keep();
        next.join().unwrap();
    });
}

/// A receive of any slot was dropped with a message of this slot. The next receive on the slot sees it in the list.
#[test]
fn who_sees_a_slot_kept_sees_the_message_in_the_list() {
    loom::model(|| {
        let (slot, listed) = (Slot::occupied(), Arc::new(AtomicU32::new(0)));
        slot.count_message();
        slot.state.set_idle();
        let next = {
            let (slot, listed) = (slot.clone(), listed.clone());
            thread::spawn(move || {
                if slot.state.occupy() == Ok(true) {
                    assert_eq!(listed.load(Ordering::Relaxed), 1, "the message is not in the list");
                    assert_eq!(slot.count_message(), 2, "the receive before is not seen");
                }
            })
        };
        listed.store(1, Ordering::Relaxed);
        slot.state.mark_kept();
        next.join().unwrap();
    });
}

/// A slot is marked while a receive uses it: no second receive may use it before the first has ended.
#[test]
fn marking_a_slot_does_not_disturb_its_user() {
    loom::model(|| {
        let slot = Slot::occupied();
        let others = {
            let slot = slot.clone();
            thread::spawn(move || {
                slot.state.mark_kept();
                if slot.state.occupy().is_ok() {
                    assert_eq!(slot.count_message(), 2, "two receives used the slot at once");
                }
            })
        };
        assert_eq!(slot.count_message(), 1);
        slot.state.set_idle();
        others.join().unwrap();
    });
}

/// The message of a kept slot did not come. A receive that names the slot and one of any slot find that out.
#[test]
fn one_of_two_receives_uses_a_slot_that_was_kept() {
    loom::model(|| {
        let slot = Slot::occupied();
        slot.count_message();
        slot.state.keep();
        let any = {
            let slot = slot.clone();
            thread::spawn(move || {
                slot.state.suspect_if_kept();
                let borrowed = slot.state.borrow();
                if borrowed {
                    slot.count_message();
                    slot.state.give_back(false);
                }
                borrowed
            })
        };
        let named = slot.state.occupy().is_ok();
        if named {
            slot.count_message();
            slot.state.suspect();
        }
        let uses = 1 + u32::from(any.join().unwrap()) + u32::from(named);
        assert_eq!(slot.count_message(), uses + 1, "two receives used the slot at once");
    });
}
