//! What a request keeps of the condition for which a task awaits it.

use crate::engine::wait::block_on::wait_in_call;
use crate::engine::wait::condition::Awaited;
use crate::engine::worker::Worker;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// What a request keeps while a task awaits its condition. When it is dropped, nothing wakes the task any more.
#[derive(Default)]
pub struct AwaitedCondition {
    /// Where the condition is registered, and its number there.
    entry: Option<(Arc<Worker>, u64)>,
}

impl AwaitedCondition {
    /// Lets `waker` be woken when the condition is met or can no longer be met. Replaces the condition that was set
    /// before. If this thread runs the task by [`block_on`](super::block_on::block_on), the thread itself waits for
    /// the condition and nothing is registered.
    pub fn set(&mut self, worker: &Arc<Worker>, awaited: Awaited, waker: &Waker) {
        self.clear();
        if let Some(awaited) = wait_in_call(waker, worker, awaited)
            && let Some(number) = worker.wake_when(awaited, waker)
        {
            self.entry = Some((worker.clone(), number));
        }
    }

    /// Lets nobody be woken.
    pub fn clear(&mut self) {
        // In a forked child, the lock of the list may be held for ever by a thread that only the parent has.
        if let Some((worker, number)) = self.entry.take()
            && !worker.fork_guard().is_forked()
        {
            worker.forget_awaited(number);
        }
    }
}

impl Drop for AwaitedCondition {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A copy of a request is awaited by nobody.
impl Clone for AwaitedCondition {
    fn clone(&self) -> AwaitedCondition {
        AwaitedCondition::default()
    }
}

impl fmt::Debug for AwaitedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AwaitedCondition").field(&self.entry.as_ref().map(|(_, number)| number)).finish()
    }
}
