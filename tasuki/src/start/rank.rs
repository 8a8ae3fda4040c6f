//! Runs the program as one rank: joins the job, runs the program, leaves the job, reports errors.

use super::RankOptions;
use crate::own_rank::as_program;
use crate::{Error, Handlers, Job, Rank, Result};
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tasuki_core::base::{Cause, panic_message};
use tasuki_core::engine::Worker;
use tasuki_core::node::node_state::NodeState;

/// The place that reports a rank's error to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reporter {
    /// The caller of [`crate::local()`] or [`crate::sim()`], which get the error as their result.
    Caller,
    /// Each rank prints its error as soon as its program has returned it.
    EachRank,
    /// The rank that failed first prints its error. The errors of the other ranks only follow from it.
    FirstRank,
    /// Like `FirstRank`, in the simulator.
    Simulated,
    /// Like `FirstRank`. If a rank has died without a message, the launcher reports it, once for
    /// all ranks.
    RankOrLauncher,
}

impl Reporter {
    /// Prints an error, unless another place reports it. This happens before the other ranks learn of the failure, so
    /// that the rank's own text is on its way when the launcher learns of the death.
    fn report(self, error: Error, node_state: &NodeState) -> Error {
        // Whoever has declared a rank dead reports why: that rank itself, before it did so, or the launcher or the
        // simulator. A rank that failed by itself is declared dead after this.
        let is_reported = || {
            is_consequence(error.cause())
                && (node_state.death().is_some() || self.waits_for_cause(&error, node_state))
        };
        match self {
            Reporter::Caller => error,
            Reporter::FirstRank | Reporter::Simulated if is_reported() => error,
            Reporter::RankOrLauncher if is_reported() => error.mark_printed(),
            _ => print(error),
        }
    }

    /// Returns true if a rank dies soon after a communicator has failed. The member that has failed first has told the
    /// others before its program returns the error, so their errors may be here first. In the simulator no rank goes on
    /// while another one waits here, so this rank does not wait.
    fn waits_for_cause(self, error: &Error, node_state: &NodeState) -> bool {
        if self == Reporter::Simulated || !matches!(error.cause(), Cause::CommunicatorFailed { .. }) {
            return false;
        }
        let end = Instant::now() + CAUSE_COMES_IN;
        while node_state.death().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        node_state.death().is_some()
    }
}

/// How long the error of a communicator that has failed is held back for the report of the first failure.
const CAUSE_COMES_IN: Duration = Duration::from_millis(200);

/// Prints an error.
pub(super) fn print(error: Error) -> Error {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
    error.mark_printed()
}

/// Prints an error of a process that was forked from a rank: the error names that rank, which has not failed.
fn print_of_fork(error: Error) -> Error {
    let _ = writeln!(std::io::stderr().lock(), "error: a forked child of {error}");
    error.mark_printed()
}

thread_local! {
    /// The rank that runs its program in this thread.
    static RUNNING: RefCell<Option<RunningRank>> = const { RefCell::new(None) };
}

/// A rank that is a thread and has not ended. The C library drops it if the thread calls exit().
struct RunningRank {
    rank: Rank,
    node_state: Arc<NodeState>,
    /// The process in which dropping this value reports that the rank has ended the process; 0: in none.
    pid: u32,
}

impl Drop for RunningRank {
    fn drop(&mut self) {
        // A forked child may end in any way.
        if std::process::id() == self.pid {
            self.node_state.declare_dead(self.rank, NodeState::EXITED, NodeState::JUST_NOW);
        }
    }
}

/// Runs `body`, a rank that shares its process with others. If the rank ends the process, the node state says so.
/// Otherwise the launcher, which watches the process, could not tell which rank ended it, nor tell an exit code 0
/// from success.
pub(super) fn as_thread<T>(rank: Rank, node_state: &Arc<NodeState>, body: impl FnOnce() -> T) -> T {
    /// Removes the rank from `RUNNING`, also in a panic.
    struct RemoveOnDrop;
    impl Drop for RemoveOnDrop {
        fn drop(&mut self) {
            if let Some(mut running) = RUNNING.with_borrow_mut(Option::take) {
                running.pid = 0; // dropping it reports nothing
            }
        }
    }
    let running = RunningRank { rank, node_state: node_state.clone(), pid: std::process::id() };
    RUNNING.with_borrow_mut(|current| *current = Some(running));
    let _remove = RemoveOnDrop;
    body()
}

/// Runs `app` as one rank. An error or a panic of `app` is entered into the node state, so that the other ranks'
/// calls end, and this rank waits for nothing more. Otherwise the rank leaves the job in order.
pub(super) fn run<T>(
    rank: Rank,
    reporter: Reporter,
    node_state: &NodeState,
    rank_options: Result<RankOptions>,
    handlers: &Handlers,
    worker: impl FnOnce() -> Result<Worker>,
    app: impl FnOnce(&Job) -> Result<T>,
) -> Result<T> {
    let job = rank_options.and_then(|rank_options| Job::new(worker()?, rank_options, handlers)).map_err(
        |error| {
            let how = format!("could not join: {}", error.headline());
            let error = reporter.report(error.on_rank(rank), node_state);
            if error.is_printed() {
                node_state.declare_dead_and_printed(rank, &how, NodeState::JUST_NOW);
            } else {
                node_state.declare_dead(rank, &how, NodeState::JUST_NOW);
            }
            error
        },
    )?;
    let worker = job.worker.clone();
    let outcome = match catch_unwind(AssertUnwindSafe(|| as_program(rank, || app(&job)))) {
        Ok(Ok(value)) => {
            job.helper.end();
            worker.leave().map(|()| value)
        }
        Ok(Err(error)) => {
            let error = worker.reveal(error);
            let headline = error.headline();
            let how = format!("its program failed: {}", headline.lines().next().unwrap_or_default());
            let error = error.on_rank(rank);
            let error = match reporter {
                // To the job, the end of the child means nothing.
                Reporter::Caller => error,
                _ if worker.fork_guard().is_forked() => print_of_fork(error),
                _ => reporter.report(error, node_state),
            };
            worker.fail(&how, error.is_printed());
            Err(error)
        }
        // The simulation has killed this rank and reports it itself.
        Err(panic) if panic.is::<tasuki_fabric_sim::Killed>() => resume_unwind(panic),
        Err(panic) => {
            let how = format!("panicked: {}", panic_message(&*panic));
            // Rust has printed the panic.
            let error = panicked(panic_message(&*panic)).on_rank(rank);
            let error = if reporter == Reporter::Caller { error } else { error.mark_printed() };
            worker.fail(&how, error.is_printed());
            Err(error)
        }
    };
    worker.write_trace();
    outcome
}

/// The error of a rank that panicked.
pub(super) fn panicked(message: &str) -> Error {
    Error::new(Cause::Program(format!("panicked: {message}")))
}

/// Returns true if an error only reports a consequence of another rank's end.
fn is_consequence(cause: &Cause) -> bool {
    match cause {
        Cause::PeerDied { .. } | Cause::QueueDropped | Cause::QueueUnwound { .. } => true,
        Cause::CommunicatorFailed { .. } | Cause::JobOver => true,
        Cause::Poisoned { cause, .. } => is_consequence(cause),
        _ => false,
    }
}

/// The values of all ranks, or the first cause of failure: an error that is not a consequence of another rank's end,
/// if there is one.
pub(super) fn all_or_first<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(outcomes.len());
    let mut first: Option<Error> = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(value) => values.push(value),
            Err(error) => {
                let error = error.on_rank(Rank(rank));
                let is_better =
                    |first: &Error| is_consequence(first.cause()) && !is_consequence(error.cause());
                if first.as_ref().is_none_or(is_better) {
                    first = Some(error);
                }
            }
        }
    }
    first.map_or(Ok(values), Err)
}
