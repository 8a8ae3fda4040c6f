//! Models of the waiting threads of one rank: none sleeps on though its condition is met or there is no parker.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use tasuki_core::node::park::{ASLEEP, ParkLine, WakeMode};
use tasuki_core::node::waiters::{WaiterRole, Waiters};

struct Rank {
    line: ParkLine,
    waiters: Waiters<usize>,
    signals: [AtomicU64; 2],
}

/// How a thread's one sleep ended, or where it still sleeps.
enum Sleep {
    Over,
    OnLine(tasuki_core::node::park::Epoch),
    OnWord(Arc<tasuki_core::node::waiters::Waiter<usize>>),
}

impl Rank {
    fn met(&self, signal: &usize) -> bool {
        self.signals[*signal].load(Ordering::Relaxed) == 1
    }

    /// One sleep of a thread that waits for `signal`. If the thread would really sleep, the caller
    /// checks afterwards whether another thread would have woken it.
    fn sleep(&self, signal: usize) -> Sleep {
        match self.waiters.enter(signal) {
            WaiterRole::Follower(waiter) => {
                let asleep = !self.met(&signal) && waiter.word().load(Ordering::Acquire) == 0;
                if asleep {
                    return Sleep::OnWord(waiter);
                }
                self.waiters.leave(&waiter, |other| self.met(other), |_| ());
                Sleep::Over
            }
            WaiterRole::Parker(waiter) => {
                let epoch = self.line.begin_sleep(ASLEEP, || ());
                if !self.waiters.any(|other| self.met(other)) {
                    return Sleep::OnLine(epoch);
                }
                self.line.end_sleep();
                self.waiters.leave_as_parker(&waiter, |other| self.met(other), |_| ());
                Sleep::Over
            }
        }
    }
}

#[test]
fn the_signal_of_a_follower_is_not_lost() {
    loom::model(|| {
        let rank = Arc::new(Rank {
            line: ParkLine::default(),
            waiters: Waiters::default(),
            signals: [AtomicU64::new(0), AtomicU64::new(0)],
        });
        let other = {
            let rank = rank.clone();
            thread::spawn(move || rank.sleep(1))
        };
        let writer = {
            let rank = rank.clone();
            thread::spawn(move || {
                rank.signals[1].store(1, Ordering::Relaxed);
                rank.line.needs_wake(WakeMode::Fence)
            })
        };
        let ours = rank.sleep(0);
        let theirs = other.join().unwrap();
        writer.join().unwrap();
        fence(Ordering::SeqCst);
        let line_sleeps =
            |sleep: &Sleep| matches!(sleep, Sleep::OnLine(epoch) if rank.line.keeps_asleep(*epoch));
        let parker_sleeps = line_sleeps(&ours) || line_sleeps(&theirs);
        match &theirs {
            Sleep::Over => {}
            Sleep::OnLine(epoch) => {
                assert!(!rank.line.keeps_asleep(*epoch), "the parker missed its own signal")
            }
            // It was not woken: then a parker must be awake, which will check its signal before it ends.
            Sleep::OnWord(waiter) => {
                let woken = waiter.word().load(Ordering::Acquire) == 1;
                let parker_is_up = !parker_sleeps && !matches!(ours, Sleep::Over);
                assert!(woken || parker_is_up, "a follower sleeps on though its signal was raised");
            }
        }
    });
}

#[test]
fn the_parker_role_is_handed_on() {
    loom::model(|| {
        let rank = Arc::new(Rank {
            line: ParkLine::default(),
            waiters: Waiters::default(),
            signals: [AtomicU64::new(1), AtomicU64::new(0)],
        });
        let other = {
            let rank = rank.clone();
            thread::spawn(move || rank.sleep(1))
        };
        let ours = rank.sleep(0); // its condition is met, so it does not sleep on
        let theirs = other.join().unwrap();
        if let (Sleep::Over, Sleep::OnWord(waiter)) = (&ours, &theirs) {
            assert_eq!(
                waiter.word().load(Ordering::Acquire),
                1,
                "there is no parker, and no follower was woken"
            );
        }
    });
}
