//! One rank's run of the program: made, run, left, and its failure told.

use super::RankOptions;
use crate::{Error, Handlers, Job, Rank, Result};
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tasuki_core::base::{Cause, panic_message};
use tasuki_core::engine::Worker;
use tasuki_core::node::node_state::NodeState;

/// Who tells the user of a rank's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Teller {
    /// Whoever called [`crate::local()`] or [`crate::sim()`], to whom it is returned.
    Caller,
    /// Each rank, as soon as its program has returned it.
    EachRank,
    /// The rank that failed first: the others' errors only follow from its own.
    FirstRank,
    /// The same, and that a rank has died without a word the launcher tells, once for all.
    RankOrLauncher,
}

impl Teller {
    /// Tells of an error, unless that is somebody else's to do. It is done before the others hear of it: when the
    /// launcher learns of the death, the rank's own text is on its way.
    fn tell(self, error: Error, node_state: &NodeState) -> Error {
        let another_died = || node_state.death().is_some_and(|death| error.rank() != Some(death.rank));
        match self {
            Teller::Caller => error,
            Teller::FirstRank if follows(error.cause()) && another_died() => error,
            Teller::RankOrLauncher if follows(error.cause()) && another_died() => error.mark_printed(),
            _ => tell(error),
        }
    }
}

/// Prints an error.
pub(super) fn tell(error: Error) -> Error {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
    error.mark_printed()
}

thread_local! {
    /// The rank that runs its program in this thread.
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// A rank that is a thread and has not ended. The C library drops it where the thread calls exit().
struct Running {
    rank: Rank,
    node_state: Arc<NodeState>,
    /// The process in which dropping it says that the rank has ended it; 0: none.
    pid: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A forked child may end as it likes.
        if std::process::id() == self.pid {
            self.node_state.declare_dead(self.rank, NodeState::EXITED, NodeState::JUST_NOW);
        }
    }
}

/// Runs `body`, a rank that shares its process with others. If it ends the process, the node state says so: otherwise
/// whoever watches the process could not tell which rank did, nor an exit code 0 from success.
pub(super) fn as_thread<T>(rank: Rank, node_state: &Arc<NodeState>, body: impl FnOnce() -> T) -> T {
    /// ArgumentSize the rank back, also in a panic.
    struct Ended;
    impl Drop for Ended {
        fn drop(&mut self) {
            if let Some(mut running) = RUNNING.with_borrow_mut(Option::take) {
                running.pid = 0; // dropped without a word
            }
        }
    }
    let running = Running { rank, node_state: node_state.clone(), pid: std::process::id() };
    RUNNING.with_borrow_mut(|place| *place = Some(running));
    let _ended = Ended;
    body()
}

/// Runs `app` as one rank. An error or a panic of it is told to the node state, so that the others' calls end; then
/// nothing waits for anybody. Otherwise the rank leaves in order.
pub(super) fn run<T>(
    rank: Rank,
    teller: Teller,
    node_state: &NodeState,
    rank_options: Result<RankOptions>,
    handlers: &Handlers,
    worker: impl FnOnce() -> Result<Worker>,
    app: impl FnOnce(&Job) -> Result<T>,
) -> Result<T> {
    let job = rank_options.and_then(|rank_options| Job::new(worker()?, rank_options, handlers)).map_err(
        |error| {
            let how = format!("could not join: {}", error.headline());
            let error = teller.tell(error.on_rank(rank), node_state);
            if error.is_printed() {
                node_state.declare_dead_and_printed(rank, &how, NodeState::JUST_NOW);
            } else {
                node_state.declare_dead(rank, &how, NodeState::JUST_NOW);
            }
            error
        },
    )?;
    let worker = job.worker.clone();
    let outcome = match catch_unwind(AssertUnwindSafe(|| app(&job))) {
        Ok(Ok(value)) => {
            job.helper.end();
            worker.leave().map(|()| value)
        }
        Ok(Err(error)) => {
            let how = format!("its program failed: {}", error.headline());
            let error = teller.tell(error.on_rank(rank), node_state);
            worker.fail(&how, error.is_printed());
            Err(error)
        }
        // The simulation has killed this rank and tells the others itself.
        Err(panic) if panic.is::<tasuki_fabric_sim::Killed>() => resume_unwind(panic),
        Err(panic) => {
            let how = format!("panicked: {}", panic_message(&*panic));
            // Rust has printed the panic.
            let error = panicked(panic_message(&*panic)).on_rank(rank);
            let error = if teller == Teller::Caller { error } else { error.mark_printed() };
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

/// Whether an error only says what another rank's end led to.
fn follows(cause: &Cause) -> bool {
    match cause {
        Cause::PeerDied { .. } | Cause::QueueDropped | Cause::QueueUnwound { .. } => true,
        Cause::Poisoned { cause, .. } => follows(cause),
        _ => false,
    }
}

/// Of the ranks' outcomes, all values, or the error that came first: the one that no other rank's end explains.
pub(super) fn all_or_first<T>(outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(outcomes.len());
    let mut first: Option<Error> = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(value) => values.push(value),
            Err(error) => {
                let error = error.on_rank(Rank(rank as u32));
                let is_better = |first: &Error| follows(first.cause()) && !follows(error.cause());
                if first.as_ref().is_none_or(is_better) {
                    first = Some(error);
                }
            }
        }
    }
    first.map_or(Ok(values), Err)
}
