//! The steps of a nonblocking collective call, as a future. A message of the call wakes it. A call of the rank that
//! makes progress on messages runs the woken futures afterwards, at the point where it also wakes tasks of the program.

use crate::current_call::CallWord;
use crate::failure::call_log::CallLog;
use crate::failure::monitor::EndsWithCommunicator;
use crate::plan::registry::PlanRegistry;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{self, Poll, Wake, Waker};
use tasuki_core::base::sync::{AtomicBool, Ordering};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{Condition, WaitEvent, Worker, wait_in_call, waits_in_call};
use tasuki_core::node::node_state::RankStage;
use tasuki_message::{Context, Continuation, FinalizeHook, MessageOp};

/// The steps of a call.
type StepsFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The message that a call waits for now.
pub(super) type Awaited = Arc<Mutex<Option<Arc<MessageOp>>>>;

/// A nonblocking collective call.
pub(crate) struct Task {
    context: Arc<Context>,
    active_calls: Arc<ActiveCalls>,
    plans: Arc<PlanRegistry>,
    word: CallWord,
    /// None while a thread runs the steps, and when they are complete. The lock is released while they run, because
    /// they call code of the program.
    steps: Mutex<Option<StepsFuture>>,
    /// True if the task was woken since a thread began to run the steps.
    is_woken: AtomicBool,
    is_over: AtomicBool,
    /// True if the communicator has failed. Then the thread that runs the steps ends the call.
    is_abandoned: AtomicBool,
    awaited: Awaited,
    /// The waker to wake when the call is complete.
    waker: Mutex<Option<Waker>>,
    /// True if the waker thread also looks whether the call can be complete, or need not do so any more.
    is_followed: AtomicBool,
}

/// The nonblocking calls of a rank.
#[derive(Debug, Default)]
pub(crate) struct ActiveCalls {
    /// The calls that were woken.
    ready: Mutex<VecDeque<Arc<Task>>>,
    /// True while a thread runs the woken calls. A step that wakes another call must not run it before it returns
    /// itself.
    is_running: AtomicBool,
    /// All calls that may not be complete.
    unfinished: Mutex<Vec<Weak<Task>>>,
}

impl Task {
    /// Makes a call, named by `word`, whose steps have not run yet. The steps store the message that they wait for in
    /// `awaited`.
    pub(super) fn new(
        context: &Arc<Context>,
        active_calls: &Arc<ActiveCalls>,
        (plans, word): (&Arc<PlanRegistry>, CallWord),
        awaited: Awaited,
        steps: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Task> {
        let task = Arc::new(Task {
            context: context.clone(),
            active_calls: active_calls.clone(),
            plans: plans.clone(),
            word,
            steps: Mutex::new(Some(Box::pin(steps))),
            is_woken: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            awaited,
            waker: Mutex::default(),
            is_followed: AtomicBool::new(false),
        });
        let mut unfinished = lock(&active_calls.unfinished);
        unfinished.retain(|task| task.strong_count() > 0);
        unfinished.push(Arc::downgrade(&task));
        drop(unfinished);
        task
    }

    /// Returns true if the call is complete or has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) // SYNC call-over
    }

    /// Runs the steps as far as possible, and never waits. If another thread is running them, that thread will run them
    /// once more.
    pub(super) fn step(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        loop {
            let Some(steps) = lock(&self.steps).take() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            *lock(&self.awaited) = None;
            if !self.poll(steps) || !self.is_woken.load(Ordering::SeqCst) {
                break;
            }
        }
        // The call must get progress on what its steps wait for now, whether another thread of the rank waits for the
        // call or no thread of the program does.
        self.context.worker().wake_own_threads();
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker
            && !self.is_over()
            && self.context.worker().platform().lets_threads_sleep()
        {
            self.context.ensure_progress(&waker);
        }
    }

    /// Polls the steps. Returns true if they are not complete.
    fn poll(self: &Arc<Self>, mut steps: StepsFuture) -> bool {
        // The guard also ends the call if the program's operation panics, so that no thread waits for it for ever.
        let ending = TaskEndGuard(self);
        let waker = Waker::from(self.clone());
        let polled = steps.as_mut().poll(&mut task::Context::from_waker(&waker));
        if polled.is_pending() {
            std::mem::forget(ending);
            *lock(&self.steps) = Some(steps);
            if self.is_abandoned.load(Ordering::SeqCst) {
                self.end_abandoned();
            }
            return true;
        }
        drop(steps);
        false
    }

    /// Ends the call without a result, because the communicator has failed. If a thread runs the steps, that thread
    /// ends it.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.is_abandoned.store(true, Ordering::SeqCst);
        self.end_abandoned();
    }

    fn end_abandoned(self: &Arc<Self>) {
        let steps = lock(&self.steps).take();
        if steps.is_some() {
            drop(steps);
            drop(TaskEndGuard(self));
        }
    }

    /// Returns when the call is complete.
    pub(super) fn wait(self: &Arc<Self>, call: &dyn Fn() -> String) -> Result<()> {
        let mut waited: Result<()> = Ok(());
        loop {
            self.step();
            if self.is_over() {
                return Ok(());
            }
            if let Err(error) = waited {
                if !error.is_timeout() {
                    self.plans.monitor.report(self.context.worker(), self.word, error.cause());
                }
                return Err(error);
            }
            let condition = Condition::Event(Arc::new(TaskDone(self.clone())));
            waited = self.context.worker().wait(&condition, self.context.worker().call_deadline(), call);
        }
    }

    /// Returns `Ready` if the call is complete or has failed; otherwise `waker` is woken when it is.
    /// `about` is what the probe is asked about meanwhile.
    pub(super) fn poll_over(self: &Arc<Self>, about: u32, waker: &Waker) -> Poll<()> {
        let worker = self.context.worker();
        worker.progress();
        // A thread that waits in a call looks itself, and may stop waiting. A waker that stayed behind would keep the
        // waker thread running.
        let looks_itself = waits_in_call(waker, worker);
        let kept = (!looks_itself).then(|| waker.clone());
        let before = std::mem::replace(&mut *lock(&self.waker), kept); // before the check, as for a message
        drop(before);
        self.step();
        if self.is_over() {
            return Poll::Ready(());
        }
        if !looks_itself {
            // Among more than two members, some member waits for a message that shows the difference.
            let may_miss = self.plans.group.size() == 2 && self.plans.monitor.log().is_some();
            if may_miss && !self.is_followed.swap(true, Ordering::AcqRel) {
                self.context.progress().add_continuation(self.clone());
                if self.is_over() {
                    self.context.progress().remove_continuation(&**self); // it ended just before
                    return Poll::Ready(());
                }
            }
            self.context.ensure_progress(waker);
            return Poll::Pending;
        }
        if self.plans.monitor.is_poll_to_look(worker) {
            self.end_if_mismatched();
        }
        if self.is_over() {
            return Poll::Ready(());
        }
        let done = Condition::Event(Arc::new(TaskDone(self.clone())));
        wait_in_call(waker, worker, self.plans.monitor.awaited(worker, done, about));
        Poll::Pending
    }

    /// Makes the communicator fail if the members are in different calls. If both of two members are the root, neither
    /// waits for the other, so no wait finds it.
    pub(super) fn end_if_mismatched(&self) {
        let monitor = &self.plans.monitor;
        if let Some(cause) = monitor.log().and_then(CallLog::find_mismatch) {
            monitor.report(self.plans.group.worker(), self.word, &cause);
        }
    }

    /// Forgets the waker, because nobody polls the call any more.
    pub(super) fn forget_waker(&self) {
        let waker = lock(&self.waker).take();
        drop(waker); // after the lock is released: dropping it runs code of the program
    }
}

impl EndsWithCommunicator for Task {
    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn abandon(self: Arc<Self>) {
        Task::abandon(&self);
    }
}

/// The waker thread follows a call that a task awaits. Its messages make the progress.
impl Continuation for Task {
    fn can_resume(&self) -> bool {
        false
    }

    fn is_under_way(&self) -> bool {
        false
    }

    fn end_if_impossible(&self) {
        if self.is_awaited() {
            self.end_if_mismatched();
        }
    }

    fn is_awaited(&self) -> bool {
        !self.is_over() && lock(&self.waker).is_some()
    }

    fn resume(&self) {}
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let active_calls = self.active_calls.clone();
        lock(&active_calls.ready).push_back(self);
        active_calls.run();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// Marks a call as complete when it is dropped.
struct TaskEndGuard<'t>(&'t Arc<Task>);

impl Drop for TaskEndGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.awaited) = None;
        self.0.is_over.store(true, Ordering::Release); // SYNC call-over
        let waker = lock(&self.0.waker).take();
        // Set too, so that a task that polls the call does not make the waker thread follow it from now on.
        if self.0.is_followed.swap(true, Ordering::AcqRel) {
            self.0.context.progress().remove_continuation(&**self.0);
        }
        waker.into_iter().for_each(Waker::wake);
        self.0.context.worker().wake_own_threads();
    }
}

impl ActiveCalls {
    /// Runs the woken calls, unless another thread is doing so.
    fn run(&self) {
        while !lock(&self.ready).is_empty() {
            if self.is_running.swap(true, Ordering::SeqCst) {
                return; // that thread checks the list again after it has cleared the flag
            }
            let running = TaskRunGuard(&self.is_running);
            let mut panic = None;
            while let Some(task) = { lock(&self.ready).pop_front() } {
                // The operation of one call panics: the others still have to go on, since they are not woken again.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task.step())) {
                    panic.get_or_insert(payload);
                }
            }
            drop(running);
            if let Some(payload) = panic {
                resume_unwind(payload);
            }
        }
    }
}

/// Clears the flag of a thread that runs calls, also when it panics.
struct TaskRunGuard<'g>(&'g AtomicBool);

impl Drop for TaskRunGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl FinalizeHook for ActiveCalls {
    fn is_finalized(&self, _worker: &Worker) -> bool {
        true
    }

    /// Ends the calls that are not complete when the rank leaves: other members get the error that the rank has left.
    fn finalize(&self, _worker: &Worker) -> Result<()> {
        let unfinished = std::mem::take(&mut *lock(&self.unfinished));
        for task in unfinished.iter().filter_map(Weak::upgrade) {
            task.end_abandoned();
        }
        Ok(())
    }
}

/// Makes the communicator fail if the call fails.
pub(super) struct FailingCall {
    plans: Arc<PlanRegistry>,
    call: CallWord,
}

impl FailingCall {
    pub(super) fn new(plans: Arc<PlanRegistry>, call: CallWord) -> FailingCall {
        FailingCall { plans, call }
    }

    pub(super) fn end(&self, failure: Option<Cause>) {
        if let Some(cause) = failure {
            self.plans.monitor.report(self.plans.group.worker(), self.call, &cause);
        }
    }
}

impl Drop for FailingCall {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.plans.monitor.report_panic(self.plans.group.worker(), self.call);
        }
    }
}

/// The event that a call is complete or can go on.
#[derive(Debug)]
struct TaskDone(Arc<Task>);

impl WaitEvent for TaskDone {
    fn happened(&self) -> bool {
        let awaited = lock(&self.0.awaited).clone();
        let worker = self.0.context.worker();
        awaited.is_some_and(|message| message.happened() || message.cannot_finish(worker)) || self.0.is_over()
    }

    fn call(&self) -> String {
        self.0.plans.monitor.text_of(self.0.word)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None // the step that waits for a member that has left fails by itself
    }
}

/// Returns the error of a call that ended without a result.
#[cold]
pub(super) fn lost(context: &Context, call: &dyn Fn() -> String) -> Error {
    // After a failure or a panic the communicator has failed, which the caller has checked.
    let cause = context.worker().check().err().unwrap_or(Cause::AlreadyReturned { what: "the result" });
    context.worker().fault(cause, call)
}

/// Locks a mutex that is held only for a moment.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
