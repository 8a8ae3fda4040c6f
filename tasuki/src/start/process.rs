//! The program's main function: how it was started decides what it becomes.

use super::RankOptions;
use super::local::{per_processor, threads, worker};
use super::rank::{self, Teller};
use super::simulated::started;
use crate::{Error, Handlers, Job, Rank, Result};
use std::io::Write;
use std::process::ExitCode;
use tasuki_core::base::Cause;
use tasuki_core::bootstrap::{Settings, Start, join};
use tasuki_core::os::membarrier::FenceScope;

/// Runs `app` as this process's part of a job, and turns its outcome into an exit code: 0, or 1 with the error on
/// standard error, which names the rank. A panic is an error, too: where this process is one rank of several, a line
/// before the panic's own text names the rank. That another rank died is left to `tasuki run` to tell.
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
        Err(error) => return report(error),
    };
    match run(&settings, handlers, app) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_printed() || is_told(&settings, &error) => ExitCode::FAILURE,
        Err(error) => report(error),
    }
}

/// Returns true for a death that ends the joining of a job: the launcher tells of it, once for all ranks.
fn is_told(settings: &Settings, error: &Error) -> bool {
    matches!(settings.start, Start::LauncherSettings(_)) && matches!(error.cause(), Cause::PeerDied { .. })
}

fn run(settings: &Settings, handlers: &Handlers, app: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    match &settings.start {
        Start::Alone => threads(1, Teller::FirstRank, settings, None, handlers, app).map(drop),
        Start::Threads { ranks, door } => {
            threads(*ranks, Teller::FirstRank, settings, door.as_ref(), handlers, app).map(drop)
        }
        Start::LauncherSettings(launched) => {
            one_of_several(launched.rank, Teller::RankOrLauncher, settings, handlers, app)
        }
        Start::Managed(managed) => one_of_several(managed.rank, Teller::EachRank, settings, handlers, app),
        Start::Simulated { ranks, seed, door } => {
            started(*ranks, *seed, settings, door.as_ref(), handlers, app).map(drop)
        }
    }
}

/// This process is one rank of a job of several processes.
fn one_of_several(
    rank: Rank,
    teller: Teller,
    settings: &Settings,
    handlers: &Handlers,
    app: impl Fn(&Job) -> Result<()>,
) -> Result<()> {
    name_rank_in_panics(rank);
    let (membership, connection) = join(settings)?;
    let node_state = membership.node_state.clone();
    let worker = || worker(membership, settings, FenceScope::Registered);
    let rank_options = RankOptions::read(settings, per_processor(&node_state));
    rank::run(rank, teller, &node_state, rank_options, handlers, worker, app)?;
    connection.leave();
    Ok(())
}

/// Says of which rank a panic is, in a line before the text that Rust, or a hook of the program's own, prints.
fn name_rank_in_panics(rank: Rank) {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = writeln!(std::io::stderr().lock(), "error: rank {rank} panicked:");
        print(panic);
    }));
}

fn report(error: Error) -> ExitCode {
    rank::tell(error);
    ExitCode::FAILURE
}
