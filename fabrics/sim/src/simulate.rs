//! A run, from its first event to its report.

use crate::options::Sim;
use crate::platform::{ThreadEnd, run_thread};
use crate::scheduler::Scheduler;
use crate::state::SimState;
use crate::{SimFabric, SimPlatform};
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::node::node_state::{NodeState, RankStage};
use tasuki_core::node::park::WakeMode;
use tasuki_core::os::{affinity, process};

/// What one rank of a run gets.
#[derive(Debug)]
pub struct Member {
    /// The number of the rank.
    pub rank: Rank,
    /// The node state of the run, with a rank state for each rank.
    pub node_state: Arc<NodeState>,
    /// The fabric of the rank.
    pub fabric: Arc<SimFabric>,
    /// The clock and pauses of the rank.
    pub platform: Arc<SimPlatform>,
}

/// How one rank of a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome<R> {
    /// Its function returned.
    Returned(R),
    /// It was killed, and its calls unwound.
    Killed,
    /// Its function panicked.
    Panicked(String),
}

/// The result of a run that has ended.
#[derive(Debug)]
pub struct Report<R> {
    /// How each rank ended, by rank.
    pub outcomes: Vec<Outcome<R>>,
    /// Why the run as a whole failed: a rank panicked, a deadlock, or the time limit. The notes of the error then name
    /// the waiting ranks and their calls. Killed ranks and errors that ranks return are no failure of the run.
    pub failure: Option<Error>,
    /// A hash of all events, equal for equal runs.
    pub trace_hash: u64,
    /// Virtual time at the end, in ns.
    pub end_ns: u64,
    /// Number of scheduling points: calls of the fabric or the platform.
    pub steps: u64,
    /// Number of events between the calls: bytes read or written, completions, deaths.
    pub events: u64,
    /// How often the turn went from one thread to another.
    pub switches: u64,
    /// How often a thread was found asleep though it had something to do. If not 0, the engine has missed a wake-up.
    pub missed_wakeups: u64,
    /// A line for each event, if [`Sim::keep_trace`] was set.
    pub trace: Vec<String>,
}

impl<R> Report<R> {
    /// Returns what all ranks returned, by rank. Errors: the failure of the run, or the end of a
    /// rank that did not return.
    pub fn values(self) -> Result<Vec<R>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let value = |(rank, outcome): (usize, Outcome<R>)| {
            let rank = Rank(rank);
            match outcome {
                Outcome::Returned(value) => Ok(value),
                Outcome::Killed => {
                    let (how, ago) = ("killed by the simulator".into(), Duration::ZERO);
                    Err(Error::new(Cause::PeerDied { peer: rank, how, ago }).on_rank(rank))
                }
                Outcome::Panicked(message) => {
                    Err(Error::new(Cause::Program(format!("panicked: {message}"))).on_rank(rank))
                }
            }
        };
        self.outcomes.into_iter().enumerate().map(value).collect()
    }
}

impl Member {
    /// Joins the job and returns the rank's worker, ready for calls. The worker logs to `log`.
    pub fn join(self, log: Log) -> Result<Worker> {
        let rank_state = self.node_state.rank_state(self.rank);
        rank_state.set_pid(std::process::id());
        rank_state.set_stage(RankStage::Joined);
        Worker::new(self.rank, self.node_state, self.fabric, self.platform, log)
    }
}

/// The simulator warns of a rank that runs for that long without a call: no other rank can run meanwhile.
const SILENCE_WARNING: Duration = Duration::from_secs(10);
/// How often the silence is measured.
const SILENCE_CHECK: Duration = Duration::from_secs(1);

/// Runs `body` once for each rank that `sim` describes, in virtual time, until all ranks have ended.
///
/// Each rank has a thread; one of them runs at a time, all on the processor where the call began. Ranks may wait for
/// each other only through their fabrics and platforms. Threads of a rank must be started by
/// [`Platform::spawn`](tasuki_core::engine::Platform::spawn). Errors: `sim` has no ranks, or the system cannot provide
/// the files or threads. Cost: 0.1 us for each call, a few us for each switch between threads.
///
/// ```
/// use tasuki_core::base::Rank;
/// use tasuki_core::base::log::{Level, Log};
/// use tasuki_core::segment::{GlobalAddress, layout};
/// use tasuki_fabric_sim::{Sim, simulate};
///
/// let report = simulate(&Sim::seed(7).ranks(64), |member| {
///     let worker = member.join(Log::new("doc", Level::Warn))?;
///     let next = Rank((worker.rank().0 + 1) % 64);
///     let inbox = GlobalAddress::new(next, layout::BOOTSTRAP_MEMORY);
///     worker.put_signal(inbox, &[7; 8], GlobalAddress::new(next, layout::signal_offset(0)), 1)?;
///     worker.wait_signal(worker.fabric().own_signal(0)?, 1, None, &|| "wait".into())?;
///     worker.leave()
/// })?;
/// assert!(report.end_ns > 1_000); // one latency at least, in virtual time
/// report.values()?.into_iter().collect::<Result<Vec<()>, _>>()?;
/// # Ok::<(), tasuki_core::base::Error>(())
/// ```
pub fn simulate<R: Send>(sim: &Sim, body: impl Fn(Member) -> R + Sync) -> Result<Report<R>> {
    if sim.ranks == 0 || sim.ranks > Rank::MAX.index() {
        let most = Rank::MAX;
        return Err(Error::argument(format!("a run has 1 to {most} ranks, not {}", sim.ranks)));
    }
    if let Some(death) = sim.faults.deaths.iter().find(|death| death.rank.index() >= sim.ranks) {
        return Err(Cause::NoSuchRank { rank: death.rank, size: sim.ranks }.into());
    }
    process::allow_descriptors(sim.ranks as u64)?;
    let node_state = Arc::new(NodeState::create(sim.ranks)?);
    node_state.set_wake_mode(WakeMode::Fence);
    let run = Arc::new(Scheduler::new(SimState::new(sim, node_state.clone())?));
    let members: Result<Vec<Member>> = Rank::all(sim.ranks)
        .map(|rank| {
            let fabric = Arc::new(SimFabric::new(run.clone(), rank, sim.can, sim.limits)?);
            let platform = Arc::new(SimPlatform::new(run.clone(), rank));
            Ok(Member { rank, node_state: node_state.clone(), fabric, platform })
        })
        .collect();
    let thread_ends = run_all(sim, &run, members?, &body)?;
    let report = report(&run, thread_ends);
    let Report { trace_hash, end_ns, steps, events, switches, .. } = &report;
    Log::new("sim", sim.log).say(
        Level::Info,
        format_args!(
            "seed {}: {end_ns} ns, {steps} calls, {events} events, {switches} switches, trace {trace_hash:016x}",
            sim.seeds.start
        ),
    );
    Ok(report)
}

/// Starts a thread for each rank, lets them run, and waits for all threads of the run.
fn run_all<R: Send>(
    sim: &Sim,
    run: &Scheduler,
    members: Vec<Member>,
    body: &(impl Fn(Member) -> R + Sync),
) -> Result<Vec<Result<R, ThreadEnd>>> {
    let here = affinity::current();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut refused = None;
        for member in members {
            let actor = run.lock().add_actor(member.rank);
            let builder = std::thread::Builder::new().name(format!("rank {}", member.rank));
            let life = move || {
                bind_to(here);
                run_thread(run, actor, || body(member))
            };
            let thread = builder.stack_size(sim.stack_bytes).spawn_scoped(scope, life);
            let mut state = run.lock();
            match thread {
                Ok(thread) => {
                    state.resume_at(actor, 0);
                    threads.push(thread);
                }
                Err(error) => {
                    state.actor_ended(actor, None);
                    refused = Some(Error::from_io("thread", &error));
                    break;
                }
            }
        }
        if refused.is_some() {
            run.lock().actors.iter_mut().for_each(|actor| actor.killed = true);
        }
        run.start();
        watch_for_silent_rank(run, &Log::new("sim", sim.log));
        let thread_ends =
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(ThreadEnd::Killed))).collect();
        refused.map_or(Ok(thread_ends), Err)
    })
}

/// Binds the calling thread, and the threads that it starts, to that processor. One thread of a run runs at a time. On
/// one processor they switch two to three times as fast, because no switch has to wake another processor.
fn bind_to(processor: Option<u32>) {
    let _ = processor.map(|processor| affinity::bind(processor as usize)); // without binding the run is slower, but correct
}

/// Waits for the end of the run, and warns of a rank that keeps all others from running.
fn watch_for_silent_rank(run: &Scheduler, log: &Log) {
    let mut state = run.lock();
    let (mut steps, mut silent) = (0, Duration::ZERO);
    while state.alive > 0 {
        let waited = run.ended.wait_timeout(state, SILENCE_CHECK);
        state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        silent = if state.counts.steps == steps { silent + SILENCE_CHECK } else { Duration::ZERO };
        steps = state.counts.steps;
        if silent == SILENCE_WARNING {
            let rank = state.actors[state.running].rank;
            let text = "has run for 10 s without a call of Tasuki: it loops, or waits for another rank by other means";
            log.say(Level::Warn, format_args!("rank {rank} {text}"));
        }
    }
}

fn report<R>(run: &Scheduler, thread_ends: Vec<Result<R, ThreadEnd>>) -> Report<R> {
    let mut state = run.lock();
    let outcome = |(rank, fate): (usize, Result<R, ThreadEnd>)| match fate {
        Ok(_) if state.ranks[rank].dead => Outcome::Killed, // the program caught the panic of its death and made no more calls
        Ok(value) => Outcome::Returned(value),
        Err(ThreadEnd::Killed) => Outcome::Killed,
        Err(ThreadEnd::Panicked(message)) => Outcome::Panicked(message),
    };
    let outcomes = thread_ends.into_iter().enumerate().map(outcome).collect();
    Report {
        outcomes,
        failure: state.watch.failure.take(),
        trace_hash: state.trace.hash(),
        end_ns: state.now,
        steps: state.counts.steps,
        events: state.counts.events,
        switches: state.counts.switches,
        missed_wakeups: state.watch.missed_wakeups,
        trace: state.trace.take_lines(),
    }
}
