//! Models of what waits for room at another rank: it goes on once, in its order, by one thread at a time, and who finds
//! nothing left may leave.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tasuki_core::engine::{TryLock, WorkQueue};

/// What a rank hands on, and where it goes, which is what others must see.
#[derive(Default)]
struct Rank {
    waiting: WorkQueue<u32>,
    turn: TryLock,
    /// How much of it has gone. Changed by who has the turn, so no more than loads and stores.
    gone: AtomicU32,
    /// What has gone, a digit each.
    order: AtomicU32,
}

impl Rank {
    /// Hands on what waits, if no other thread does; there is room for so many.
    fn hand_on(&self, room: u32) {
        let Some(_turn) = self.turn.take() else { return };
        let mut left = room;
        self.waiting.process(|thing| {
            let Some(less) = left.checked_sub(1) else { return false };
            left = less;
            self.gone.store(self.gone.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.order.store(self.order.load(Ordering::Relaxed) * 10 + thing, Ordering::Relaxed);
            true
        });
    }

    fn has_sent(&self, all: u32, order: u32) -> bool {
        self.gone.load(Ordering::Relaxed) == all && self.order.load(Ordering::Relaxed) == order
    }
}

#[test]
fn who_finds_nothing_left_finds_it_done() {
    loom::model(|| {
        let rank = Arc::new(Rank::default());
        rank.waiting.push(1);
        rank.waiting.push(2);
        let other = {
            let rank = rank.clone();
            thread::spawn(move || rank.hand_on(2))
        };
        rank.hand_on(1);
        rank.hand_on(1); // who was refused the turn has not ended it
        assert!(!rank.waiting.is_empty() || rank.has_sent(2, 12), "leaves beside what has not gone");
        other.join().unwrap();
        rank.hand_on(2);
        assert!(rank.waiting.is_empty() && rank.has_sent(2, 12), "lost, or twice, or in another order");
    });
}

/// What is there late is handed on, too, and the thread that leaves asks only whether anything is left.
#[test]
fn what_follows_is_there_before_the_turn_ends() {
    loom::model(|| {
        let rank = Arc::new(Rank::default());
        let read = Arc::new(AtomicU32::new(0));
        let runner = {
            let (rank, read) = (rank.clone(), read.clone());
            thread::spawn(move || {
                let Some(_turn) = rank.turn.take() else { return };
                read.store(1, Ordering::Release); // a call is read
                rank.waiting.push(1); // and a call follows from it
            })
        };
        let ran = read.load(Ordering::Acquire) == 1;
        if ran && !rank.turn.is_taken() {
            assert!(!rank.waiting.is_empty(), "leaves beside what follows");
        }
        runner.join().unwrap();
    });
}
