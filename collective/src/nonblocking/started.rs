//! A nonblocking collective call that was begun, as its caller holds it.

use super::call_data::CallData;
use super::scheduled::{ScheduledCall, ScheduledCalls};
use super::task::{Task, lock, lost};
use crate::plan::registry::PlanRegistry;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use tasuki_core::base::sync::{AtomicBool, Ordering};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::scoped_wait_probe_about;

/// A nonblocking collective call. Dropping it does not end the call: the rank continues its steps while it waits in
/// other calls.
pub struct StartedCollective<R> {
    form: StartedForm<R>,
    /// What probes are asked about in waits for it.
    about: u32,
}

enum StartedForm<R> {
    Task {
        plans: Arc<PlanRegistry>,
        task: Arc<Task>,
        result: Arc<Mutex<Option<Result<R>>>>,
        name: Arc<str>,
    },
    Scheduled {
        calls: Arc<ScheduledCalls>,
        call: ScheduledCall,
        result: MakeResult<R>,
        /// True once the result was taken.
        is_taken: AtomicBool,
    },
}

/// Makes the result of a call from its [`CallData`].
type MakeResult<R> = Box<dyn Fn(Box<dyn Any>) -> Option<R> + Send + Sync>;

impl<R> fmt::Debug for StartedCollective<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartedCollective({})", self.name())
    }
}

impl<R> StartedCollective<R> {
    pub(super) fn by_task(
        plans: Arc<PlanRegistry>,
        task: Arc<Task>,
        result: Arc<Mutex<Option<Result<R>>>>,
        name: Arc<str>,
        about: u32,
    ) -> StartedCollective<R> {
        StartedCollective { form: StartedForm::Task { plans, task, result, name }, about }
    }

    /// A scheduled call. `result` makes its result.
    pub(super) fn scheduled<T: 'static>(
        calls: Arc<ScheduledCalls>,
        call: ScheduledCall,
        about: u32,
        result: impl Fn(CallData<T>) -> R + Send + Sync + 'static,
    ) -> StartedCollective<R> {
        // A closure that captures nothing, so the box allocates nothing.
        let result = move |data: Box<dyn Any>| data.downcast().ok().map(|data| result(*data));
        let is_taken = AtomicBool::new(false);
        let form = StartedForm::Scheduled { calls, call, result: Box::new(result), is_taken };
        StartedCollective { form, about }
    }

    fn plans(&self) -> &PlanRegistry {
        match &self.form {
            StartedForm::Task { plans, .. } => plans,
            StartedForm::Scheduled { calls, .. } => calls.plans(),
        }
    }

    fn name(&self) -> String {
        match &self.form {
            StartedForm::Task { name, .. } => name.to_string(),
            StartedForm::Scheduled { calls, call: (_, word), .. } => calls.name(*word),
        }
    }

    /// Ends the call if the communicator has failed. Returns true if it has.
    fn end_if_failed(&self) -> bool {
        let has_failed = self.plans().monitor.is_failed();
        if let StartedForm::Task { task, .. } = &self.form
            && has_failed
        {
            task.abandon();
        }
        has_failed // the monitor ends scheduled calls
    }

    /// Returns true if the call is complete on this member, or has failed. Makes progress, and never waits.
    pub fn test(&self) -> bool {
        self.plans().group.worker().progress();
        let has_failed = self.end_if_failed();
        match &self.form {
            StartedForm::Task { task, plans, .. } => {
                if !has_failed {
                    task.step();
                    if !task.is_over() && plans.monitor.is_look_due() {
                        task.end_if_mismatched();
                    }
                }
                task.is_over()
            }
            StartedForm::Scheduled { calls, call: (number, _), .. } => calls.test(*number),
        }
    }

    /// Returns true if this thread's calls have a time limit.
    #[inline]
    pub fn has_limit(&self) -> bool {
        self.plans().group.worker().has_limit()
    }

    /// Waits until the call is complete on this member, and returns its result. It can be called once.
    pub fn wait(&self) -> Result<R> {
        let _monitored = scoped_wait_probe_about(self.plans().monitor.probe(), self.about);
        let waited = match &self.form {
            StartedForm::Task { task, name, .. } => task.wait(&|| name.to_string()),
            StartedForm::Scheduled { calls, call, result, is_taken } => match calls.wait(*call) {
                Ok(Some(data)) => {
                    is_taken.store(true, Ordering::Relaxed);
                    return result(data.into_any()).ok_or_else(|| self.lost());
                }
                waited => waited.map(drop),
            },
        };
        // What this wait itself has found tells more than the record of it in the failed communicator.
        let has_found =
            |error: &Error| matches!(error.cause(), Cause::Mismatch { .. } | Cause::Disagree { .. });
        if !self.end_if_failed() || waited.as_ref().is_err_and(has_found) {
            waited?;
        }
        self.take()
    }

    /// Returns `Ready` if the call is complete on this member, or has failed; otherwise wakes `waker` when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<()> {
        self.end_if_failed();
        match &self.form {
            StartedForm::Task { task, .. } => task.poll_over(self.about, waker),
            StartedForm::Scheduled { calls, call, .. } => calls.poll(*call, self.about, waker),
        }
    }

    fn take(&self) -> Result<R> {
        let taken = match &self.form {
            StartedForm::Task { result, .. } => lock(result).take(),
            StartedForm::Scheduled { calls, call: (number, _), result, is_taken } => {
                is_taken.store(true, Ordering::Relaxed);
                match calls.take(*number) {
                    Some(Ok(data)) => result(data.into_any()).map(Ok),
                    Some(Err(error)) => Some(Err(error)),
                    None => None,
                }
            }
        };
        taken.unwrap_or_else(|| Err(self.lost()))
    }

    /// Returns the error that there is no result.
    #[cold]
    fn lost(&self) -> Error {
        let (plans, name) = (self.plans(), || self.name());
        match plans.monitor.check() {
            Ok(()) => lost(plans.group.messages(), &name),
            Err(cause) => plans.group.worker().fault(cause, name),
        }
    }
}

impl<R> Drop for StartedCollective<R> {
    fn drop(&mut self) {
        match &self.form {
            StartedForm::Task { task, .. } => task.forget_waker(),
            StartedForm::Scheduled { calls, call: (number, _), is_taken, .. } => {
                if !is_taken.load(Ordering::Relaxed) {
                    calls.drop_call(*number);
                }
            }
        }
    }
}
