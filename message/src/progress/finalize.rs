//! What a rank that leaves owes besides messages: it says that it is leaving, pays, and only then is gone.

use crate::progress::engine::ProgressEngine;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError};
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::node_state::Stage;
use tasuki_core::engine::{Condition, WaitEvent, Worker};

/// Something that goes on without its owner, but not without the owner's rank.
pub trait FinalizeHook: Send + Sync + Debug {
    /// Whether nothing is unfinished at the moment.
    fn is_finalized(&self, worker: &Worker) -> bool;

    /// Does its part in the leave of several ranks, which need each other until all have come so far. Whether that is
    /// done; an error: in vain. Asked again when it [goes on](FinalizeHook::next_event), in turn with others.
    fn announce_finalize(&self, _machine: &Worker) -> Result<bool> {
        Ok(true)
    }

    /// That there is something to do for a leave that is not done.
    fn next_event(&self) -> Option<Arc<dyn WaitEvent>> {
        None
    }

    /// Waits until what is unfinished has gone, or cannot go, and gives its memory back. Nothing new is begun after it.
    fn finalize(&self, worker: &Worker) -> Result<()>;
}

impl ProgressEngine {
    /// The rank pays that when it leaves. What nobody else holds any more, and is paid, is given back now.
    pub fn add_finalize_hook(&self, worker: &Worker, hook: Arc<dyn FinalizeHook>) -> Result<()> {
        let mut over = Vec::new();
        {
            let mut finalize_hooks = self.finalize_hooks.lock().unwrap_or_else(PoisonError::into_inner);
            let all = std::mem::take(&mut *finalize_hooks);
            let (held, free): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|hook| Arc::strong_count(hook) > 1);
            *finalize_hooks = held;
            finalize_hooks.push(hook);
            over.extend(free);
        }
        for hook in over {
            if hook.is_finalized(worker) {
                hook.finalize(worker)?;
            } else {
                self.finalize_hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
            }
        }
        Ok(())
    }

    /// Pays all.
    pub(crate) fn run_finalize_hooks(&self, worker: &Worker) -> Result<()> {
        let finalize_hooks =
            std::mem::take(&mut *self.finalize_hooks.lock().unwrap_or_else(PoisonError::into_inner));
        announce_finalize(worker, finalize_hooks.iter().collect());
        finalize_hooks.iter().map(|hook| hook.finalize(worker)).fold(Ok(()), Result::and)
    }
}

/// Does this rank's part in the leaves that it takes together with others, all of them at once: each may be held up by
/// a rank that is held up in another.
fn announce_finalize(worker: &Worker, mut leaves: Vec<&Arc<dyn FinalizeHook>>) {
    let call = || "leave(): plans of others".to_string();
    loop {
        leaves.retain(|leave| matches!(leave.announce_finalize(worker), Ok(false)));
        let events: Vec<Arc<dyn WaitEvent>> = leaves.iter().filter_map(|leave| leave.next_event()).collect();
        if events.is_empty() {
            return;
        }
        if worker.wait(&Condition::Event(Arc::new(AnyEvent(events))), None, &call).is_err() {
            // One at least is in vain: who is gone has not taken it.
            let cannot_complete = |event| worker.test(&Condition::Event(event), &call).is_err();
            leaves.retain(|leave| !leave.next_event().is_none_or(cannot_complete));
        }
    }
}

/// That one of these has happened.
#[derive(Debug)]
struct AnyEvent(Vec<Arc<dyn WaitEvent>>);

impl WaitEvent for AnyEvent {
    fn happened(&self) -> bool {
        self.0.iter().any(|event| event.happened())
    }

    fn impossible_after(&self) -> Option<(Rank, Stage)> {
        self.0.first()?.impossible_after()
    }
}
