//! The steps of a collective call that was begun, as a future. Its own messages wake it, and whichever call of the rank
//! moved them on runs it, as it wakes the program's tasks: when nothing of the rank's is being moved on.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{self, Poll, Wake, Waker};
use tasuki_core::base::{Error, Rank, Result};
use tasuki_core::engine::board::Stage;
use tasuki_core::engine::{Condition, Event, Machine};
use tasuki_message::{Context, Debt, Operation};

/// The steps.
type Steps = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The message that a call waits for at the moment.
pub(super) type Awaited = Arc<Mutex<Option<Arc<Operation>>>>;

/// A call that was begun.
pub(super) struct Task {
    context: Arc<Context>,
    going: Arc<Going>,
    /// None while a thread is at them, and when they are over. No lock is held then: they call the program's code.
    steps: Mutex<Option<Steps>>,
    /// Something happened since a thread began to be at them.
    is_woken: AtomicBool,
    is_over: AtomicBool,
    awaited: Awaited,
    /// Whom to wake when it is over.
    waker: Mutex<Option<Waker>>,
}

/// The calls that a rank has begun.
#[derive(Debug, Default)]
pub(crate) struct Going {
    /// Those to go on with.
    ready: Mutex<VecDeque<Arc<Task>>>,
    /// Whether a thread goes on with them: one call's step may wake another, but not run within it.
    is_running: AtomicBool,
    /// All that may not be over.
    begun: Mutex<Vec<Weak<Task>>>,
}

impl Task {
    /// A call of which no step was taken yet. `awaited`: where its steps say what they wait for.
    pub(super) fn new(
        context: &Arc<Context>,
        going: &Arc<Going>,
        awaited: Awaited,
        steps: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Task> {
        let task = Arc::new(Task {
            context: context.clone(),
            going: going.clone(),
            steps: Mutex::new(Some(Box::pin(steps))),
            is_woken: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            awaited,
            waker: Mutex::default(),
        });
        let mut begun = lock(&going.begun);
        begun.retain(|task| task.strong_count() > 0);
        begun.push(Arc::downgrade(&task));
        drop(begun);
        task
    }

    /// Whether it is over, well or not.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) // SYNC begun-over
    }

    /// Goes on with it as far as can be; never waits. If another thread is at it, that does.
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
        // Another thread may wait for it, or none of the program's: both see to what it waits for now.
        self.context.machine().stir();
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker
            && !self.is_over()
            && self.context.machine().host().lets_threads_sleep()
            && self.context.see_to(&waker).is_err()
        {
            waker.wake(); // its task finds out
        }
    }

    /// Whether they are not over.
    fn poll(self: &Arc<Self>, mut steps: Steps) -> bool {
        // Also if the program's operation panics: nobody is to wait for it then.
        let ending = Ending(self);
        let waker = Waker::from(self.clone());
        let polled = steps.as_mut().poll(&mut task::Context::from_waker(&waker));
        if polled.is_pending() {
            std::mem::forget(ending);
            *lock(&self.steps) = Some(steps);
            return true;
        }
        drop(steps);
        false
    }

    /// Returns when it is over.
    pub(super) fn wait(self: &Arc<Self>, call: &dyn Fn() -> String) -> Result<()> {
        let mut waited: Result<()> = Ok(());
        loop {
            self.step();
            if self.is_over() {
                return Ok(());
            }
            waited?;
            let condition = Condition::Event(Arc::new(Waiting(self.clone())));
            waited = self.context.machine().wait(&condition, None, call);
        }
    }

    /// Whether it is over; otherwise `waker` is woken then.
    pub(super) fn poll_over(self: &Arc<Self>, waker: &Waker) -> Poll<Result<()>> {
        self.context.machine().progress();
        let before = lock(&self.waker).replace(waker.clone()); // before the look, as for a message
        drop(before);
        self.step();
        if self.is_over() {
            return Poll::Ready(Ok(()));
        }
        match self.context.see_to(waker) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Nobody asks for it any more.
    pub(super) fn forget_waker(&self) {
        let waker = lock(&self.waker).take();
        drop(waker); // not under the lock: it is the program's code
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let going = self.going.clone();
        lock(&going.ready).push_back(self);
        going.run();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// Says that a call is over.
struct Ending<'t>(&'t Arc<Task>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        *lock(&self.0.awaited) = None;
        self.0.is_over.store(true, Ordering::Release); // SYNC begun-over
        let waker = lock(&self.0.waker).take();
        waker.into_iter().for_each(Waker::wake);
        self.0.context.machine().stir();
    }
}

impl Going {
    /// Goes on with what is to go on, unless a thread does.
    fn run(&self) {
        while !lock(&self.ready).is_empty() {
            if self.is_running.swap(true, Ordering::SeqCst) {
                return; // that thread looks again when it has said that it does not run any more
            }
            let _running = Running(&self.is_running);
            while let Some(task) = { lock(&self.ready).pop_front() } {
                task.step();
            }
        }
    }
}

/// A thread that goes on with calls: no longer when it panics.
struct Running<'g>(&'g AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Debt for Going {
    fn is_paid(&self, _machine: &Machine) -> bool {
        true
    }

    /// What is not over when its rank leaves ends here: the others are told that the rank has left.
    fn pay(&self, _machine: &Machine) -> Result<()> {
        let begun = std::mem::take(&mut *lock(&self.begun));
        for task in begun.iter().filter_map(Weak::upgrade) {
            let steps = lock(&task.steps).take();
            if steps.is_some() {
                drop(steps);
                drop(Ending(&task));
            }
        }
        Ok(())
    }
}

/// That a call is over, or can go on.
#[derive(Debug)]
struct Waiting(Arc<Task>);

impl Event for Waiting {
    fn happened(&self) -> bool {
        let awaited = lock(&self.0.awaited).clone();
        let machine = self.0.context.machine();
        awaited.is_some_and(|message| message.happened() || message.is_hopeless(machine)) || self.0.is_over()
    }

    fn hopeless_from(&self) -> Option<(Rank, Stage)> {
        None // the step that waits for one who has gone fails
    }
}

/// That a call ended without a result.
#[cold]
pub(super) fn lost(context: &Context, call: &dyn Fn() -> String) -> Error {
    let text =
        "its result was given already, the operation that combines values panicked, or the rank has left";
    let cause = tasuki_core::base::Cause::Argument(text.into());
    context.machine().fault(cause, call)
}

/// For locks that are held a moment.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
