//! Models of the owner lock: one thread at a time has the value, and sees what the threads before it did.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::engine::owner_lock::{Owner, owner_lock};

/// A number that the thread with access changes by a load and a store.
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
fn each_step_is_done_once() {
    loom::model(|| {
        let (mut owner, own_borrower) = owner_lock(Steps::default());
        let borrower = own_borrower.clone();
        let other = thread::spawn(move || {
            if let Ok(mut guard) = borrower.try_lock()
                && guard.value().step() == 2
            {
                guard.give_back();
            }
        });
        assert_eq!(owner.owned_mut().map(|steps| steps.step()), Some(1));
        owner.release();
        if let Ok(mut guard) = own_borrower.try_lock() {
            let last = guard.value().step();
            assert_eq!(last, 2, "a step was taken twice, or an earlier one was not seen");
            guard.give_back();
        }
        other.join().unwrap();
        assert_eq!(steps(&owner), Some(2));
    });
}

/// The owner sees what was done meanwhile, without reading anything but the state.
#[test]
fn the_owner_sees_what_the_borrower_did() {
    loom::model(|| {
        let (mut owner, borrower) = owner_lock(Steps::default());
        owner.release();
        let other = thread::spawn(move || {
            let mut guard = borrower.try_lock().expect("no other thread locks it");
            guard.value().step();
            guard.give_back();
        });
        assert!(
            matches!(steps(&owner), None | Some(1)),
            "the owner has the value but does not see the change"
        );
        other.join().unwrap();
        assert_eq!(steps(&owner), Some(1));
    });
}

/// A borrower that is not done frees the value, and another continues with it.
#[test]
fn borrowers_see_what_other_borrowers_did() {
    loom::model(|| {
        let (mut owner, own_borrower) = owner_lock(Steps::default());
        owner.release();
        let borrower = own_borrower.clone();
        let other =
            thread::spawn(move || borrower.try_lock().is_ok_and(|mut guard| guard.value().step() > 0));
        let own = own_borrower.try_lock().is_ok_and(|mut guard| guard.value().step() > 0);
        let taken = u32::from(other.join().unwrap()) + u32::from(own);
        let last = own_borrower.try_lock().expect("the value is free").value().step();
        assert_eq!(last, taken + 1, "an earlier step was not seen");
    });
}
