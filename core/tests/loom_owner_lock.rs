//! Models of what passes from hand to hand: one thread at a time has it, and sees what those before it did.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::engine::owner_lock::{Owner, owner_lock};

/// A number that whoever has it changes by a load and a store.
#[derive(Default)]
struct Steps(AtomicU32);

impl Steps {
    fn step(&self) -> u32 {
        let next = self.0.load(Ordering::Relaxed) + 1;
        self.0.store(next, Ordering::Relaxed);
        next
    }
}

fn steps(owner: &Owner<Steps>) -> Option<u32> {
    owner.owned().map(|steps| steps.0.load(Ordering::Relaxed))
}

#[test]
fn each_step_is_taken_once() {
    loom::model(|| {
        let (mut owner, own_hand) = owner_lock(Steps::default());
        let hand = own_hand.clone();
        let other = thread::spawn(move || {
            if let Ok(mut grip) = hand.try_lock()
                && grip.value().step() == 2
            {
                grip.give_back();
            }
        });
        assert_eq!(owner.owned_mut().map(|steps| steps.step()), Some(1));
        owner.release();
        if let Ok(mut grip) = own_hand.try_lock() {
            let last = grip.value().step();
            assert_eq!(last, 2, "a step that another one had taken, or one that was not seen");
            grip.give_back();
        }
        other.join().unwrap();
        assert_eq!(steps(&owner), Some(2));
    });
}

/// The owner sees without a look at anything else what was done meanwhile.
#[test]
fn what_was_done_is_seen_by_its_owner() {
    loom::model(|| {
        let (mut owner, hand) = owner_lock(Steps::default());
        owner.release();
        let other = thread::spawn(move || {
            let mut grip = hand.try_lock().expect("nobody else takes it");
            grip.value().step();
            grip.give_back();
        });
        assert!(matches!(steps(&owner), None | Some(1)), "kept, and not seen");
        other.join().unwrap();
        assert_eq!(steps(&owner), Some(1));
    });
}

/// One that is not done puts it down, and another goes on with it.
#[test]
fn hands_see_what_hands_did() {
    loom::model(|| {
        let (mut owner, own_hand) = owner_lock(Steps::default());
        owner.release();
        let hand = own_hand.clone();
        let other = thread::spawn(move || hand.try_lock().is_ok_and(|mut grip| grip.value().step() > 0));
        let own = own_hand.try_lock().is_ok_and(|mut grip| grip.value().step() > 0);
        let taken = u32::from(other.join().unwrap()) + u32::from(own);
        let last = own_hand.try_lock().expect("nobody has it").value().step();
        assert_eq!(last, taken + 1, "steps that were not seen");
    });
}
