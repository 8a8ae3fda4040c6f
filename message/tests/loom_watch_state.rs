//! A model of the waker thread's life: each task that waits is served by the thread, or by another one that it starts.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use watch_state::WatchState;

#[allow(dead_code)] // starting a thread does not fail in a model
#[path = "../src/progress/watch_state.rs"]
mod watch_state;

/// The tasks that wait, and how many were served.
#[derive(Default)]
struct Rank {
    state: WatchState,
    waiting: Mutex<u64>,
    served: AtomicU64,
}

impl Rank {
    /// The thread: serves until no task waits.
    fn watch(&self) {
        loop {
            let changes = self.state.changes();
            let waiting = std::mem::take(&mut *self.waiting.lock().expect("no panic"));
            self.served.fetch_add(waiting, Ordering::Relaxed);
            // It would wait here. A task that has come since is a change.
            let is_idle = waiting == 0 && self.state.changes() == changes;
            if is_idle && self.state.end(|| *self.waiting.lock().expect("no panic") == 0) {
                return;
            }
        }
    }

    /// A task begins to wait.
    fn wait(rank: &Arc<Rank>) -> Option<thread::JoinHandle<()>> {
        *rank.waiting.lock().expect("no panic") += 1;
        rank.state.note_change();
        rank.state.must_start().then(|| {
            let rank = rank.clone();
            thread::spawn(move || rank.watch())
        })
    }
}

#[test]
fn loom_each_task_is_served() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let rank = Arc::new(Rank::default());
        let first = Rank::wait(&rank);
        let second = Rank::wait(&rank);
        first.into_iter().chain(second).for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(rank.served.load(Ordering::Relaxed), 2, "a task waits, and no thread runs");
    });
}
