//! The program's main function: the environment decides whether it becomes one rank or several.

use super::RankOptions;
use super::local::{per_processor, threads, worker};
use super::rank::{self, Reporter};
use super::simulated::launched;
use crate::{Error, Handlers, Job, Rank, Result};
use std::borrow::Borrow;
use std::io::Write;
use std::process::ExitCode;
use tasuki_core::base::{Cause, ProgramError};
use tasuki_core::bootstrap::{Settings, Start, join};
use tasuki_core::engine::running_handler;
use tasuki_core::os::membarrier::FenceScope;

/// Runs `app` as this process's part of a job and returns the exit code: 0, or 1 after an error or a panic.
///
/// An error is printed on standard error and names the rank. A panic is an error, too: if this process is one rank of
/// several, a line before the panic's own text names the rank. `tasuki run` reports the death of another rank.
///
/// Started alone, the process is a job of one rank. Started by `tasuki run`, it is one rank of several, or all ranks
/// of the job with `--threads` or `--fabric sim`. Started by the `mpiexec` of MPICH or Intel MPI, it is one rank of
/// several; rank 0 then returns when all ranks have left. If another program starts it several times as parts of a
/// job, that is an error, because N jobs of one rank would be mistaken for a job of N ranks.
///
/// The program may return any error: [`Result`](crate::Result), in which `?` also converts the usual errors of the
/// standard library, `Result<(), Box<dyn Error + Send + Sync>>`, or a `Result` of the crate anyhow.
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
pub fn main<E: Into<ProgramError>>(app: impl Fn(&Job) -> Result<(), E> + Sync) -> ExitCode {
    main_with(Handlers::new(), app)
}

/// Runs `app` like [`main`](main()), with handlers on each rank.
///
/// ```no_run
/// use tasuki::{Handler, Handlers, Job, Request};
///
/// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
///
/// fn app(job: &Job) -> tasuki::Result<()> {
///     assert_eq!(DOUBLE.call(job, job.rank_after(1), &21)?.wait()?, 42);
///     job.barrier()
/// }
///
/// fn main() -> std::process::ExitCode {
///     tasuki::main_with(Handlers::new().add(DOUBLE), app)
/// }
/// ```
pub fn main_with<E: Into<ProgramError>>(
    handlers: impl Borrow<Handlers>,
    app: impl Fn(&Job) -> Result<(), E> + Sync,
) -> ExitCode {
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(error) => return report(error),
    };
    match run(&settings, handlers.borrow(), any_error(app)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_printed() || launcher_reports(&settings, &error) => ExitCode::FAILURE,
        Err(error) => report(error),
    }
}

/// Runs `app` as the environment says, like [`main_with`], and returns its error. An error that was printed says so.
pub(crate) fn run_from_environment(
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<()> + Sync,
) -> Result<()> {
    run(&Settings::from_environment()?, handlers, app)
}

/// Makes a program that returns any error fit for [`local`](crate::local()), [`sim`](crate::sim()) and their kin, whose
/// programs return [`Result`](crate::Result).
///
/// ```
/// fn app(job: &tasuki::Job) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     let number: u32 = "7".parse()?;
///     job.barrier()?;
///     Ok(number)
/// }
///
/// assert_eq!(tasuki::local(2, tasuki::any_error(app))?, [7, 7]);
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn any_error<T, E: Into<ProgramError>>(
    app: impl Fn(&Job) -> Result<T, E> + Sync,
) -> impl Fn(&Job) -> Result<T> + Sync {
    move |job| app(job).map_err(Error::program)
}

/// Returns true for a death that ends the start of a job: the launcher reports it once for all ranks.
fn launcher_reports(settings: &Settings, error: &Error) -> bool {
    matches!(settings.start, Start::Launched(_)) && matches!(error.cause(), Cause::PeerDied { .. })
}

fn run(settings: &Settings, handlers: &Handlers, app: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    match &settings.start {
        Start::Alone => threads(1, Reporter::FirstRank, settings, None, handlers, app).map(drop),
        Start::Threads { ranks, server } => {
            threads(*ranks, Reporter::FirstRank, settings, server.as_ref(), handlers, app).map(drop)
        }
        Start::Launched(launcher) => {
            one_of_several(launcher.rank, Reporter::RankOrLauncher, settings, handlers, app)
        }
        Start::Managed(managed) => one_of_several(managed.rank, Reporter::EachRank, settings, handlers, app),
        Start::Simulated { ranks, seed, server } => {
            launched(*ranks, *seed, settings, server.as_ref(), handlers, app).map(drop)
        }
    }
}

/// Runs this process as one rank of a job of several processes.
fn one_of_several(
    rank: Rank,
    reporter: Reporter,
    settings: &Settings,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<()>,
) -> Result<()> {
    name_rank_in_panics(rank);
    let (membership, connection) = join(settings)?;
    let node_state = membership.node_state.clone();
    let worker = || worker(membership, settings, FenceScope::Registered);
    let rank_options = RankOptions::read(settings, per_processor(&node_state));
    rank::run(rank, reporter, &node_state, rank_options, handlers, worker, app)?;
    connection.leave();
    Ok(())
}

/// Prints the rank's number before the panic text of Rust or of the program's own hook. A panic of a handler ends no
/// rank, so it is reported as the handler's.
fn name_rank_in_panics(rank: Rank) {
    let (print, of_rank) = (std::panic::take_hook(), std::process::id());
    std::panic::set_hook(Box::new(move |panic| {
        let whose = if std::process::id() == of_rank { "" } else { "a forked child of " };
        let who = match running_handler() {
            Some((name, caller)) => {
                format!("handler {name:?} of {whose}rank {rank}, called by rank {caller},")
            }
            None => format!("{whose}rank {rank}"),
        };
        let _ = writeln!(std::io::stderr().lock(), "error: {who} panicked:");
        print(panic);
    }));
}

fn report(error: Error) -> ExitCode {
    rank::print(error);
    ExitCode::FAILURE
}
