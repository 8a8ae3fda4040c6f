//! The program's main function: how it was started decides what it becomes.

use super::local::{per_processor, threads, worker};
use super::simulated::started;
use super::{RankOptions, rank};
use crate::{Error, Handlers, Job, Result};
use std::io::Write;
use std::process::ExitCode;
use tasuki_core::base::Cause;
use tasuki_core::bootstrap::{Settings, Start, join};
use tasuki_core::os::membarrier::FenceScope;

/// Runs `app` as this process's part of a job, and turns its outcome into an exit code: 0, or 1 with the error on
/// standard error. That another rank died is left to `tasuki run` to tell.
///
/// Alone the process is a job of one; started by `tasuki run` it is one rank of several, or, with `--threads` or
/// `--fabric sim`, all of them. Started by the `mpiexec` of MPICH or Intel MPI it is one rank of several, too; rank 0
/// then returns from here when all have left. Started several times by something else, it is an error: N jobs of one
/// would only look like a job of N.
///
/// ```no_run
/// fn app(job: &tasuki::Job) -> tasuki::Result<()> {
///     println!("rank {} of {}", job.rank(), job.size());
///     job.barrier()
/// }
///
/// fn main() -> std::process::ExitCode {
///     tasuki::main(app)
/// }
/// ```
pub fn main(app: impl Fn(&Job) -> Result<()> + Sync) -> ExitCode {
    main_with(&Handlers::new(), app)
}

/// [`main`](main()) of a program with handlers.
///
/// ```no_run
/// use tasuki::{HandlerCx, Handlers, Job};
///
/// fn double(_: &HandlerCx<'_>, value: u64) -> u64 {
///     2 * value
/// }
///
/// fn app(job: &Job) -> tasuki::Result<()> {
///     let twice: u64 = job.call_with_reply(job.rank_after(1), "double", &21_u64)?.wait()?;
///     assert_eq!(twice, 42);
///     job.barrier()
/// }
///
/// fn main() -> std::process::ExitCode {
///     tasuki::main_with(&Handlers::new().add("double", double), app)
/// }
/// ```
pub fn main_with(handlers: &Handlers, app: impl Fn(&Job) -> Result<()> + Sync) -> ExitCode {
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(error) => return report(&error),
    };
    match run(&settings, handlers, app) {
        Ok(()) => ExitCode::SUCCESS,
        // The launcher tells of a death, once for all ranks.
        Err(error) if is_told(&settings, &error) => ExitCode::FAILURE,
        Err(error) => report(&error),
    }
}

fn is_told(settings: &Settings, error: &Error) -> bool {
    matches!(settings.start, Start::LauncherSettings(_)) && matches!(error.cause(), Cause::PeerDied { .. })
}

fn run(settings: &Settings, handlers: &Handlers, app: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    match &settings.start {
        Start::Alone => threads(1, settings, None, handlers, app).map(drop),
        Start::Threads { ranks, door } => threads(*ranks, settings, door.as_ref(), handlers, app).map(drop),
        Start::LauncherSettings(_) | Start::Managed(_) => one_of_several(settings, handlers, app),
        Start::Simulated { ranks, seed, door } => {
            started(*ranks, *seed, settings, door.as_ref(), handlers, app).map(drop)
        }
    }
}

/// This process is one rank of a job of several processes.
fn one_of_several(settings: &Settings, handlers: &Handlers, app: impl Fn(&Job) -> Result<()>) -> Result<()> {
    let (membership, connection) = join(settings)?;
    let (rank, node_state) = (membership.rank, membership.node_state.clone());
    let worker = || worker(membership, settings, FenceScope::Registered);
    let rank_options = RankOptions::read(settings, per_processor(&node_state));
    rank::run(rank, &node_state, rank_options, handlers, worker, app)?;
    connection.leave();
    Ok(())
}

fn report(error: &Error) -> ExitCode {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
    ExitCode::FAILURE
}
