//! The waker thread of a rank: it waits on behalf of all futures of messages and of collective calls, like any waiting call, and wakes their
//! tasks. It starts when a future is first pending, and ends when no task waits.

use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::node_state::RankStage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};

/// Starts the thread; if it runs already, has it wait for one more message.
pub(crate) fn start(worker: &Arc<Worker>, progress: &Arc<ProgressEngine>) -> Result<()> {
    if progress.has_waker_thread.swap(true, Ordering::SeqCst) {
        worker.wake_own_threads(); // it may sleep, and has to look at one more message
        return Ok(());
    }
    let (thread_worker, weak_progress) = (worker.clone(), Arc::downgrade(progress));
    // Steps of collective calls may run an operation of the program here. If it panics, tasks that await something else
    // still need the thread.
    let body = move || {
        while catch_unwind(AssertUnwindSafe(|| watch(&thread_worker, &weak_progress))).is_err() {}
    };
    let started = worker.platform().spawn(Box::new(body));
    match started {
        Ok(join) => {
            drop(join); // not joined: the thread ends by itself
            Ok(())
        }
        Err(error) => {
            progress.has_waker_thread.store(false, Ordering::SeqCst);
            Err(tasuki_core::base::Error::from_io("thread", &error))
        }
    }
}

/// After this time without an event, the thread looks whether awaited continuations can still be complete. Each look
/// without an event doubles the time to the next one: a thread that has slept stays awake for a while.
const LOOK_AFTER_NS: u64 = 10_000_000;
const LOOK_AFTER_NS_MAX: u64 = 1_000_000_000;

/// The body of the thread.
fn watch(worker: &Arc<Worker>, progress: &Weak<ProgressEngine>) {
    let Some(progress) = progress.upgrade() else { return };
    let mut look_after = LOOK_AFTER_NS;
    loop {
        let (watched, is_followed) = (progress.watched(), progress.continuations.are_awaited());
        let call = || awaited(&watched);
        if watched.is_empty() && !is_followed {
            progress.has_waker_thread.store(false, Ordering::SeqCst);
            // A task that came in between has found the flag set. This thread serves it, or the one that next sets the
            // flag.
            if progress.has_no_task() || progress.has_waker_thread.swap(true, Ordering::SeqCst) {
                return;
            }
            continue;
        }
        let event = WatchedOps {
            worker: worker.clone(),
            progress: progress.clone(),
            count: watched.len(),
            is_followed,
        };
        let now_ns = worker.platform().now_ns();
        let buffer_at = |operation: &Arc<MessageOp>| operation.buffer_at_ns().load(Ordering::Relaxed);
        let first = watched.iter().map(buffer_at).min().filter(|&at| at < u64::MAX);
        let look_at = if is_followed { Some(now_ns + look_after) } else { None };
        let next = first.into_iter().chain(look_at).min();
        let limit = next.map(|at| Duration::from_nanos(at.saturating_sub(now_ns)));
        let waited = worker.wait(&Condition::Event(Arc::new(event)), limit, &call);
        if is_followed && waited.is_err() {
            progress.continuations.end_impossible();
            look_after = LOOK_AFTER_NS_MAX.min(2 * look_after);
        } else {
            look_after = LOOK_AFTER_NS;
        }
        let over = waited.is_err_and(|error| !error.is_timeout());
        let now_ns = worker.platform().now_ns();
        for operation in &watched {
            if over || operation.cannot_finish(worker) || buffer_at(operation) <= now_ns {
                operation.wake();
            }
        }
        worker.progress();
    }
}

/// Describes what the tasks wait for: `await(irecv(slot 3 from rank 1) and 2 more)`. Messages of
/// one call of the program are listed once.
fn awaited(messages: &[Arc<MessageOp>]) -> String {
    let mut calls: Vec<String> = messages.iter().map(|message| message.call()).collect();
    calls.sort();
    calls.dedup();
    match &calls[..] {
        [] => "await".into(),
        [one] => format!("await({one})"),
        [first, others @ ..] => format!("await({first} and {} more)", others.len()),
    }
}

/// Waits until something has happened to one of the messages.
#[derive(Debug)]
struct WatchedOps {
    worker: Arc<Worker>,
    progress: Arc<ProgressEngine>,
    count: usize,
    /// True if a task awaits a continuation.
    is_followed: bool,
}

impl WaitEvent for WatchedOps {
    fn happened(&self) -> bool {
        let watched = self.progress.watched();
        let concerns =
            |operation: &Arc<MessageOp>| operation.happened() || operation.cannot_finish(&self.worker);
        let is_followed = self.progress.continuations.are_awaited();
        (watched.len(), is_followed) != (self.count, self.is_followed) || watched.iter().any(concerns)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }
}
