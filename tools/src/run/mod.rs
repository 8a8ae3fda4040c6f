//! `tasuki run`: starts the processes of a job, connects them, prints their output and ends them.
//! Other subcommands start jobs with [`launch`].
//!
//! ```text
//! args, options    the command line; the options of a job
//! job              the event loop (poll_sources, signals)
//! exit_report      what an event means: which rank failed, what is reported
//! verdict          the exit code, and where it comes from
//! termination      which signals end the processes, and when
//! processes/       what each process is started with (program, binding, environment, spawn), the
//!                  process and its descendants (process, rank_process, proc_threads), and what
//!                  ends them (keeper if the launcher is killed, oom_kills if memory runs out)
//! streams/         the output of ranks (printer, line_buffer, output), and a terminal's input,
//!                  which goes to rank 0 (stdin)
//! status/          the state of the job for `tasuki ps` (snapshot, rank_queues, rank_names), and
//!                  ranks that wait for each other for ever (deadlock)
//! ```
//!
//! Ranks and `tasuki ps` connect to the socket of `tasuki_core::bootstrap::server`.

pub(crate) mod args;
mod exit_report;
mod job;
mod options;
mod poll_sources;
mod processes;
mod signals;
mod status;
mod streams;
mod termination;
mod verdict;

pub(crate) use options::{GRACE, Options, Output, Stream, Way};
use processes::{binding, environment, oom_kills, proc_threads, process, program, rank_process};
pub(crate) use processes::{keeper, spawn};
pub(crate) use status::rank_names::names;
pub(crate) use status::snapshot::{RankState, Snapshot};
use status::{deadlock, rank_names, rank_queues, snapshot};
use streams::{line_buffer, output, printer, stdin};

/// The subcommand; its exit code.
pub(crate) fn command(args: args::Args) -> anyhow::Result<u8> {
    launch(args.options()?)
}

/// Starts a job, prints or captures its output, waits for its end, and returns the exit code: that
/// of the first rank that failed, 128 + n if signal n ended it or the launcher, 124 after a
/// time-out, 141 if the reader of standard output went away.
///
/// Only one job can run in a process at a time: a job catches SIGINT, SIGTERM, SIGQUIT, SIGTSTP,
/// SIGHUP, SIGUSR1 and SIGUSR2, and adopts orphaned descendants of its processes.
pub(crate) fn launch(options: Options) -> anyhow::Result<u8> {
    job::Job::start(options)?.run()
}
