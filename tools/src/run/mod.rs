//! `tasuki run`: starts the processes of a job, joins them, prints their output and ends them. Other subcommands start
//! jobs by [`launch`].
//!
//! ```text
//! job        one loop over everything that can happen (watch), with no clock but deadlines
//! judge      what an event means: who died, what is said, with which code the job ends
//! process    a process and its descendants (rank_process)    spawn     what it begins with
//! keeper     ends the processes if the launcher is killed    termination    what is sent to them, and when
//! snapshot   how the job is now, for `tasuki ps`             deadlock  who waits for each other for ever
//! printer    lines out (lines, output)                       stdin     the terminal's lines in
//! ```
//!
//! The socket to which ranks and `tasuki ps` come is `tasuki_core::bootstrap::server`.

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
mod process;
mod program;
mod rank_process;
mod rank_queues;
mod signals;
mod snapshot;
pub(crate) mod spawn;
mod stdin;
mod termination;
mod threads;

pub(crate) use options::{GRACE, Options, Output, Stream, Way};
pub(crate) use snapshot::{RankState, Snapshot, names};

/// The subcommand; its exit code.
pub(crate) fn command(args: args::Args) -> anyhow::Result<u8> {
    launch(args.options()?)
}

/// Starts a job, prints or captures what it writes, and waits for its end; the exit code: that of the first rank
/// that failed, 128 + n if a signal n ended it or us, 124 after a time-out, 141 if nobody reads our output any more.
///
/// Catches SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGHUP, SIGUSR1 and SIGUSR2 meanwhile, and adopts orphaned descendants of
/// its processes: one job at a time in a process.
pub(crate) fn launch(options: Options) -> anyhow::Result<u8> {
    job::Job::start(options)?.run()
}
