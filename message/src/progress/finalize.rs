//! Finalize hooks: work besides messages that a leaving rank completes. The rank announces that it is leaving, runs
//! its hooks, and then is gone.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Condition, Deadline, WaitEvent, Worker};
use tasuki_core::node::node_state::RankStage;

/// An object whose unfinished work may outlive its owner, but not the owner's rank.
pub trait FinalizeHook: Send + Sync + Debug {
    /// Returns true if no work is unfinished at the moment.
    fn is_finalized(&self, worker: &Worker) -> bool;

    /// Tells other ranks what this one will not begin any more. Called before a rank with unfinished work announces that
    /// it is leaving: then it may still stay for long.
    fn will_leave(&self, _worker: &Worker) {}

    /// Announces to the other ranks involved that this rank leaves. These ranks need each other until all have
    /// announced it. Returns true when that is done; an error if it cannot be. Called again, in turn with other
    /// hooks, when [`FinalizeHook::next_event`] has happened.
    fn announce_finalize(&self, _worker: &Worker) -> Result<bool> {
        Ok(true)
    }

    /// Returns the event after which `announce_finalize` can continue.
    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        None
    }

    /// Waits until all work is done or cannot complete, and frees its memory. No new work begins afterwards.
    fn finalize(&self, worker: &Worker) -> Result<()>;
}

/// Messages to a rank that it may leave without having received.
pub(crate) trait UnreceivedMessages: Send + Sync + Debug {
    /// Returns the error of the rank that leaves, if there are any.
    fn unreceived(&self) -> Option<Cause>;
}

/// The hooks of a rank.
#[derive(Debug, Default)]
pub(crate) struct FinalizeHooks(Mutex<Vec<Arc<dyn FinalizeHook>>>);

impl FinalizeHooks {
    pub(crate) fn add(&self, worker: &Worker, hook: Arc<dyn FinalizeHook>) -> Result<()> {
        self.drop_finalized(worker)?;
        self.lock().push(hook);
        Ok(())
    }

    /// Finalizes and drops the hooks that nobody else holds and that are done.
    pub(crate) fn drop_finalized(&self, worker: &Worker) -> Result<()> {
        let all = std::mem::take(&mut *self.lock());
        let (held, free): (Vec<_>, Vec<_>) = all.into_iter().partition(|hook| Arc::strong_count(hook) > 1);
        self.lock().extend(held);
        for hook in free {
            if hook.is_finalized(worker) {
                hook.finalize(worker)?;
            } else {
                self.lock().push(hook);
            }
        }
        Ok(())
    }

    /// Drops all hooks, because the rank has failed.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all); // not under the lock
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<dyn FinalizeHook>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the work of a hook is unfinished at the moment.
    pub(crate) fn is_any_unfinished(&self, worker: &Worker) -> bool {
        let hooks = self.lock().clone();
        !hooks.iter().all(|hook| hook.is_finalized(worker)) // not under the lock: it calls the fabric
    }

    /// Tells all hooks that the rank is about to leave.
    pub(crate) fn will_leave(&self, worker: &Worker) {
        let hooks = self.lock().clone();
        hooks.iter().for_each(|hook| hook.will_leave(worker));
    }

    /// Runs all hooks.
    pub(crate) fn run(&self, worker: &Worker) -> Result<()> {
        let hooks = std::mem::take(&mut *self.lock());
        announce_finalize(worker, hooks.iter().collect());
        hooks.iter().map(|hook| hook.finalize(worker)).fold(Ok(()), Result::and)
    }
}

/// Announces all hooks together, step by step: each may wait for a rank that waits in another hook.
fn announce_finalize(worker: &Worker, mut leaves: Vec<&Arc<dyn FinalizeHook>>) {
    let call = || "leave(): plans of other ranks".to_string();
    loop {
        leaves.retain(|leave| matches!(leave.announce_finalize(worker), Ok(false)));
        let events: Vec<Arc<dyn WaitEvent>> = leaves.iter().filter_map(|leave| leave.next_event()).collect();
        if events.is_empty() {
            return;
        }
        let any = Condition::Event(Arc::new(AnyEvent(events)));
        if worker.wait(&any, Deadline::NEVER, &call).is_err() {
            // At least one of them waits for a rank that has gone and cannot complete.
            let cannot_complete = |event| worker.test(&Condition::Event(event), &call).is_err();
            leaves.retain(|leave| !leave.next_event().is_none_or(cannot_complete));
        }
    }
}

/// Waits until one of these events has happened.
#[derive(Debug)]
struct AnyEvent(Vec<Arc<dyn WaitEvent>>);

impl WaitEvent for AnyEvent {
    fn happened(&self) -> bool {
        self.0.iter().any(|event| event.happened())
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        self.0.first()?.impossible_after()
    }
}
