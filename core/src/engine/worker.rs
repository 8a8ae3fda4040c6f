//! One rank's machine: its fabric, its host, its node state, and the operations under way.

use super::active_message::ActiveMessages;
use super::command_queue::CommandQueues;
use super::executor::YieldHint;
use super::fork_guard::ForkGuard;
use super::operation::set::OperationSet;
use super::sync::try_lock::TryLock;
use super::trace::{Recorder, TraceTo};
use super::user_operators::UserOperators;
use super::wait::WaitEvent;
use super::wait::helper::NodeHelper;
use super::wait::platform::Platform;
use super::wait::probe::WaitProbes;
use crate::base::log::Log;
use crate::base::{Cause, Error, Rank, Result};
use crate::fabric::Fabric;
use crate::node::node_state::{NodeState, RankState, Stage, UnderWay};
use crate::os::store_policy::StorePolicy;
use crate::segment::Registry;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Everything that a rank needs for one-sided operations. Any thread of the rank may make any call.
#[derive(Debug)]
pub struct Worker {
    rank: Rank,
    serial: u64,
    node_state: Arc<NodeState>,
    fabric: Arc<dyn Fabric>,
    platform: Arc<dyn Platform>,
    life: ForkGuard,
    operations: OperationSet,
    commands: CommandQueues,
    operators: UserOperators,
    wait_probes: WaitProbes,
    spins: u32,
    has_processor: bool,
    outward: StorePolicy,
    yield_hint: YieldHint,
    polling: TryLock,
    telling: AtomicBool,
    agent: OnceLock<Arc<dyn Agent>>,
    node_helper: NodeHelper,
    calls: OnceLock<ActiveMessages>,
    recorder: Option<Box<Recorder>>,
    log: Log,
}

/// Workers that this process has made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// What a model has under way that any waiting call of the rank moves on.
pub trait Agent: Send + Sync + Debug {
    /// Moves on what can be moved on now; never waits. One thread at a time calls it. Whether [`Agent::tell`] is to be
    /// called.
    fn advance(&self, worker: &Worker) -> bool;

    /// ActiveMessages the program's code that waited for what has ended. Nothing is being moved on then: it may call the rank.
    fn tell(&self);

    /// Whether that would do something. Asked before the rank sleeps.
    fn has_work(&self) -> bool;

    /// Whether something is under way that a peer's word may move on, for which no helper is woken.
    fn is_busy(&self) -> bool;

    /// What goes on in it while the program waits for that.
    fn under_way(&self, _awaited: Option<&Arc<dyn WaitEvent>>) -> UnderWay {
        UnderWay::default()
    }

    /// The rank is about to say that it is leaving: tells its peers what they may still expect.
    fn promise(&self, worker: &Worker);

    /// The rank is leaving and begins nothing new: returns when what it owes its peers is done, with what is not.
    fn leave(&self, worker: &Worker) -> Result<()>;
}

impl Worker {
    /// The machine of `rank`, over a fabric and a host made for it.
    pub fn new(
        rank: Rank,
        node_state: Arc<NodeState>,
        fabric: Arc<dyn Fabric>,
        platform: Arc<dyn Platform>,
        log: Log,
    ) -> Result<Worker> {
        let commands = CommandQueues::new(rank, &*fabric).map_err(Error::new)?;
        Ok(Worker {
            rank,
            serial: MADE.fetch_add(1, Ordering::Relaxed),
            fabric,
            commands,
            life: ForkGuard::new()?,
            operations: OperationSet::new(rank),
            operators: UserOperators::default(),
            wait_probes: WaitProbes::default(),
            spins: platform.spins(),
            has_processor: platform.has_processor(),
            outward: StorePolicy::default(),
            yield_hint: YieldHint::default(),
            platform,
            node_state,
            polling: TryLock::default(),
            telling: AtomicBool::new(false),
            agent: OnceLock::new(),
            node_helper: NodeHelper::default(),
            calls: OnceLock::new(),
            recorder: None,
            log,
        })
    }

    /// The same, recording what happens to it, if that is asked for. Waits then begin without the moment of looking in
    /// which short ones end unseen.
    pub fn traced(mut self, to: Option<&TraceTo>) -> Worker {
        if let Some(to) = to {
            let is_virtual = !self.platform.lets_threads_sleep();
            self.recorder = Some(Recorder::new(to, self.rank, self.size(), is_virtual).into());
            self.spins = 0;
        }
        self
    }

    /// A number that no other machine of this process has, or had: addresses are used again.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What it records into, if it does.
    #[inline(always)]
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Writes what it has recorded, if it has: once, when the rank's program has ended, however.
    pub fn write_trace(&self) {
        let Some(recorder) = self.recorder().filter(|_| !self.life.is_forked()) else { return };
        if let Err((file, error)) = recorder.write() {
            let text = format_args!("what happened could not be written to {}: {error}", file.display());
            self.log.say(crate::base::log::Level::Warn, text);
        }
    }

    /// Which rank this is.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many ranks the job has.
    #[inline]
    pub fn size(&self) -> usize {
        self.node_state.size()
    }

    /// The node's node state.
    #[inline]
    pub fn node_state(&self) -> &NodeState {
        &self.node_state
    }

    /// This rank's words on the node state.
    pub fn rank_state(&self) -> &RankState {
        self.node_state.rank_state(self.rank)
    }

    /// What carries its bytes.
    #[inline]
    pub fn fabric(&self) -> &dyn Fabric {
        &*self.fabric
    }

    /// The same, for what outlives a call.
    pub fn shared_fabric(&self) -> &Arc<dyn Fabric> {
        &self.fabric
    }

    /// Who starts the node's helper here, if it is to come to this rank.
    pub(super) fn node_helper(&self) -> &NodeHelper {
        &self.node_helper
    }

    /// The one agent that waiting calls move on from now on.
    pub fn set_agent(&self, agent: Arc<dyn Agent>) {
        let first = self.agent.set(agent).is_ok();
        debug_assert!(first, "a machine has one agent");
    }

    pub(super) fn agent(&self) -> Option<&dyn Agent> {
        self.agent.get().map(|agent| &**agent)
    }

    pub(super) fn agent_has_work(&self) -> bool {
        self.agent().is_some_and(Agent::has_work)
    }

    pub(super) fn agent_is_busy(&self) -> bool {
        self.agent().is_some_and(Agent::is_busy)
    }

    /// What it has where it answers calls.
    #[inline(always)]
    pub(super) fn calls(&self) -> Option<&ActiveMessages> {
        self.calls.get()
    }

    /// It answers calls from now on.
    pub(super) fn set_calls(&self, calls: ActiveMessages) {
        let first = self.calls.set(calls).is_ok();
        debug_assert!(first, "handlers are given once");
        self.commands.begin_to_answer();
    }

    /// Wakes threads of this rank that sleep: this one has done something that another waits for.
    pub fn stir(&self) {
        self.rouse(self.rank);
    }

    /// Wakes threads of a rank that sleep: what they wait for has been stored.
    #[inline]
    pub(super) fn rouse(&self, rank: Rank) {
        let rank_state = self.node_state.rank_state(rank);
        if rank_state.park().needs_wake(self.node_state.wake_mode()) {
            rank_state.wake_futex();
        }
    }

    /// Its clock and pause.
    pub fn platform(&self) -> &dyn Platform {
        &*self.platform
    }

    /// What it has registered.
    pub fn registry(&self) -> &Registry {
        self.fabric.registry()
    }

    /// Its voice.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Whether it is still the rank that joined.
    pub fn life(&self) -> &ForkGuard {
        &self.life
    }

    /// Whether nothing that this rank issued is unfinished.
    pub fn is_idle(&self) -> bool {
        self.operations.unfinished() == 0
    }

    pub(super) fn operations(&self) -> &OperationSet {
        &self.operations
    }

    #[inline(always)]
    pub(super) fn wait_probes(&self) -> &WaitProbes {
        &self.wait_probes
    }

    pub(super) fn operators(&self) -> &UserOperators {
        &self.operators
    }

    pub(super) fn commands(&self) -> &CommandQueues {
        &self.commands
    }

    /// How many times to look at a word before the first pause: one that `from` writes, if only one rank does.
    #[inline(always)]
    pub fn spins(&self, from: Option<Rank>) -> u32 {
        match from {
            Some(from) if !self.has_processor => self.platform.spins_for(from),
            _ => self.spins,
        }
    }

    /// How this rank copies to where another one reads next.
    #[inline(always)]
    pub(super) fn outward(&self) -> &StorePolicy {
        &self.outward
    }

    /// Whether it has just given something in a call.
    #[inline(always)]
    pub(super) fn yield_hint(&self) -> &YieldHint {
        &self.yield_hint
    }

    /// Whether the rank has a processor of its own.
    #[inline(always)]
    pub(super) fn has_processor(&self) -> bool {
        self.has_processor
    }

    /// Whether `with` needs this rank's processor to do what this rank waits for, as far as that is known.
    #[inline]
    pub fn shares_processor(&self, with: Rank) -> bool {
        !self.has_processor && self.platform.shares_processor(with)
    }

    pub(super) fn polling(&self) -> &TryLock {
        &self.polling
    }

    pub(super) fn telling(&self) -> &AtomicBool {
        &self.telling
    }

    /// Whether calls are possible: this is the rank, it has not left, and nobody has died. Two loads.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.life.is_alive() && !self.node_state.is_over()
    }

    /// That this is no fork of the rank, and the rank has not left; others may have died.
    pub fn check_alive(&self) -> Result<(), Cause> {
        if self.life.is_alive() { Ok(()) } else { Err(self.life.why_not()) }
    }

    /// Whether all calls are possible, with the reason if they are not.
    #[inline]
    pub fn check(&self) -> Result<(), Cause> {
        if self.is_open() { Ok(()) } else { Err(self.why_not()) }
    }

    #[cold]
    fn why_not(&self) -> Cause {
        if self.life.is_alive() { self.death().unwrap_or(Cause::JobOver) } else { self.life.why_not() }
    }

    /// That no rank of such a number is there, if so.
    #[inline]
    pub fn check_rank(&self, rank: Rank) -> Result<(), Cause> {
        if rank.index() < self.size() { Ok(()) } else { Err(Cause::NoSuchRank { rank, size: self.size() }) }
    }

    /// The first death in the job, as a cause; or this rank's own.
    pub fn death(&self) -> Option<Cause> {
        let Some(death) = self.node_state.death() else { return self.fabric.is_cut_off() };
        let ago = Duration::from_nanos(self.platform.now_ns().saturating_sub(death.when_ns));
        Some(Cause::PeerDied { peer: death.rank, how: death.how, ago })
    }

    /// Nanoseconds since some time.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.platform.now_ns()
    }

    /// Completes a cause with rank and call, and with the name of a handler that failed.
    #[cold]
    pub fn fault(&self, mut cause: Cause, call: impl FnOnce() -> String) -> Error {
        self.name_handler(&mut cause);
        Error::new(cause).in_call(call).on_rank(self.rank)
    }

    /// Returns when all that this rank's fabric has taken from it has arrived: lines, of whose end nobody is told, and
    /// what ended before it was visible. One call of the fabric where nothing is on its way.
    pub fn settle(&self, call: &dyn Fn() -> String) -> Result<()> {
        if self.fabric.is_quiescent() { Ok(()) } else { self.wait(&super::Condition::Settled, None, call) }
    }

    /// Leaves the job in order: everything issued is completed, then no call is possible. Never waits for a rank
    /// that is not needed for that.
    pub fn leave(&self) -> Result<()> {
        if !self.life.is_alive() {
            return Ok(());
        }
        self.end_calls();
        self.close_inbox();
        let completed = self.complete(super::Handle(self.operations.issued()));
        self.agent().into_iter().for_each(|agent| agent.promise(self));
        // Fails only if the job is over, and then nobody waits for what is on its way.
        let _ = self.settle(&|| "leave()".into());
        self.rank_state().set_stage(Stage::Leaving);
        self.node_state.wake_all(); // who waits for this rank may wait in vain
        let owed = self.agent().map_or(Ok(()), |agent| agent.leave(self));
        let _ = self.settle(&|| "leave()".into()); // as above
        self.life.end();
        self.progress_last();
        self.rank_state().set_stage(Stage::Left); // SYNC rank_state-left: who sees it knows that no answer comes after it
        self.node_state.wake_all();
        completed.and(owed)
    }

    /// Says that this rank failed (a panic, an error that its program returned): the others' calls end. `is_said` if
    /// the rank has told that on its standard error, too.
    pub fn fail(&self, how: &str, is_said: bool) {
        if !self.life.end() {
            return;
        }
        let now = self.platform.now_ns();
        if is_said {
            self.node_state.declare_dead_and_printed(self.rank, how, now);
        } else {
            self.node_state.declare_dead(self.rank, how, now);
        }
    }
}
