//! Conditions that tasks await, and what a request keeps of the one that it is awaited for.

use crate::engine::wait::block_on::wait_in_call;
use crate::engine::wait::condition::Condition;
use crate::engine::worker::Worker;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A condition that a task awaits.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The condition. The task is woken when it is met or can no longer be met.
    pub condition: Condition,
    /// When to wake the task although nothing has happened, in ns of the platform's clock; `u64::MAX`: never.
    pub again_at_ns: u64,
}

impl Awaited {
    /// A condition for which nothing but the condition itself wakes the task.
    pub fn only(condition: Condition) -> Awaited {
        Awaited { condition, again_at_ns: u64::MAX }
    }
}

/// Describes several awaited calls: `await(irecv(slot 3 from rank 1) and 2 more)`. A call that is named twice counts
/// once.
pub fn describe_awaited(mut calls: Vec<String>) -> String {
    calls.sort();
    calls.dedup();
    match &calls[..] {
        [] => "await".into(),
        [one] => format!("await({one})"),
        [first, others @ ..] => format!("await({first} and {} more)", others.len()),
    }
}

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
        if let Some((worker, number)) = self.entry.take() {
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

#[cfg(test)]
mod tests {
    use super::describe_awaited;

    #[test]
    fn equal_calls_are_named_once() {
        let texts = |calls: &[&str]| describe_awaited(calls.iter().map(|call| call.to_string()).collect());
        assert_eq!(texts(&[]), "await");
        assert_eq!(texts(&["b", "b"]), "await(b)");
        assert_eq!(texts(&["c", "b", "a", "b"]), "await(a and 2 more)");
    }
}
