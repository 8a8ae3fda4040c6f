//! Ranks as threads of this process: the fastest way to run a job.

use super::RankOptions;
use super::rank::{self, Reporter};
use crate::{Handlers, Job, Rank, Result};
use std::borrow::Borrow;
use std::sync::Arc;
use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Error, panic_message};
use tasuki_core::bootstrap::settings::ServerAddress;
use tasuki_core::bootstrap::{Membership, Settings, rendezvous_client};
use tasuki_core::engine::{NodePlatform, Worker};
use tasuki_core::node::node_state::{NodeState, RankStage};
use tasuki_core::node::park::WakeMode;
use tasuki_core::os::membarrier::{self, FenceScope};
use tasuki_core::os::{affinity, memfile::MemFile, process};
use tasuki_core::segment::MappedRange;
use tasuki_fabric_shm::{Options, ShmFabric};

/// Runs `app` on `ranks` threads of this process, each a rank of one job. Returns their values by rank, or the first
/// error.
///
/// Memory, signals and waits work as between processes. Use it for a first try, for tests, and for programs without
/// state of the whole process. Several jobs may run at the same time. If a rank panics or returns an error, the other
/// ranks' calls end with an error that names it. Cost: a thread and a memory file for each rank.
///
/// ```
/// let sizes = tasuki::local(3, |job| Ok(job.size()))?;
/// assert_eq!(sizes, [3, 3, 3]);
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn local<T: Send>(ranks: usize, app: impl Fn(&Job) -> Result<T> + Sync) -> Result<Vec<T>> {
    local_with(ranks, Handlers::new(), app)
}

/// Runs `app` like [`local`], with handlers on each rank.
///
/// ```
/// use tasuki::{Handler, Handlers, Request};
///
/// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
/// let doubled = tasuki::local_with(2, Handlers::new().add(DOUBLE), |job| {
///     let doubled = DOUBLE.call(job, job.rank_after(1), &21)?.wait()?;
///     job.barrier()?;
///     Ok(doubled)
/// })?;
/// assert_eq!(doubled, [42, 42]);
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn local_with<T: Send>(
    ranks: usize,
    handlers: impl Borrow<Handlers>,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    threads(ranks, Reporter::Caller, &Settings::embedded()?, None, handlers.borrow(), app)
}

/// Runs `app` like [`local_with`], with settings that were read before. If there is a launcher, the
/// node state is sent to it.
pub(super) fn threads<T: Send>(
    ranks: usize,
    reporter: Reporter,
    settings: &Settings,
    server: Option<&ServerAddress>,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if ranks == 0 || ranks > Rank::MAX.index() {
        return Err(Error::argument(format!("a job has 1 to {} ranks, not {ranks}", Rank::MAX)));
    }
    let node_state = Arc::new(NodeState::create(ranks)?);
    Rank::all(ranks).for_each(|rank| node_state.rank_state(rank).set_pid(std::process::id()));
    node_state.set_wake_mode(wake_mode(ranks, settings));
    process::allow_descriptors(ranks as u64)?;
    let files: Result<Vec<Arc<MemFile>>> = (0..ranks).map(|_| MappedRange::create_file()).collect();
    let files = files?;
    let _launcher =
        server.map(|server| rendezvous_client::send_node_state(server, &node_state, &files)).transpose()?;
    let app = &app;
    let outcomes: Vec<Result<T>> = std::thread::scope(|scope| {
        let start = |rank: Rank| {
            let membership = Membership { rank, node_state: node_state.clone(), files: files.clone() };
            let node_state = node_state.clone();
            let worker = move || worker(membership, settings, FenceScope::Process);
            let rank_options = RankOptions::read(settings, per_processor(&node_state));
            let run = move |node_state: &NodeState| {
                rank::run(rank, reporter, node_state, rank_options, handlers, worker, app)
            };
            let body = move || rank::as_thread(rank, &node_state, || run(&node_state));
            std::thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, body)
        };
        let threads: Vec<_> = Rank::all(ranks).map(|rank| (rank, start(rank))).collect();
        // All deaths are declared before any thread is joined, because the other ranks wait for the missing ones.
        for (rank, thread) in &threads {
            if let Err(error) = thread {
                let how = format!("its thread could not be started: {error}");
                node_state.declare_dead(*rank, &how, NodeState::JUST_NOW);
            }
        }
        threads.into_iter().map(|(rank, thread)| joined(rank, thread)).collect()
    });
    rank::all_or_first(outcomes)
}

/// The outcome of a rank's thread.
fn joined<T>(rank: Rank, thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Result<T>>>) -> Result<T> {
    match thread {
        Ok(thread) => thread.join().unwrap_or_else(|panic| {
            Err(Error::new(Cause::Bug(format!("a rank's thread panicked: {}", panic_message(&*panic)))))
        }),
        Err(error) => {
            let why =
                format!("{error}: raise the limit of threads (`ulimit -u`, pids.max), or run fewer ranks");
            Err(Error::new(Cause::System { call: "starting a rank's thread", why }).on_rank(rank))
        }
    }
}

/// The way in which writers find sleeping ranks in a job of threads.
fn wake_mode(ranks: usize, settings: &Settings) -> WakeMode {
    let registered = membarrier::register(FenceScope::Process, settings.disabled);
    match settings.wake {
        Some(WakeMode::Membarrier) if registered => WakeMode::Membarrier,
        None if registered && ranks <= affinity::usable() => WakeMode::Membarrier,
        _ => WakeMode::Fence,
    }
}

/// The number of ranks that share a processor, as far as this rank knows.
pub(super) fn per_processor(node_state: &NodeState) -> usize {
    match node_state.wake_mode() {
        WakeMode::Membarrier => 1,
        WakeMode::Fence => node_state.size().div_ceil(affinity::usable()),
    }
}

/// Makes the worker of a rank on real processors.
pub(super) fn worker(membership: Membership, settings: &Settings, group: FenceScope) -> Result<Worker> {
    let options = Options {
        disabled: settings.disabled,
        request_owner: settings.own_memory_by_request,
        direct_signals: settings.direct,
        direct_from: settings.direct_from,
    };
    let fabric = Arc::new(ShmFabric::new(&membership, options)?);
    let Membership { rank, node_state, .. } = membership;
    node_state.rank_state(rank).set_stage(RankStage::Joined);
    let platform = Arc::new(NodePlatform::new(rank, node_state.clone(), group));
    let log = Log::new(format!("rank {rank}"), settings.log);
    log.say(Level::Info, format_args!("fabric shm, wake mode {:?}", node_state.wake_mode()));
    Ok(Worker::new(rank, node_state, fabric, platform, log)?.with_trace(settings.trace.as_ref()))
}
