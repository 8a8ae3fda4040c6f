//! The nonblocking calls of a communicator: their numbers and slots, and the tasks of those that use messages.

use crate::cached::kind_cache::KindCache;
use crate::current_call::CallWord;
use crate::failure::monitor::EndsWithCommunicator;
use crate::nonblocking::channel::{CallChannel, SLOTS};
use crate::nonblocking::scheduled::{ScheduledCall, ScheduledCalls};
use crate::nonblocking::task::{ActiveCalls, FailingCall, Task, lock};
use crate::plan::registry::PlanRegistry;
use std::sync::{Arc, Mutex, Weak};
use tasuki_core::base::Result;
use tasuki_message::{CallNames, Context};

/// The nonblocking calls of this member on a communicator.
#[derive(Debug)]
pub(crate) struct Nonblocking {
    pub(super) context: Arc<Context>,
    pub(super) active_calls: Arc<ActiveCalls>,
    pub(super) calls: Arc<CallTable>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Number of calls so far.
    pub(super) number: u64,
    /// The last call on each slot that uses messages.
    pub(super) last: Vec<Option<BegunCall>>,
    /// The kinds of calls that run compiled steps.
    pub(super) scheduled: KindCache<Arc<ScheduledCalls>>,
}

/// A call that was begun and may use messages.
#[derive(Clone, Debug)]
pub(super) enum BegunCall {
    Task(Arc<Task>, Arc<str>),
    Scheduled(Arc<ScheduledCalls>, ScheduledCall),
}

impl BegunCall {
    pub(super) fn is_over(&self) -> bool {
        match self {
            BegunCall::Task(task, _) => task.is_over(),
            BegunCall::Scheduled(calls, (number, _)) => calls.is_over(*number),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            BegunCall::Task(_, name) => name.to_string(),
            BegunCall::Scheduled(calls, (_, word)) => calls.name(*word),
        }
    }
}

impl Calls {
    /// Returns the slot of the next call. None: the last call on the slot is not over.
    pub(super) fn next(&self) -> Option<u32> {
        let slot = (self.number % u64::from(SLOTS)) as u32;
        let last = self.last.get(slot as usize).and_then(Option::as_ref);
        last.is_none_or(BegunCall::is_over).then_some(slot)
    }

    pub(super) fn enter(&mut self, call: Option<BegunCall>) {
        self.last.resize(SLOTS as usize, None);
        self.last[(self.number % u64::from(SLOTS)) as usize] = call;
        self.number += 1;
    }
}

/// The calls under way, from which a wait in a step of one reads its name.
#[derive(Debug, Default)]
pub(super) struct CallTable(pub(super) Mutex<Calls>);

impl CallNames for CallTable {
    fn call_on(&self, slot: u32) -> Option<String> {
        let calls = lock(&self.0);
        calls.last.get(slot as usize)?.as_ref().map(BegunCall::name)
    }
}

impl Nonblocking {
    /// Makes the state. `context` makes the context of the messages, which reads the names of calls from its argument.
    pub(crate) fn new(
        active_calls: Arc<ActiveCalls>,
        context: impl FnOnce(Weak<dyn CallNames>) -> Context,
    ) -> Nonblocking {
        let calls: Arc<CallTable> = Arc::default();
        let names: Weak<CallTable> = Arc::downgrade(&calls);
        Nonblocking { context: Arc::new(context(names)), active_calls, calls }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

/// Makes the tasks of a communicator's calls.
#[derive(Clone)]
pub(super) struct TaskMaker {
    pub(super) context: Arc<Context>,
    pub(super) active_calls: Arc<ActiveCalls>,
    pub(super) plans: Arc<PlanRegistry>,
}

impl TaskMaker {
    /// Makes a task that runs `steps` with the messages of a slot, which begin with `header`, and passes the outcome to
    /// `done`.
    pub(super) fn make<R: Send + 'static, F: Future<Output = Result<R>> + Send + 'static>(
        &self,
        slot: u32,
        (word, header): (CallWord, u64),
        name: Arc<str>,
        steps: impl FnOnce(Arc<CallChannel>) -> F,
        done: impl FnOnce(Result<R>) + Send + 'static,
    ) -> Arc<Task> {
        let awaited = Arc::default();
        let place = self.plans.group.place().index();
        let channel = Arc::new(CallChannel::new(&self.context, slot, header, Arc::clone(&awaited), place));
        let steps = steps(channel.clone());
        let (of_call, monitor) = (self.context.clone(), self.plans.monitor.clone());
        let failing = FailingCall::new(self.plans.clone(), word);
        let steps = async move {
            let outcome = match steps.await {
                Ok(result) => channel.flush().await.map(|()| result),
                Err(error) => Err(error),
            };
            let outcome = outcome.map_err(|error| {
                let error = error.in_outer_call(name.to_string());
                monitor.explain(error, of_call.worker(), &|| name.to_string())
            });
            let failure = outcome.as_ref().err().map(|error| error.cause().clone());
            done(outcome);
            failing.end(failure); // last: it ends all calls, and this one has its own error by now
        };
        let task = Task::new(&self.context, &self.active_calls, (&self.plans, word), awaited, steps);
        let as_dyn: Arc<dyn EndsWithCommunicator> = task.clone();
        self.plans.monitor.add_call(&as_dyn);
        task
    }
}
