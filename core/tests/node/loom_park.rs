//! Models of sleeping and waking: no wake-up is lost, in either wake mode.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::thread;
use tasuki_core::node::park::{ASLEEP, Epoch, ParkLine, WakeMode};

/// Begins a sleep: returns the epoch to sleep on, or `None` if it saw the signal.
fn begin_sleep(line: &ParkLine, signal: &AtomicU64, barrier: impl FnOnce()) -> Option<Epoch> {
    let epoch = line.begin_sleep(ASLEEP, barrier);
    if signal.load(Ordering::Relaxed) == 1 {
        line.end_sleep();
        return None;
    }
    Some(epoch)
}

#[test]
fn fence_mode_loses_no_wake_up() {
    loom::model(|| {
        let (line, signal) = (Arc::new(ParkLine::default()), Arc::new(AtomicU64::new(0)));
        let writer = {
            let (line, signal) = (line.clone(), signal.clone());
            thread::spawn(move || {
                signal.store(1, Ordering::Relaxed);
                line.needs_wake(WakeMode::Fence)
            })
        };
        let asleep = begin_sleep(&line, &signal, || ());
        writer.join().unwrap();
        assert!(asleep.is_none_or(|epoch| !line.keeps_asleep(epoch)), "the wake-up was lost");
    });
}

#[test]
fn one_of_two_writers_wakes_the_sleeper() {
    loom::model(|| {
        let (line, signals) =
            (Arc::new(ParkLine::default()), Arc::new([AtomicU64::new(0), AtomicU64::new(0)]));
        let writers: Vec<_> = (0..2)
            .map(|i| {
                let (line, signals) = (line.clone(), signals.clone());
                thread::spawn(move || {
                    signals[i].store(1, Ordering::Relaxed);
                    line.needs_wake(WakeMode::Fence)
                })
            })
            .collect();
        let epoch = line.begin_sleep(ASLEEP, || ());
        let seen = signals.iter().any(|signal| signal.load(Ordering::Relaxed) == 1);
        let woke =
            writers.into_iter().filter(|_| true).map(|w| w.join().unwrap()).filter(|&woke| woke).count();
        assert!(woke <= 1, "the futex is woken at most once for each sleep");
        assert!(seen || !line.keeps_asleep(epoch), "the wake-up was lost");
    });
}

/// The kernel's fence on the writer's processor, at the moments that matter: after the sleeper has
/// requested it and before the sleeper continues. A writer that has ended counts as fenced, like a
/// thread that does not run.
#[derive(Default)]
struct Membarrier {
    asked: AtomicBool,
    done: AtomicBool,
}

impl Membarrier {
    fn interrupt(&self) {
        if self.asked.load(Ordering::Acquire) && !self.done.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
            self.done.store(true, Ordering::Release);
        }
    }

    fn end(&self) {
        fence(Ordering::SeqCst);
        self.done.store(true, Ordering::Release);
    }

    fn execute(&self) {
        self.asked.store(true, Ordering::Release);
        while !self.done.load(Ordering::Acquire) {
            thread::yield_now();
        }
        fence(Ordering::SeqCst);
    }
}

#[test]
fn barrier_mode_loses_no_wake_up_of_a_deep_sleeper() {
    loom::model(|| {
        let (line, signal) = (Arc::new(ParkLine::default()), Arc::new(AtomicU64::new(0)));
        let barrier = Arc::new(Membarrier::default());
        let writer = {
            let (line, signal, barrier) = (line.clone(), signal.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.interrupt();
                signal.store(1, Ordering::Relaxed);
                barrier.interrupt();
                line.needs_wake(WakeMode::Membarrier);
                barrier.end();
            })
        };
        let asleep = begin_sleep(&line, &signal, || barrier.execute());
        writer.join().unwrap();
        assert!(asleep.is_none_or(|epoch| !line.keeps_asleep(epoch)), "the wake-up was lost");
    });
}
