//! Models of a queue's lease: one holder at a time, and every request is served by some holder.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::queue::lease::Lease;

struct Queue {
    lease: Lease,
    /// For each rank, 1 once it has made its request. A rank stores it without holding the lease.
    requested: [AtomicU32; 2],
    /// For each rank, 1 once its request has been served. The lease holder stores it.
    done: [AtomicU32; 2],
    /// 1 while a thread serves requests.
    busy: AtomicU32,
}

impl Queue {
    fn new() -> Queue {
        let word = || AtomicU32::new(0);
        Queue { lease: Lease::default(), requested: [word(), word()], done: [word(), word()], busy: word() }
    }

    /// Stores a request and makes sure that it is served.
    fn request(&self, rank: u32) {
        self.requested[rank as usize].store(1, Ordering::Relaxed);
        if !self.lease.acquire_or_mark(rank) {
            return;
        }
        loop {
            assert_eq!(self.busy.swap(1, Ordering::Relaxed), 0, "two threads hold the lease");
            for (requested, done) in self.requested.iter().zip(&self.done) {
                done.store(requested.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.busy.store(0, Ordering::Relaxed);
            if self.lease.release() {
                return;
            }
        }
    }
}

#[test]
fn requests_of_two_ranks_are_served() {
    loom::model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.request(1))
        };
        queue.request(0);
        other.join().unwrap();
        assert!(queue.lease.acquire_or_mark(0), "the lease is free");
        assert!(queue.done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "a request was not served");
    });
}

#[test]
fn the_holder_can_be_read() {
    loom::model(|| {
        let lease = Lease::default();
        assert!(lease.snapshot().is_free() && lease.snapshot().holder().is_none());
        assert!(lease.acquire_or_mark(5) && lease.snapshot().holder() == Some(5));
        assert!(!lease.acquire_or_mark(6) && lease.snapshot().holder() == Some(5));
        assert!(!lease.release() && lease.release() && lease.snapshot().is_free());
        assert_ne!(lease.snapshot(), Lease::default().snapshot(), "it can be seen that the lease was taken");
    });
}
