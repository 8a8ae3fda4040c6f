//! `tasuki run`: starts the processes of a job, connects them, prints their output and ends them.
//! Other subcommands start jobs with [`launch`].
//!
//! ```text
//! args, options     the command line; the options of a job
//! program, binding, environment   what each process is started with
//! job               the event loop (poll_sources, signals)
//! exit_report       what an event means: which rank failed, what is reported, the exit code
//! process           a process and its descendants (rank_process); spawn starts it
//! keeper            ends the processes if the launcher is killed
//! termination       which signals end the processes, and when
//! snapshot          the state of the job for `tasuki ps` (rank_queues, proc_threads)
//! deadlock          finds ranks that wait for each other for ever
//! oom_kills         tells that the kernel killed a process for lack of memory
//! printer           prints the output of ranks (line_buffer, output)
//! stdin             forwards a terminal's input to rank 0
//! ```
//!
//! Ranks and `tasuki ps` connect to the socket of `tasuki_core::bootstrap::server`.

pub(crate) mod args;
mod binding;
mod deadlock;
mod environment;
mod exit_report;
mod job;
pub(crate) mod keeper;
mod line_buffer;
mod oom_kills;
mod options;
mod output;
mod poll_sources;
mod printer;
mod proc_threads;
mod process;
mod program;
mod rank_process;
mod rank_queues;
mod signals;
mod snapshot;
pub(crate) mod spawn;
mod stdin;
mod termination;

pub(crate) use options::{GRACE, Options, Output, Stream, Way};
pub(crate) use snapshot::{RankState, Snapshot, names};

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
