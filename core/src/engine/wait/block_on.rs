//! Runs a future on the calling thread.
//!
//! Requests of this library recognise the waker of a thread that is in [`block_until`]. They do not register it. They
//! name the conditions that they need instead ([`wait_in_call`]), and the thread waits for these as a blocking call
//! does: it spins, makes progress, runs handlers, and sleeps. All other wakers wake the thread by a flag.
//!
//! The flag and the worker whose threads a wake has to wake are under one lock, so no wake falls between a look at the
//! flag and the wait: the thread names its worker before it looks at the flag for the last time.

use crate::base::{Cause, Error, Rank, Result};
use crate::engine::wait::condition::{Awaited, Condition, WaitEvent, describe_awaited};
use crate::engine::wait::deadline::{Deadline, Limit};
use crate::engine::wait::probe::scoped_wait_probe_about;
use crate::engine::worker::Worker;
use crate::node::node_state::RankStage;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The longest pause between two polls of a future that is not ready although the job is over.
const PAUSE_AFTER_END: Duration = Duration::from_millis(1);

/// A thread that runs a future, as wakers see it.
#[derive(Debug)]
struct BlockedThread {
    state: Mutex<WakeState>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct WakeState {
    is_woken: bool,
    /// The worker in whose wait the thread may be.
    worker: Option<Arc<Worker>>,
}

impl BlockedThread {
    /// Locked for a few instructions only, and never during a call of the fabric.
    fn state(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_woken(&self) -> bool {
        self.state().is_woken
    }
}

impl Wake for BlockedThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let worker = {
            let mut state = self.state();
            state.is_woken = true;
            state.worker.clone()
        };
        worker.iter().for_each(|worker| worker.wake_own_threads());
        self.thread.unpark(); // it may wait for something that belongs to no worker
    }
}

/// A call of [`block_until`] that this thread is in.
struct BlockOnCall {
    thread: Arc<BlockedThread>,
    /// Identifies the call's waker, and its clones. The thread above keeps the address from being used again.
    waker_data: *const (),
    /// The first worker whose requests the future has polled. Requests of other workers wake the waker.
    worker: Option<Arc<Worker>>,
    /// What the future waits for since it was polled last.
    awaited: Vec<Awaited>,
    may_spin: bool,
}

thread_local! {
    /// The calls that this thread is in, innermost last.
    static CALLS: RefCell<Vec<BlockOnCall>> = const { RefCell::new(Vec::new()) };
    /// A waker of an earlier call that nobody holds any more.
    static SPARE: Cell<Option<(Arc<BlockedThread>, Waker)>> = const { Cell::new(None) };
}

/// Calls `work` with this thread's innermost call, if `waker` is the call's and `worker` the one that it waits in.
fn with_call<R>(waker: &Waker, worker: &Arc<Worker>, work: impl FnOnce(&mut BlockOnCall) -> R) -> Option<R> {
    CALLS.with_borrow_mut(|calls| {
        let call = calls.last_mut().filter(|call| std::ptr::eq(call.waker_data, waker.data()))?;
        let entered = call.worker.get_or_insert_with(|| {
            call.thread.state().worker = Some(worker.clone());
            worker.clone()
        });
        Arc::ptr_eq(entered, worker).then(|| work(call))
    })
}

/// Returns true if this thread polls with its own waker: it then waits in `worker` when the poll has returned.
#[inline]
pub fn waits_in_call(waker: &Waker, worker: &Arc<Worker>) -> bool {
    with_call(waker, worker, |_| ()).is_some()
}

/// Returns true if this thread polls with its own waker and no request has [looked in vain](spun_in_vain) in this poll
/// of [`block_on`]'s future. The request then looks for its end as long as a blocking call does before its first pause.
#[inline]
pub fn may_spin(waker: &Waker, worker: &Arc<Worker>) -> bool {
    with_call(waker, worker, |call| call.may_spin).unwrap_or(false)
}

/// Lets no other request spin in this poll: a future that awaits hundreds of requests looks for one of them only.
pub fn spun_in_vain(waker: &Waker, worker: &Arc<Worker>) {
    with_call(waker, worker, |call| call.may_spin = false);
}

/// Lets this thread wait for a condition when the poll has returned, if it polls with its own waker. Otherwise returns
/// the condition, for which the waker must be registered.
pub fn wait_in_call(waker: &Waker, worker: &Arc<Worker>, awaited: Awaited) -> Option<Awaited> {
    let mut awaited = Some(awaited);
    with_call(waker, worker, |call| call.awaited.extend(awaited.take()));
    awaited
}

/// Leaves the innermost call when it is dropped, also during a panic.
struct CallGuard {
    thread: Arc<BlockedThread>,
    waker: Waker,
}

impl CallGuard {
    fn begin() -> CallGuard {
        let (thread, waker) = SPARE.take().unwrap_or_else(|| {
            let (state, thread) = (Mutex::default(), std::thread::current());
            let thread = Arc::new(BlockedThread { state, thread });
            (thread.clone(), Waker::from(thread))
        });
        let (awaited, worker) = (Vec::new(), None);
        let may_spin = false; // a poll allows it
        let call =
            BlockOnCall { thread: thread.clone(), waker_data: waker.data(), worker, awaited, may_spin };
        CALLS.with_borrow_mut(|calls| calls.push(call));
        CallGuard { thread, waker }
    }

    /// Allows the requests of the next poll to spin, until one has spun in vain.
    fn begin_poll(&self) {
        CALLS.with_borrow_mut(|calls| {
            calls.iter_mut().next_back().into_iter().for_each(|call| call.may_spin = true)
        });
    }

    /// Takes the conditions that the last poll has named.
    fn take_awaited(&self) -> (Option<Arc<Worker>>, Vec<Awaited>) {
        CALLS.with_borrow_mut(|calls| {
            let call = calls.last_mut();
            call.map_or((None, Vec::new()), |call| (call.worker.clone(), std::mem::take(&mut call.awaited)))
        })
    }

    /// Returns the probe of the only condition that this thread awaits. None if there are several, or if somebody else
    /// has the waker, such as a timer: then the future may go on although the condition is not met.
    fn probe(&self, awaited: &[Awaited]) -> (u32, u32) {
        let [mine, of_waker, of_call] = [1, 1, 1];
        let is_only_mine = || Arc::strong_count(&self.thread) == mine + of_waker + of_call;
        if let [one] = awaited
            && is_only_mine()
        {
            one.probe
        } else {
            (0, 0)
        }
    }

    /// Waits until the future may be ready, until `timer` ends, or until one of the conditions wants another poll.
    fn wait(&self, timer: &mut Timer, has_failed: &mut bool) {
        let (worker, awaited) = self.take_awaited();
        let Some(worker) = worker.filter(|_| !*has_failed) else {
            if !self.thread.is_woken() {
                timer.park(*has_failed);
            }
            return;
        };
        let deadline = timer.deadline(&worker);
        let until_ns = deadline.until_ns();
        if !self.thread.is_woken() {
            let again_at_ns = awaited.iter().map(|awaited| awaited.again_at_ns).min().unwrap_or(u64::MAX);
            let end_ns = until_ns.min(again_at_ns);
            let left = || Duration::from_nanos(end_ns.saturating_sub(worker.now_ns()));
            let next = if again_at_ns < until_ns { worker.deadline_after(left()) } else { deadline };
            let (number, about) = self.probe(&awaited);
            let _asked = scoped_wait_probe_about(number, about);
            let event = Arc::new(AnyAwaited { thread: self.thread.clone(), worker: worker.clone(), awaited });
            let waited = worker.wait(&Condition::Event(event.clone()), next, &|| event.call());
            // The next poll finds what the probe has found.
            *has_failed = waited.as_ref().is_err_and(|error| !error.is_timeout()) && worker.check().is_err();
            timer.timeout = waited.err();
        }
        timer.is_over = until_ns < u64::MAX && worker.now_ns() >= until_ns;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let call = CALLS.with_borrow_mut(Vec::pop);
        drop(call); // not while the list is borrowed: what was awaited may be dropped with it
        let [mine, of_waker] = [1, 1];
        if Arc::strong_count(&self.thread) == mine + of_waker {
            *self.thread.state() = WakeState::default();
            let waker = std::mem::replace(&mut self.waker, Waker::noop().clone());
            SPARE.set(Some((self.thread.clone(), waker)));
        }
    }
}

/// When a call gives up. The clock is that of the worker, which may be virtual, from the moment when it is known.
struct Timer {
    limit: Limit,
    begin: Instant,
    deadline: Option<Deadline>,
    is_over: bool,
    /// The error of the last wait.
    timeout: Option<Error>,
}

impl Timer {
    fn deadline(&mut self, worker: &Worker) -> Deadline {
        *self.deadline.get_or_insert_with(|| worker.deadline_of(self.limit))
    }

    /// Returns the error that the time is over. It names what was awaited.
    fn error(self) -> Error {
        let after = match self.limit {
            Limit::After(limit) => limit,
            _ => self.deadline.unwrap_or(Deadline::NEVER).limit(),
        };
        let call = || describe_awaited(Vec::new());
        self.timeout
            .filter(Error::is_timeout)
            .unwrap_or_else(|| Error::new(Cause::TimedOut { after }).in_call(call))
    }

    /// Parks the thread, which waits for nothing that belongs to a worker; or the job is over.
    fn park(&mut self, is_job_over: bool) {
        let limit = if let Limit::After(limit) = self.limit { Some(limit) } else { None };
        let left = limit.map(|limit| limit.saturating_sub(self.begin.elapsed()));
        let pause = if is_job_over { Some(PAUSE_AFTER_END) } else { None };
        match left.into_iter().chain(pause).min() {
            Some(limit) => std::thread::park_timeout(limit),
            None => std::thread::park(),
        }
        self.is_over = left.is_some_and(|left| left.is_zero());
    }
}

/// Runs a future on this thread and returns its output. A request of this library that the future awaits is waited for
/// as in a blocking call.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Ok(output) = block_until(Limit::Never, |context| future.as_mut().poll(context)) {
            return output;
        }
    }
}

/// Polls until the result is ready, at least once. Error: the limit is reached.
pub fn block_until<T>(limit: Limit, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T> {
    let call = CallGuard::begin();
    let mut context = Context::from_waker(&call.waker);
    let begin = Instant::now();
    let mut timer = Timer { limit, begin, deadline: None, is_over: false, timeout: None };
    let mut has_failed = false;
    loop {
        call.begin_poll();
        if let Poll::Ready(value) = poll(&mut context) {
            return Ok(value);
        }
        if timer.is_over {
            return Err(timer.error());
        }
        call.wait(&mut timer, &mut has_failed);
        call.thread.state().is_woken = false; // before the next poll, which sees what a wake has announced
    }
}

/// One of several awaited conditions is decided, or the thread was woken.
#[derive(Debug)]
struct AnyAwaited {
    thread: Arc<BlockedThread>,
    worker: Arc<Worker>,
    awaited: Vec<Awaited>,
}

impl AnyAwaited {
    fn call(&self) -> String {
        describe_awaited(self.awaited.iter().map(|awaited| awaited.condition.call()).collect())
    }
}

impl WaitEvent for AnyAwaited {
    fn happened(&self) -> bool {
        self.awaited.iter().any(|awaited| self.worker.is_decided(&awaited.condition))
            || self.thread.is_woken()
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None // a condition that can no longer be met ends the wait, too
    }

    fn needs_message_of(&self) -> Option<Rank> {
        match &self.awaited[..] {
            [Awaited { condition: Condition::Event(event), .. }] => event.needs_message_of(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::sync::{AtomicU32, Ordering};

    #[test]
    fn a_wake_of_another_thread_ends_the_wait() {
        let polls = AtomicU32::new(0);
        let value = block_until(Limit::Never, |context| {
            if polls.fetch_add(1, Ordering::Relaxed) > 0 {
                return Poll::Ready(7);
            }
            let waker = context.waker().clone();
            std::thread::spawn(move || waker.wake());
            Poll::Pending
        });
        assert_eq!((value.ok(), polls.load(Ordering::Relaxed)), (Some(7), 2));
    }

    #[test]
    fn a_limit_ends_the_wait_after_a_last_poll() {
        let mut polls = 0;
        let value = block_until(Limit::After(Duration::from_millis(2)), |_| {
            polls += 1;
            Poll::<()>::Pending
        });
        assert!(value.is_err_and(|error| error.is_timeout()));
        assert!(polls >= 2, "polled {polls} times");
    }

    #[test]
    fn calls_nest_and_reuse_their_waker() {
        let data = |waker: &Waker| waker.data() as usize;
        let outer = block_on(async {
            let outer = std::future::poll_fn(|context| Poll::Ready(data(context.waker()))).await;
            let inner = block_on(std::future::poll_fn(|context| Poll::Ready(data(context.waker()))));
            assert_ne!(outer, inner, "a thread in two calls has two wakers");
            outer
        });
        let next = block_on(std::future::poll_fn(|context| Poll::Ready(data(context.waker()))));
        assert_eq!(outer, next, "the waker of a call that has ended is used again");
    }
}
