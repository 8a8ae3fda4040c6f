//! Models of a queue's lease: one holder at a time, and what was called for is done by somebody.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::queue::lease::Lease;

struct Queue {
    lease: Lease,
    /// What has been asked for, outside the lease.
    asked: [AtomicU32; 2],
    /// What has been done about it, under the lease.
    done: [AtomicU32; 2],
    /// Whether somebody is at it.
    busy: AtomicU32,
}

impl Queue {
    fn new() -> Queue {
        let word = || AtomicU32::new(0);
        Queue { lease: Lease::default(), asked: [word(), word()], done: [word(), word()], busy: word() }
    }

    /// Asks for something and sees to it that it is done.
    fn ask(&self, rank: u32) {
        self.asked[rank as usize].store(1, Ordering::Relaxed);
        if !self.lease.call(rank) {
            return;
        }
        loop {
            assert_eq!(self.busy.swap(1, Ordering::Relaxed), 0, "two are at it");
            for (asked, done) in self.asked.iter().zip(&self.done) {
                done.store(asked.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.busy.store(0, Ordering::Relaxed);
            if self.lease.give_back() {
                return;
            }
        }
    }
}

#[test]
fn what_two_ask_for_is_done() {
    loom::model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.ask(1))
        };
        queue.ask(0);
        other.join().unwrap();
        assert!(queue.lease.call(0), "nobody has it any more");
        assert!(queue.done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "forgotten");
    });
}

#[test]
fn its_holder_is_known() {
    loom::model(|| {
        let lease = Lease::default();
        assert!(lease.glance().is_free() && lease.glance().holder().is_none());
        assert!(lease.call(5) && lease.glance().holder() == Some(5));
        assert!(!lease.call(6) && lease.glance().holder() == Some(5));
        assert!(!lease.give_back() && lease.give_back() && lease.glance().is_free());
        assert_ne!(lease.glance(), Lease::default().glance(), "that it was taken can be seen");
    });
}
