//! Models of a work queue: each item is processed once, in order, by one thread at a time, and a thread that finds the
//! queue empty may leave.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::engine::{TryLock, WorkQueue};

/// A queue of a rank, and what other threads must see of its processing.
#[derive(Default)]
struct Rank {
    waiting: WorkQueue<u32>,
    lock: TryLock,
    /// Number of processed items. Only the holder of the lock changes it, by loads and stores.
    done: AtomicU32,
    /// The processed items, a digit each.
    order: AtomicU32,
}

impl Rank {
    /// Processes up to `room` items, if no other thread does.
    fn process(&self, room: u32) {
        let Some(_guard) = self.lock.try_lock() else { return };
        let mut left = room;
        self.waiting.process(|item| {
            let Some(rest) = left.checked_sub(1) else { return false };
            left = rest;
            self.done.store(self.done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.order.store(self.order.load(Ordering::Relaxed) * 10 + item, Ordering::Relaxed);
            true
        });
    }

    fn has_done(&self, all: u32, order: u32) -> bool {
        self.done.load(Ordering::Relaxed) == all && self.order.load(Ordering::Relaxed) == order
    }
}

#[test]
fn a_thread_that_finds_the_queue_empty_finds_all_items_done() {
    loom::model(|| {
        let rank = Arc::new(Rank::default());
        rank.waiting.push(1);
        rank.waiting.push(2);
        let other = {
            let rank = rank.clone();
            thread::spawn(move || rank.process(2))
        };
        rank.process(1);
        rank.process(1); // a thread that did not get the lock has not released it
        assert!(!rank.waiting.is_empty() || rank.has_done(2, 12), "leaves although an item is not processed");
        other.join().unwrap();
        rank.process(2);
        assert!(
            rank.waiting.is_empty() && rank.has_done(2, 12),
            "an item was lost, processed twice, or out of order"
        );
    });
}

/// An item that is pushed late is processed, too; the leaving thread checks only that the queue is empty.
#[test]
fn an_item_that_is_pushed_under_the_lock_is_seen_after_it() {
    loom::model(|| {
        let rank = Arc::new(Rank::default());
        let read = Arc::new(AtomicU32::new(0));
        let runner = {
            let (rank, read) = (rank.clone(), read.clone());
            thread::spawn(move || {
                let Some(_guard) = rank.lock.try_lock() else { return };
                read.store(1, Ordering::Release); // a call was read
                rank.waiting.push(1); // and it causes another call
            })
        };
        let ran = read.load(Ordering::Acquire) == 1;
        if ran && !rank.lock.is_locked() {
            assert!(!rank.waiting.is_empty(), "leaves although an item is left");
        }
        runner.join().unwrap();
    });
}
