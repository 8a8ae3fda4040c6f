//! Nonblocking calls of one kind that run compiled steps.
//!
//! From the fourth call of a kind on, the members compile its steps, by messages of that call. This call and later ones
//! of the kind wait in a queue. They run one after the other, in the order in which they began: each uses the buffers
//! and signals of the schedule again. Any thread of the rank that waits, tests or makes progress runs the steps of the
//! first call up to one that must wait. One thread at a time does so, and no lock is held meanwhile, because the steps
//! may call an operation of the program.
//!
//! If the members cannot compile the steps, all of them run these calls by messages.

use crate::current_call::CallWord;
use crate::failure::call_log::CallLog;
use crate::failure::monitor::EndsWithCommunicator;
use crate::nonblocking::call_data::AnyCallData;
use crate::nonblocking::channel::SLOTS;
use crate::nonblocking::task::{Task, lock};
use crate::plan::registry::PlanRegistry;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::base::{Error, Rank, Result};
use tasuki_core::engine::executor::Execution;
use tasuki_core::engine::{Condition, WaitEvent, Worker, wait_in_call, waits_in_call};
use tasuki_core::node::node_state::RankStage;
use tasuki_message::Continuation;

/// The number of a call among those of its kind, and the word that names it.
pub(super) type ScheduledCall = (u64, CallWord);

/// The calls of one kind.
pub(super) struct ScheduledCalls {
    plans: Arc<PlanRegistry>,
    state: Mutex<State>,
    /// Number of calls that have begun. It changes only while `state` is locked.
    begun: AtomicU64,
    /// Number of calls that are complete or have failed.
    over: AtomicU64,
    /// Runs the steps in other waits of the rank.
    continuation: Arc<ScheduledSteps>,
}

/// The steps of [`ScheduledCalls`], which other waits of the rank continue.
pub(super) struct ScheduledSteps(Weak<ScheduledCalls>);

struct State {
    steps: Steps,
    /// True if a thread could not look at the steps because another one ran them. That one looks again in its place.
    is_look_owed: bool,
    /// The calls that are not over, in the order in which they began.
    queue: VecDeque<QueuedCall>,
    /// The data of calls that are over and whose result was not taken; or the error.
    results: Vec<(u64, Result<Box<dyn AnyCallData>>)>,
    /// Number of calls in which some task is to be woken.
    awaited: usize,
    /// Keeps the calls while some of them are not over that nobody will take.
    kept: Option<Arc<ScheduledCalls>>,
}

/// The compiled steps.
enum Steps {
    /// The task compiles them.
    Compiling(Option<Arc<Task>>),
    Compiled(Box<Execution>),
    /// A thread runs them.
    Running,
    /// The members cannot have them: calls go by messages.
    Refused,
    /// The communicator has failed.
    Failed,
}

/// The state of the calls of a kind, in which a call has begun of which no step has run.
pub(super) struct BegunState<'s>(MutexGuard<'s, State>);

struct QueuedCall {
    number: u64,
    word: CallWord,
    /// The variant of the steps that it runs, and their tag.
    variant: (usize, u32),
    /// None while a thread runs its steps, and while a task runs it by messages.
    data: Option<Box<dyn AnyCallData>>,
    /// True once a step of it may have run.
    has_begun: bool,
    /// The task that runs it by messages.
    task: Option<Arc<Task>>,
    /// Makes that task, if the members cannot compile the steps.
    by_messages: Option<MakeTask>,
    waker: Option<Waker>,
    /// True if nobody will take the result.
    is_dropped: bool,
}

/// Makes the task that runs a call by messages.
pub(super) type MakeTask = Box<dyn FnOnce(Box<dyn AnyCallData>) -> Arc<Task> + Send>;

/// What a thread does at a step that must wait.
#[derive(Clone, Copy)]
enum Effort<'w> {
    /// Returns.
    Begin,
    /// Returns, or makes the call fail if the step can never run.
    Test,
    /// Waits for the call of that name.
    Wait(&'w dyn Fn() -> String),
}

/// What a thread has found that wants to run steps.
enum Ran {
    /// The first call must wait.
    Blocked,
    /// The calls up to that number are over.
    Over,
    /// Another thread runs steps.
    Busy,
    /// A task runs the call, or compiles the steps.
    Task(Arc<Task>),
    /// The awaited call is complete.
    Complete(Box<dyn AnyCallData>),
}

impl fmt::Debug for ScheduledCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScheduledCalls({} over)", self.over.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for ScheduledSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScheduledSteps({:?})", self.0.upgrade())
    }
}

impl ScheduledCalls {
    /// Makes the calls of a kind, whose steps are not compiled.
    pub(super) fn new(plans: Arc<PlanRegistry>) -> Arc<ScheduledCalls> {
        let calls = Arc::new_cyclic(|this: &Weak<ScheduledCalls>| ScheduledCalls {
            plans,
            state: Mutex::new(State {
                steps: Steps::Compiling(None),
                is_look_owed: false,
                queue: VecDeque::new(),
                results: Vec::new(),
                awaited: 0,
                kept: None,
            }),
            begun: AtomicU64::new(0),
            over: AtomicU64::new(0),
            continuation: Arc::new(ScheduledSteps(this.clone())),
        });
        calls.plans.group.messages().progress().add_continuation(calls.continuation.clone());
        let as_dyn: Arc<dyn EndsWithCommunicator> = calls.clone();
        calls.plans.monitor.add_call(&as_dyn);
        calls
    }

    pub(super) fn plans(&self) -> &Arc<PlanRegistry> {
        &self.plans
    }

    pub(super) fn worker(&self) -> &Worker {
        self.plans.group.worker()
    }

    /// Returns the name of a call, as errors show it.
    pub(super) fn name(&self, word: CallWord) -> String {
        self.plans.monitor.text_of(word)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns true if as many calls are under way as may be.
    pub(super) fn is_full(&self) -> bool {
        self.begun.load(Ordering::Relaxed).saturating_sub(self.over.load(Ordering::Relaxed))
            >= u64::from(SLOTS)
    }

    /// Adds a call, named by a word, which runs a variant of the steps, with a tag. The caller makes sure that the
    /// calls are not [full](Self::is_full). Returns the call's number; true if it goes by messages, or may do so if the
    /// members turn out not to compile the steps: `by_messages` makes the task for that; and what
    /// [`run_begun`](Self::run_begun) takes.
    pub(super) fn begin(
        &self,
        data: Box<dyn AnyCallData>,
        (word, variant, tag): (CallWord, usize, u32),
        by_messages: impl FnOnce(u64) -> MakeTask,
    ) -> (u64, bool, BegunState<'_>) {
        let mut state = self.lock();
        let number = self.begun.load(Ordering::Relaxed);
        self.begun.store(number + 1, Ordering::Relaxed);
        let may_use_messages = matches!(state.steps, Steps::Compiling(_) | Steps::Refused);
        let mut call = QueuedCall {
            number,
            word,
            variant: (variant, tag),
            data: Some(data),
            has_begun: false,
            task: None,
            by_messages: may_use_messages.then(|| by_messages(number)),
            waker: None,
            is_dropped: false,
        };
        if matches!(state.steps, Steps::Refused) {
            call.go_by_messages();
        }
        state.queue.push_back(call);
        (number, may_use_messages, BegunState(state))
    }

    /// Runs the first steps, after a call has begun.
    pub(super) fn run_begun(&self, BegunState(state): BegunState<'_>) {
        let by_messages = state.queue.back().and_then(|call| call.task.clone());
        if let Some(task) = by_messages {
            drop(state);
            return task.step();
        }
        match self.run_in(state, u64::MAX, Effort::Begin) {
            Ok(Ran::Task(task)) => task.step(),
            _ => self.worker().notify_own_helper(), // it may sleep
        }
    }

    /// Records the task that compiles the steps.
    pub(super) fn compile_by(&self, task: &Arc<Task>) {
        if let Steps::Compiling(compiling) = &mut self.lock().steps {
            *compiling = Some(task.clone());
        }
    }

    /// Takes the compiled steps.
    pub(super) fn compiled(&self, execution: Execution) {
        let mut state = self.lock();
        if matches!(state.steps, Steps::Compiling(_)) {
            state.steps = Steps::Compiled(Box::new(execution));
        }
        state.queue.iter_mut().for_each(|call| call.by_messages = None);
        drop(state);
        self.run(u64::MAX, Effort::Begin).ok();
    }

    /// Ends all calls: the members cannot agree about the steps. The first call gets the error.
    pub(super) fn compile_failed(&self, error: Error) {
        let state = self.lock();
        let first = state.queue.front().map(|front| (front.word, error));
        self.fail(state, first);
    }

    /// Ends all calls, because the communicator has failed.
    pub(super) fn end(&self) {
        self.fail(self.lock(), None);
    }

    /// Returns true if all calls are over, and no task compiles the steps.
    pub(super) fn are_over(&self) -> bool {
        let state = self.lock();
        state.queue.is_empty() && !matches!(state.steps, Steps::Compiling(_) | Steps::Running)
    }

    /// Runs the calls by messages, because the members cannot compile the steps.
    pub(super) fn refused(&self) {
        let mut state = self.lock();
        if !matches!(state.steps, Steps::Compiling(_)) {
            return;
        }
        state.steps = Steps::Refused;
        let tasks: Vec<_> = state.queue.iter_mut().filter_map(QueuedCall::go_by_messages).collect();
        drop(state);
        tasks.iter().for_each(Task::step);
    }

    /// Returns true if a call is complete or has failed.
    #[inline]
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.over.load(Ordering::Acquire) > number // SYNC call-over
    }

    /// Runs steps of the calls up to `number`, as far as possible.
    fn run(&self, number: u64, effort: Effort<'_>) -> Result<Ran> {
        self.run_in(self.lock(), number, effort)
    }

    fn run_in<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        number: u64,
        effort: Effort<'_>,
    ) -> Result<Ran> {
        loop {
            let State { steps, queue, is_look_owed, .. } = &mut *state;
            let Some(front) = queue.front_mut().filter(|front| front.number <= number) else {
                self.begin_next(state);
                return Ok(Ran::Over);
            };
            match steps {
                Steps::Compiled(_) => {}
                Steps::Compiling(Some(task)) => return Ok(Ran::Task(task.clone())),
                Steps::Refused => {
                    // These calls run at the same time, so the one that is waited for may not be the first.
                    let awaited = queue.iter().find(|call| call.number == number);
                    return Ok(
                        awaited.map_or(Ran::Over, |call| call.task.clone().map_or(Ran::Busy, Ran::Task))
                    );
                }
                _ => {
                    *is_look_owed = true;
                    return Ok(Ran::Busy);
                }
            }
            let Some(data) = front.data.take() else { return Ok(Ran::Busy) };
            let Steps::Compiled(execution) = std::mem::replace(steps, Steps::Running) else {
                return Ok(Ran::Busy);
            };
            let variant = (!std::mem::replace(&mut front.has_begun, true)).then_some(front.variant);
            let word = front.word;
            let (execution, data) = (Some(execution), Some(data));
            let mut running = RunningCall { calls: self, number: front.number, word, execution, data };
            drop(state);
            let outcome = running.run(variant, effort);
            state = self.lock();
            let is_look_owed = std::mem::take(&mut state.is_look_owed);
            let is_complete = running.end(&mut state, &outcome);
            match outcome {
                Err(error) => {
                    self.fail(state, Some((word, error)));
                    return Ok(Ran::Over);
                }
                Ok(_) if matches!(state.steps, Steps::Failed) => {
                    drop(state); // before the data of the call, which `running` may still have
                    return Ok(Ran::Over);
                }
                Ok(_) if !is_complete => {
                    // Not looked at otherwise: the line of the awaited signal would come from the member that is
                    // about to raise it, once more.
                    match &state.steps {
                        Steps::Compiled(execution) if is_look_owed && execution.can_continue() => continue,
                        _ => return Ok(Ran::Blocked),
                    }
                }
                Ok(_) => {}
            }
            if matches!(effort, Effort::Wait(_))
                && let Some(data) = self.complete_awaited(&mut state, number)
            {
                self.begin_next(state);
                return Ok(Ran::Complete(data));
            }
            let (waker, unwanted) = self.complete(&mut state);
            if waker.is_some() || unwanted.is_some() {
                drop(state);
                waker.into_iter().for_each(Waker::wake);
                drop(unwanted);
                state = self.lock();
            }
        }
    }

    /// Begins the first call, if no step of it has run. A thread that stops at the call that it waits for does so,
    /// because the other members may need this member's first steps, and because until then nobody can tell from the
    /// signals whether the call can go on: it may run another variant of the steps.
    fn begin_next(&self, state: MutexGuard<'_, State>) {
        if state.queue.front().is_some_and(|front| !front.has_begun) {
            self.run_in(state, u64::MAX, Effort::Begin).ok(); // an error is the result of that call
        }
    }

    /// Marks the first call as complete if it is the one of that number, which this thread waits for. Returns its data.
    fn complete_awaited(&self, state: &mut State, number: u64) -> Option<Box<dyn AnyCallData>> {
        let is_awaited = |front: &QueuedCall| front.number == number && front.waker.is_none();
        let call = state.queue.pop_front_if(|front| is_awaited(front))?;
        state.release();
        self.over.store(number + 1, Ordering::Release); // SYNC call-over
        call.data
    }

    /// Marks the first call as complete. Returns the waker of the task that awaits it, and the data if nobody will take
    /// them. To drop them runs code of the program, so the caller does it without the lock.
    fn complete(&self, state: &mut State) -> (Option<Waker>, Option<Box<dyn AnyCallData>>) {
        let Some(mut call) = state.queue.pop_front() else { return (None, None) };
        state.release();
        if let Some(data) = call.data.take_if(|_| !call.is_dropped) {
            state.results.push((call.number, Ok(data)));
        }
        self.over.store(call.number + 1, Ordering::Release); // SYNC call-over
        state.awaited -= usize::from(call.waker.is_some());
        (call.waker, call.data)
    }

    /// Takes the outcome of a call that a task has run by messages.
    pub(super) fn end_by_messages(&self, number: u64, outcome: Result<Box<dyn AnyCallData>>) {
        let mut state = self.lock();
        let Some(at) = state.queue.iter().position(|call| call.number == number) else { return };
        let Some(call) = state.queue.remove(at) else { return };
        state.release();
        if !call.is_dropped {
            state.results.push((number, outcome));
        }
        state.awaited -= usize::from(call.waker.is_some());
        let first = state.queue.front().map_or(self.begun.load(Ordering::Relaxed), |call| call.number);
        self.over.store(first, Ordering::Release); // SYNC call-over
        drop(state);
        call.waker.into_iter().for_each(Waker::wake);
    }

    /// Ends all calls. `error` is the error of the first one.
    fn fail(&self, mut state: MutexGuard<'_, State>, error: Option<(CallWord, Error)>) {
        state.steps = Steps::Failed;
        let queue = std::mem::take(&mut state.queue);
        state.release();
        let mut failed = None;
        if let Some((first, (word, error))) = queue.front().map(|first| first.number).zip(error) {
            failed = Some((word, error.cause().clone()));
            state.results.push((first, Err(error)));
        }
        self.over.store(self.begun.load(Ordering::Relaxed), Ordering::Release); // SYNC call-over
        state.awaited = 0;
        drop(state);
        if let Some((word, cause)) = failed {
            self.plans.monitor.report(self.worker(), word, &cause);
        }
        for call in queue {
            call.task.iter().for_each(Task::abandon);
            call.waker.into_iter().for_each(Waker::wake);
        }
        self.worker().wake_own_threads();
    }

    /// Returns when a call is over, perhaps with its data. If not, its result can be [taken](Self::take).
    pub(super) fn wait(&self, (number, word): ScheduledCall) -> Result<Option<Box<dyn AnyCallData>>> {
        let call = || self.name(word);
        while !self.is_over(number) {
            match self.run(number, Effort::Wait(&call))? {
                Ran::Complete(data) => return Ok(Some(data)),
                Ran::Over => break,
                Ran::Blocked => {}
                Ran::Task(task) => task.wait(&call)?,
                Ran::Busy => self.worker().pause(), // another thread runs the steps
            }
            self.worker().check().map_err(|cause| self.worker().fault(cause, call))?;
            if self.plans.monitor.is_failed() {
                self.end();
            }
        }
        Ok(None)
    }

    /// Runs steps that need not wait. Returns true if the call is over.
    pub(super) fn test(&self, number: u64) -> bool {
        if self.is_over(number) {
            return true;
        }
        match self.run(number, Effort::Test) {
            Ok(Ran::Over) => return true,
            Ok(Ran::Task(task)) => task.step(),
            _ => {}
        }
        self.end_if_impossible(self.plans.monitor.is_look_due());
        self.is_over(number)
    }

    /// Ends the calls if the communicator has failed, or if `looks` and members are in different calls.
    fn end_if_impossible(&self, looks: bool) {
        let monitor = &self.plans.monitor;
        if monitor.is_failed() {
            self.end();
        } else if looks && let Some(cause) = monitor.log().and_then(CallLog::find_mismatch) {
            let state = self.lock();
            if let Some(word) = state.queue.front().map(|front| front.word) {
                let error = self.worker().fault(cause, || self.name(word));
                self.fail(state, Some((word, error)));
            }
        }
    }

    /// Returns `Ready` if the call is over; otherwise `waker` is woken when it is.
    /// `about` is what the probe is asked about meanwhile.
    pub(super) fn poll(
        self: &Arc<Self>,
        (number, word): ScheduledCall,
        about: u32,
        waker: &Waker,
    ) -> Poll<()> {
        let worker = self.plans.group.worker();
        worker.progress();
        // A thread that waits in a call looks itself, and may stop waiting: it leaves no waker behind.
        let looks_itself = waits_in_call(waker, worker);
        let before = self.set_waker(number, (!looks_itself).then(|| waker.clone()));
        drop(before);
        if self.test(number) {
            return Poll::Ready(());
        }
        if !looks_itself {
            self.plans.group.messages().ensure_progress(waker);
            return Poll::Pending;
        }
        self.end_if_impossible(self.plans.monitor.is_poll_to_look(worker));
        if self.is_over(number) {
            return Poll::Ready(());
        }
        let over = Condition::Event(Arc::new(CallOver { calls: self.clone(), call: (number, word) }));
        wait_in_call(waker, worker, self.plans.monitor.awaited(worker, over, about));
        Poll::Pending
    }

    fn set_waker(&self, number: u64, waker: Option<Waker>) -> Option<Waker> {
        let mut state = self.lock();
        let call = state.queue.iter_mut().find(|call| call.number == number)?;
        let is_set = waker.is_some();
        let before = std::mem::replace(&mut call.waker, waker);
        state.awaited = state.awaited + usize::from(is_set) - usize::from(before.is_some());
        before
    }

    /// Takes the result of a call that is over. None: it was taken, or the communicator has failed.
    pub(super) fn take(&self, number: u64) -> Option<Result<Box<dyn AnyCallData>>> {
        self.lock().take_result(number)
    }

    /// Forgets the waker of a call whose result nobody will take, and the result. The call goes on for the other
    /// members.
    pub(super) fn drop_call(self: &Arc<Self>, number: u64) {
        let mut state = self.lock();
        let result = state.take_result(number);
        let mut waker = None;
        if let Some(call) = state.queue.iter_mut().find(|call| call.number == number) {
            call.is_dropped = true;
            waker = call.waker.take();
            state.awaited -= usize::from(waker.is_some());
            if !matches!(state.steps, Steps::Failed) {
                state.kept = Some(self.clone());
            }
        }
        drop(state);
        drop((result, waker)); // without the lock: it runs code of the program
    }
}

/// The event that a call is over.
#[derive(Debug)]
struct CallOver {
    calls: Arc<ScheduledCalls>,
    call: ScheduledCall,
}

impl WaitEvent for CallOver {
    fn happened(&self) -> bool {
        self.calls.is_over(self.call.0)
    }

    fn call(&self) -> String {
        self.calls.name(self.call.1)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None // the step that waits for a member that has left fails by itself
    }
}

impl QueuedCall {
    /// Makes the task that runs the call by messages, if it may use them. The caller steps the task.
    fn go_by_messages(&mut self) -> Option<Arc<Task>> {
        self.task = Some(self.by_messages.take()?(self.data.take()?));
        self.task.clone()
    }
}

impl State {
    /// Lets the calls be dropped if all are over. The thread that does so still has a reference to them.
    fn release(&mut self) {
        if self.queue.is_empty() {
            self.kept = None;
        }
    }

    fn take_result(&mut self, number: u64) -> Option<Result<Box<dyn AnyCallData>>> {
        let at = self.results.iter().position(|(of, _)| *of == number)?;
        Some(self.results.swap_remove(at).1)
    }
}

impl EndsWithCommunicator for ScheduledCalls {
    fn is_over(&self) -> bool {
        false // more calls may come
    }

    fn abandon(self: Arc<Self>) {
        self.fail(self.lock(), None);
    }
}

impl Continuation for ScheduledSteps {
    fn can_resume(&self) -> bool {
        let Some(calls) = self.0.upgrade() else { return false };
        let mut state = calls.lock();
        match &state.steps {
            Steps::Compiled(_) if state.queue.is_empty() => false,
            Steps::Compiled(execution) => {
                state.queue.front().is_some_and(|front| !front.has_begun)
                    || execution.can_continue()
                    || state.awaited > 0 && calls.worker().ends_execution(execution).is_some()
            }
            Steps::Running => {
                state.is_look_owed = true;
                false
            }
            _ => false,
        }
    }

    fn is_under_way(&self) -> bool {
        self.0.upgrade().is_some_and(|calls| !calls.lock().queue.is_empty())
    }

    fn end_if_impossible(&self) {
        if let Some(calls) = self.0.upgrade().filter(|calls| calls.lock().awaited > 0) {
            calls.end_if_impossible(true);
        }
    }

    fn is_awaited(&self) -> bool {
        self.0.upgrade().is_some_and(|calls| calls.lock().awaited > 0)
    }

    fn resume(&self) {
        if let Some(calls) = self.0.upgrade() {
            calls.run(u64::MAX, Effort::Test).ok();
            calls.worker().wake_own_threads();
        }
    }
}

impl Drop for ScheduledCalls {
    fn drop(&mut self) {
        self.plans.group.messages().progress().remove_continuation(&*self.continuation);
    }
}

/// The first call, while a thread runs its steps. Dropping it without [`RunningCall::end`] means that the program's
/// operation has panicked.
struct RunningCall<'c> {
    calls: &'c ScheduledCalls,
    number: u64,
    word: CallWord,
    execution: Option<Box<Execution>>,
    data: Option<Box<dyn AnyCallData>>,
}

impl RunningCall<'_> {
    /// Runs steps: if `variant` is given, the first ones of the call. Returns true if the call is complete.
    fn run(&mut self, variant: Option<(usize, u32)>, effort: Effort<'_>) -> Result<bool> {
        let (Some(execution), Some(data)) = (&mut self.execution, &mut self.data) else { return Ok(false) };
        let worker = self.calls.worker();
        variant.into_iter().for_each(|(variant, tag)| execution.begin_call(variant, tag));
        // A result of several words that is stored in parts and loaded as one would wait until the raise of a signal
        // before it has left the store buffer. Hence a flag, and the error apart from it.
        let (mut is_complete, mut failure) = (false, None);
        data.with_buffers(&mut |buffers| match effort {
            Effort::Wait(call) => match worker.execute(execution, buffers, call) {
                Ok(()) => is_complete = true,
                Err(error) => failure = Some(error),
            },
            Effort::Begin | Effort::Test => is_complete = worker.run_until_blocked(execution, buffers),
        });
        let cause = match effort {
            _ if is_complete => None,
            Effort::Test => execution.take_failure().or_else(|| worker.ends_execution(execution)),
            _ => execution.take_failure(),
        };
        let name = || self.calls.name(self.word);
        match cause.map(|cause| worker.fault(cause, name)).or(failure) {
            Some(error) => Err(self.calls.plans.monitor.explain(error, worker, &name)),
            None => Ok(is_complete),
        }
    }

    /// Gives execution and data back. Returns true if the call is complete.
    fn end(&mut self, state: &mut State, outcome: &Result<bool>) -> bool {
        if let (Steps::Running, Some(execution)) = (&state.steps, self.execution.take()) {
            state.steps = Steps::Compiled(execution);
        }
        // After a failure the call is no longer in the queue, and another one may be.
        if let Some(front) = state.queue.front_mut().filter(|front| front.number == self.number) {
            front.data = self.data.take();
        }
        matches!(outcome, Ok(true))
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if self.execution.is_some() {
            let calls = self.calls;
            calls.fail(calls.lock(), None);
            calls.plans.monitor.report_panic(calls.worker(), self.word);
        }
    }
}
