//! Futures that wait for messages: one thread of the rank waits for all of them, as any waiting call does, and wakes
//! their tasks. It is started when a task first finds nothing, and ends when nobody waits.

use crate::progress::engine::ProgressEngine;
use crate::progress::operation::MessageOp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};

/// Whether the thread runs.
#[derive(Debug, Default)]
pub(crate) struct WakerThread {
    runs: AtomicBool,
}

/// Makes sure that the thread runs, or waits for one more message.
pub(crate) fn start(worker: &Arc<Worker>, progress: &Arc<ProgressEngine>) -> Result<()> {
    if progress.waker_thread.runs.swap(true, Ordering::SeqCst) {
        worker.stir(); // it may sleep: one more message concerns it now
        return Ok(());
    }
    let (machine_there, pump_there) = (worker.clone(), Arc::downgrade(progress));
    let started = worker.platform().spawn(Box::new(move || watch(&machine_there, &pump_there)));
    match started {
        Ok(join) => {
            drop(join); // nobody waits for it: it ends by itself
            Ok(())
        }
        Err(error) => {
            progress.waker_thread.runs.store(false, Ordering::SeqCst);
            Err(tasuki_core::base::Error::from_io("thread", &error))
        }
    }
}

/// The life of the thread.
fn watch(worker: &Arc<Worker>, progress: &Weak<ProgressEngine>) {
    let Some(progress) = progress.upgrade() else { return };
    loop {
        let watched = progress.watched();
        let call = || awaited(&watched);
        if watched.is_empty() {
            progress.waker_thread.runs.store(false, Ordering::SeqCst);
            // Whoever came between has found it running: it is for this thread, or for the one that swaps first.
            if progress.watched().is_empty() || progress.waker_thread.runs.swap(true, Ordering::SeqCst) {
                return;
            }
            continue;
        }
        let event = WatchedOps { worker: worker.clone(), progress: progress.clone(), known: watched.len() };
        let now_ns = worker.platform().now_ns();
        let spool_at = |operation: &Arc<MessageOp>| operation.buffer_at_ns().load(Ordering::Relaxed);
        let first = watched.iter().map(spool_at).min().filter(|&at| at < u64::MAX);
        let limit = first.map(|at| Duration::from_nanos(at.saturating_sub(now_ns)));
        let waited = worker.wait(&Condition::Event(Arc::new(event)), limit, &call);
        let over = waited.is_err_and(|error| !error.is_timeout());
        let now_ns = worker.platform().now_ns();
        for operation in &watched {
            if over || operation.is_hopeless(worker) || spool_at(operation) <= now_ns {
                operation.wake();
            }
        }
        worker.progress();
    }
}

/// `await(irecv(slot 3 from rank 1) and 2 more)`: what tasks wait for. A larger call awaits several messages.
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

/// That something happened to one of the messages.
#[derive(Debug)]
struct WatchedOps {
    worker: Arc<Worker>,
    progress: Arc<ProgressEngine>,
    known: usize,
}

impl WaitEvent for WatchedOps {
    fn happened(&self) -> bool {
        let watched = self.progress.watched();
        let concerns =
            |operation: &Arc<MessageOp>| operation.happened() || operation.is_hopeless(&self.worker);
        watched.len() != self.known || watched.iter().any(concerns)
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        None
    }
}
