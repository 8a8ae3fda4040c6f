//! The worker of a rank: its parts, each of which owns its state.
//!
//! What needs one part is a function of that part. What needs several, because it may run queues and handlers or wait,
//! is a function of the worker, in the folder of the part to which it belongs. No file of a part depends on those; only
//! the context of a running handler names the worker.

use super::active_message::ActiveMessages;
use super::command_queue::CommandQueues;
use super::executor::YieldHint;
use super::fork_guard::ForkGuard;
use super::given_failures::GivenFailures;
use super::operation::set::OperationSet;
use super::sync::try_lock::TryLock;
use super::trace::{Recorder, TraceTo};
use super::user_operators::UserOperators;
use super::wait::alarm::Alarm;
use super::wait::condition::{Awaited, WaitEvent};
use super::wait::deadline::{Deadline, DefaultLimit};
use super::wait::helper_control::NodeHelper;
use super::wait::platform::Platform;
use super::wait::probe::WaitProbes;
use crate::base::log::Log;
use crate::base::sync::{AtomicBool, Ordering, RealAtomicU64};
use crate::base::{Cause, Error, Rank, Result};
use crate::fabric::{Fabric, SignalCell};
use crate::node::node_state::{NodeState, RankStage, RankState, UnderWay};
use crate::os::store_policy::StorePolicy;
use crate::segment::Registry;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

/// Everything that a rank needs for one-sided operations. Any thread of the rank may make any call.
#[derive(Debug)]
pub struct Worker {
    rank: Rank,
    serial: u64,
    node_state: Arc<NodeState>,
    fabric: Arc<dyn Fabric>,
    platform: Arc<dyn Platform>,
    fork_guard: ForkGuard,
    operations: OperationSet,
    commands: CommandQueues,
    operators: UserOperators,
    wait_probes: WaitProbes,
    alarm: Alarm,
    default_limit: DefaultLimit,
    spins: u32,
    has_processor: bool,
    store_policy: StorePolicy,
    yield_hint: YieldHint,
    polling: TryLock,
    publishing_wait: AtomicBool,
    agent: OnceLock<Arc<dyn Agent>>,
    node_helper: NodeHelper,
    calls: OnceLock<ActiveMessages>,
    recorder: Option<Box<Recorder>>,
    given_failures: GivenFailures,
    log: Log,
}

/// Number of workers that this process has created.
static WORKERS_CREATED: RealAtomicU64 = RealAtomicU64::new(0);

/// How much of its unfinished work an agent looks at in one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// As little as keeps all of it going, for a call that begins or tests something of its own.
    Brief,
    /// As much as a call has time for that waits.
    Full,
}

/// Asynchronous work of a crate above this one, such as messages. Any waiting call of the rank makes it progress.
pub trait Agent: Send + Sync + Debug {
    /// Makes progress without waiting. One thread at a time calls it. Returns true if
    /// [`Agent::run_callbacks`] has work.
    fn advance(&self, worker: &Worker, effort: Effort) -> bool;

    /// Calls the program's code that waited for finished work. No `advance` runs meanwhile, so the code may make calls.
    fn run_callbacks(&self);

    /// Returns true if `advance` or `run_callbacks` would do something. Checked before the rank sleeps.
    fn has_work(&self) -> bool;

    /// Wakes a task when a condition is met or can no longer be met, once, even if no call of the program waits.
    /// Returns the number by which [`Agent::forget_awaited`] finds it; `None` if the task was woken already, because no
    /// thread can wait for it.
    fn wake_when(self: Arc<Self>, worker: &Arc<Worker>, awaited: Awaited, waker: &Waker) -> Option<u64>;

    /// Wakes no task for the condition of that number any more.
    fn forget_awaited(&self, number: u64);

    /// Returns when `advance` has something to do although nothing has happened, in ns of the platform's clock.
    fn again_at_ns(&self) -> u64 {
        u64::MAX
    }

    /// Returns true if there is unfinished work that a peer's store may complete and for which no helper is woken.
    fn is_busy(&self) -> bool;

    /// Returns what is unfinished in the agent, besides the awaited event, while the program waits for that.
    fn under_way(&self, _awaited: Option<&Arc<dyn WaitEvent>>) -> UnderWay {
        UnderWay::default()
    }

    /// Called before the rank announces that it is leaving: informs its peers of what it will still send.
    fn announce_leaving(&self, worker: &Worker);

    /// Called when the rank is leaving and starts nothing new: returns when all that it owes its
    /// peers is done. The error says what is not done.
    fn leave(&self, worker: &Worker) -> Result<()>;

    /// Drops what is unfinished: the rank has failed, and makes no call any more. Otherwise what holds the rank and is
    /// held by it would stay in the process.
    fn abandon(&self) {}
}

impl Worker {
    /// Creates the worker of `rank` with a fabric and a platform made for that rank.
    pub fn new(
        rank: Rank,
        node_state: Arc<NodeState>,
        fabric: Arc<dyn Fabric>,
        platform: Arc<dyn Platform>,
        log: Log,
    ) -> Result<Worker> {
        let commands = CommandQueues::new(rank, fabric.clone()).map_err(Error::new)?;
        Ok(Worker {
            rank,
            serial: WORKERS_CREATED.fetch_add(1, Ordering::Relaxed),
            fabric,
            commands,
            fork_guard: ForkGuard::new()?,
            operations: OperationSet::new(rank),
            operators: UserOperators::default(),
            wait_probes: WaitProbes::default(),
            alarm: Alarm::default(),
            default_limit: DefaultLimit::default(),
            spins: platform.spins(),
            has_processor: platform.has_processor(),
            store_policy: StorePolicy::default(),
            yield_hint: YieldHint::default(),
            platform,
            node_state,
            polling: TryLock::default(),
            publishing_wait: AtomicBool::new(false),
            agent: OnceLock::new(),
            node_helper: NodeHelper::default(),
            calls: OnceLock::new(),
            recorder: None,
            given_failures: GivenFailures::default(),
            log,
        })
    }

    /// Makes the worker record a trace, if `to` is given. Waits then begin without spinning, because short waits that
    /// end while spinning would not be recorded.
    pub fn with_trace(mut self, to: Option<&TraceTo>) -> Worker {
        if let Some(to) = to {
            let is_virtual = !self.platform.lets_threads_sleep();
            self.recorder = Some(Recorder::new(to, self.rank, self.size(), is_virtual).into());
            self.spins = 0;
        }
        self
    }

    /// Returns a number that no other worker of this process has or had. (An address may be used again.)
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the recorder, if the worker records a trace.
    #[inline(always)]
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Writes the recorded trace, if there is one; called once, when the rank's program has ended in any way.
    pub fn write_trace(&self) {
        let Some(recorder) = self.recorder().filter(|_| !self.fork_guard.is_forked()) else { return };
        if let Err((file, error)) = recorder.write() {
            let text = format_args!("the trace could not be written to {}: {error}", file.display());
            self.log.say(crate::base::log::Level::Warn, text);
        }
    }

    /// Returns the rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }
    /// Returns the number of ranks of the job.
    #[inline]
    pub fn size(&self) -> usize {
        self.node_state.size()
    }

    /// Returns the state that the ranks of the node share.
    #[inline]
    pub fn node_state(&self) -> &NodeState {
        &self.node_state
    }

    /// Returns this rank's part of the node state.
    pub fn rank_state(&self) -> &RankState {
        self.node_state.rank_state(self.rank)
    }

    /// Returns the fabric.
    #[inline]
    pub fn fabric(&self) -> &dyn Fabric {
        &*self.fabric
    }

    /// Returns the fabric for holders that outlive a call.
    #[inline]
    pub fn shared_fabric(&self) -> &Arc<dyn Fabric> {
        &self.fabric
    }

    /// Returns the control of the node's helper thread, which runs in at most one rank of the node.
    pub fn node_helper(&self) -> &NodeHelper {
        &self.node_helper
    }

    /// Sets the agent that waiting calls advance from now on. Called once.
    pub fn set_agent(&self, agent: Arc<dyn Agent>) {
        let first = self.agent.set(agent).is_ok();
        debug_assert!(first, "a worker has one agent");
    }

    pub(super) fn agent(&self) -> Option<&dyn Agent> {
        self.agent.get().map(|agent| &**agent)
    }

    /// Wakes a task when a condition is met or can no longer be met; see [`Agent::wake_when`].
    pub(super) fn wake_when(self: &Arc<Self>, awaited: Awaited, waker: &Waker) -> Option<u64> {
        self.agent.get()?.clone().wake_when(self, awaited, waker)
    }

    /// Wakes no task for the condition of that number any more.
    pub(super) fn forget_awaited(&self, number: u64) {
        self.agent().into_iter().for_each(|agent| agent.forget_awaited(number));
    }

    pub(super) fn agent_has_work(&self) -> bool {
        self.agent().is_some_and(Agent::has_work)
    }

    pub(super) fn agent_is_busy(&self) -> bool {
        self.agent().is_some_and(Agent::is_busy)
    }

    /// Returns the state of active messages, if this rank handles calls.
    #[inline(always)]
    pub(super) fn calls(&self) -> Option<&ActiveMessages> {
        self.calls.get()
    }

    /// Begins to handle calls.
    pub(super) fn set_calls(&self, calls: ActiveMessages) {
        let first = self.calls.set(calls).is_ok();
        debug_assert!(first, "handlers are set once");
        self.commands.enable_calls();
    }

    /// Wakes sleeping threads of this rank, because this thread has done something that they wait for.
    pub fn wake_own_threads(&self) {
        self.node_state.wake_sleepers(self.rank);
    }

    /// Returns the clock and the pauses.
    pub fn platform(&self) -> &dyn Platform {
        &*self.platform
    }

    /// Returns the rank's registered memory.
    pub fn registry(&self) -> &Registry {
        self.fabric.registry()
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the guard that detects forked processes and the end of the rank.
    pub fn fork_guard(&self) -> &ForkGuard {
        &self.fork_guard
    }

    /// Returns true if no operation that this rank issued is unfinished.
    pub fn is_idle(&self) -> bool {
        self.operations.unfinished() == 0
    }

    pub(super) fn operations(&self) -> &OperationSet {
        &self.operations
    }

    /// Returns the probes that long waits of this rank call.
    pub fn wait_probes(&self) -> &WaitProbes {
        &self.wait_probes
    }

    pub(super) fn default_limit(&self) -> &DefaultLimit {
        &self.default_limit
    }

    /// Returns the alarm of this rank.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Returns the operators of the program that commands of this rank's own queues may use.
    pub fn operators(&self) -> &UserOperators {
        &self.operators
    }

    #[inline(always)]
    pub(super) fn commands(&self) -> &CommandQueues {
        &self.commands
    }

    /// Returns true if the rank has handlers or command queues, which a waiting thread serves.
    pub fn uses_queues(&self) -> bool {
        self.commands.are_used()
    }

    /// Returns true if this process writes the memory of other ranks by stores, and their signals by atomics of the
    /// processor.
    #[inline(always)]
    pub fn reaches_words(&self) -> bool {
        self.commands.reach_words()
    }

    /// The value of a signal of this rank, poisoned or not.
    #[inline]
    pub fn signal_value(&self, cell: &SignalCell) -> u64 {
        self.commands.signal_value(cell)
    }

    /// Returns how many times to read a word before the first pause. `from`: the only rank that
    /// writes the word, if known.
    #[inline(always)]
    pub fn spins(&self, from: Option<Rank>) -> u32 {
        match from {
            Some(from) if !self.has_processor => self.platform.spins_for(from),
            _ => self.spins,
        }
    }

    /// Returns the policy for copies that another rank reads next.
    #[inline(always)]
    pub(super) fn store_policy(&self) -> &StorePolicy {
        &self.store_policy
    }

    /// Returns the hint that this rank has just given something in a call and may yield.
    #[inline(always)]
    pub(super) fn yield_hint(&self) -> &YieldHint {
        &self.yield_hint
    }

    /// Returns true if the rank has a processor of its own.
    #[inline(always)]
    pub fn has_processor(&self) -> bool {
        self.has_processor
    }

    /// Returns true if `with` is known to need this rank's processor to do what this rank waits for.
    #[inline]
    pub fn shares_processor(&self, with: Rank) -> bool {
        !self.has_processor && self.platform.shares_processor(with)
    }

    pub(super) fn polling(&self) -> &TryLock {
        &self.polling
    }

    pub(super) fn publishing_wait(&self) -> &AtomicBool {
        &self.publishing_wait
    }

    /// Returns true if calls are possible: this process is the rank, it has not left, and no rank has died. Two loads.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.fork_guard.is_alive() && !self.node_state.is_over()
    }

    /// Checks that this process is not a fork of the rank and that the rank has not left; other ranks may have died.
    pub fn check_alive(&self) -> Result<(), Cause> {
        if self.fork_guard.is_alive() { Ok(()) } else { Err(self.fork_guard.why_not()) }
    }

    /// Checks that all calls are possible.
    #[inline]
    pub fn check(&self) -> Result<(), Cause> {
        if self.is_open() { Ok(()) } else { Err(self.why_not()) }
    }

    #[cold]
    fn why_not(&self) -> Cause {
        if self.fork_guard.is_alive() {
            self.death().unwrap_or(Cause::JobOver)
        } else {
            self.fork_guard.why_not()
        }
    }

    /// Checks that the job has a rank of that number.
    #[inline]
    pub fn check_rank(&self, rank: Rank) -> Result<(), Cause> {
        if rank.index() < self.size() { Ok(()) } else { Err(Cause::NoSuchRank { rank, size: self.size() }) }
    }

    /// Returns the first death in the job, or this rank's own, as a cause.
    pub fn death(&self) -> Option<Cause> {
        let Some(death) = self.node_state.death() else { return self.fabric.is_cut_off() };
        let ago = Duration::from_nanos(self.platform.now_ns().saturating_sub(death.when_ns));
        Some(Cause::PeerDied { peer: death.rank, how: death.how, ago })
    }

    /// Returns the time in ns since a fixed moment.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.platform.now_ns()
    }

    /// Makes an error of a cause: adds the rank, the call, and the name of a handler that failed.
    #[cold]
    pub fn fault(&self, mut cause: Cause, call: impl FnOnce() -> String) -> Error {
        self.handler_table().name_handler(&mut cause);
        let error = Error::new(cause).in_call(call).on_rank(self.rank);
        self.given_failures.keep(&error);
        error
    }

    /// Returns the failure of another rank that an error of the program hides, if a call of this rank has returned one
    /// whose text the error contains; otherwise the error.
    pub fn reveal(&self, error: Error) -> Error {
        self.given_failures.reveal(error)
    }

    /// Returns when everything that this rank's fabric has accepted has arrived: signal lines,
    /// whose end is not reported, and operations that ended before they were visible. Costs one
    /// call of the fabric if nothing is in flight.
    pub fn settle(&self, call: &dyn Fn() -> String) -> Result<()> {
        if self.fabric.is_quiescent() {
            return Ok(());
        }
        self.wait(&super::Condition::Settled, Deadline::NEVER, call)
    }

    /// Leaves the job: completes all issued operations; after that no call is possible. Waits only for ranks that are
    /// needed for that.
    pub fn leave(&self) -> Result<()> {
        if !self.fork_guard.is_alive() {
            return Ok(());
        }
        self.end_calls();
        self.close_inbox();
        let completed = self.complete_until(super::Handle(self.operations.issued()), Deadline::NEVER);
        self.agent().into_iter().for_each(|agent| agent.announce_leaving(self));
        // Fails only if the job is over; then no rank waits for what is in flight.
        let _ = self.settle(&|| "leave()".into());
        self.rank_state().set_stage(RankStage::Leaving);
        self.node_state.wake_all(); // a rank that waits for this one may have to give up
        let owed = self.agent().map_or(Ok(()), |agent| agent.leave(self));
        let _ = self.settle(&|| "leave()".into()); // as above
        self.fork_guard.end();
        self.progress_last();
        self.rank_state().set_stage(RankStage::Left); // SYNC rank-left: a rank that sees it knows that no reply comes after it
        self.node_state.wake_all();
        completed.and(owed)
    }

    /// Declares that this rank has failed (a panic, an error that its program returned): the calls of the others end.
    /// `is_said`: the rank has printed the reason on its standard error, too.
    pub fn fail(&self, how: &str, is_said: bool) {
        if !self.fork_guard.end() {
            return;
        }
        let now = self.platform.now_ns();
        if is_said {
            self.node_state.declare_dead_and_printed(self.rank, how, now);
        } else {
            self.node_state.declare_dead(self.rank, how, now);
        }
        self.agent().into_iter().for_each(|agent| agent.abandon());
    }
}
