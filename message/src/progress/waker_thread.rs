//! The waker thread of a rank: it waits on behalf of all requests that tasks await, like any waiting call, and wakes
//! their tasks. It also waits for the receives of buffered messages, whose senders compute meanwhile. It starts when a
//! request is first pending or a message is buffered, and ends when it has waited for nothing for a while. If the rank
//! has handlers or queues, or was told to serve in the background, it stays until the rank leaves.

use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::base::sync::Ordering;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::{Condition, Deadline, WaitEvent, Worker, describe_awaited};
use tasuki_core::node::node_state::RankStage;

/// Starts the thread; if it runs already, has it look at what it waits for again.
pub(crate) fn start(worker: &Arc<Worker>, progress: &Arc<ProgressEngine>) -> Result<()> {
    if !progress.watch_state.must_start() {
        worker.wake_own_threads(); // it may sleep, and has to look at one more message or condition
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
            progress.watch_state.not_started();
            Err(tasuki_core::base::Error::from_io("thread", &error))
        }
    }
}

/// After this time without an event, the thread looks whether awaited continuations can still be complete. Each look
/// without an event doubles the time to the next one: a thread that has slept stays awake for a while.
const LOOK_AFTER_NS: u64 = 10_000_000;
const LOOK_AFTER_NS_MAX: u64 = 1_000_000_000;
/// How long the thread stays after the last task has stopped waiting: the next task then finds it, awake for the first
/// milliseconds, instead of starting another one, which takes some 30 us. It sleeps most of this time.
const STAY_NS: u64 = 100_000_000;

/// The body of the thread.
fn watch(worker: &Arc<Worker>, progress: &Weak<ProgressEngine>) {
    let Some(progress) = progress.upgrade() else { return };
    let (mut look_after, mut idle_since) = (LOOK_AFTER_NS, None);
    loop {
        let changes = progress.watch_state.changes(); // before the look at what tasks wait for
        let (watched, is_followed) = (progress.watched(), progress.continuations.are_awaited());
        let now_ns = worker.platform().now_ns();
        let has_task = !watched.is_empty() || is_followed || !progress.awaited.is_empty();
        // A wait steps buffered messages, and looks for their receives before it sleeps. So they need not be watched.
        let is_buffering = progress.awaits_receives(worker);
        let is_idle = !has_task && !is_buffering;
        let idle_until = if is_idle { Some(*idle_since.get_or_insert(now_ns) + STAY_NS) } else { None };
        let stays = || worker.check().is_ok() && (progress.serves(worker) || idle_until > Some(now_ns));
        if is_idle && !stays() {
            if progress.watch_state.end(|| progress.has_no_task(worker)) {
                return;
            }
            continue;
        }
        if !is_idle {
            idle_since = None;
        }
        let call = || awaited(&watched, &progress);
        let event = WatchedOps {
            worker: worker.clone(),
            progress: progress.clone(),
            watched: watched.clone(),
            has_task,
            is_buffering,
            changes,
        };
        let buffer_at = |operation: &Arc<MessageOp>| operation.buffer_at_ns().load(Ordering::Relaxed);
        let first = watched.iter().map(buffer_at).min().filter(|&at| at < u64::MAX);
        let look_at = if is_followed { Some(now_ns + look_after) } else { None };
        let due = Some(progress.awaited.first_due_ns()).filter(|&at| at < u64::MAX);
        let end = idle_until.filter(|_| !progress.serves(worker));
        let next = [first, look_at, due, end].into_iter().flatten().min();
        let after = |at: u64| worker.deadline_after(Duration::from_nanos(at.saturating_sub(now_ns)));
        let deadline = next.map_or(Deadline::NEVER, after);
        let waited = worker.wait(&Condition::Event(Arc::new(event)), deadline, &call);
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
        progress.wake_all(progress.awaited.take_due(now_ns, over));
        worker.progress();
    }
}

/// Describes what the tasks wait for.
fn awaited(messages: &[Arc<MessageOp>], progress: &ProgressEngine) -> String {
    let messages = messages.iter().map(|message| message.call());
    describe_awaited(messages.chain(progress.awaited.calls()).collect())
}

/// Waits until something has happened to one of the messages or conditions, or a task waits for another one.
#[derive(Debug)]
struct WatchedOps {
    worker: Arc<Worker>,
    progress: Arc<ProgressEngine>,
    watched: Vec<Arc<MessageOp>>,
    /// True if a task waits for something.
    has_task: bool,
    /// True if the thread waits for the receives of buffered messages.
    is_buffering: bool,
    /// The number of changes before the thread looked at what tasks wait for.
    changes: u64,
}

impl WaitEvent for WatchedOps {
    fn happened(&self) -> bool {
        let concerns =
            |operation: &Arc<MessageOp>| operation.happened() || operation.cannot_finish(&self.worker);
        self.progress.watch_state.changes() != self.changes
            || self.watched.iter().any(concerns)
            || self.progress.awaited.any_decided(&self.worker)
            || self.is_buffering && !self.progress.awaits_receives(&self.worker)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }

    fn is_reported(&self) -> bool {
        self.has_task
    }
}
