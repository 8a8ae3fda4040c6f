//! The options of a job.

use super::binding::Bind;
use std::ffi::OsString;
use std::time::Duration;

/// The default of `--grace`.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What a job runs, on how many ranks, and how.
pub(crate) struct Options {
    /// Ranks of the job.
    pub(crate) ranks: usize,
    /// Processes, threads, or a simulation.
    pub(crate) way: Way,
    /// The processors that ranks run on; `None` leaves ranks unbound.
    pub(crate) bind: Option<Bind>,
    /// The job is ended after this time.
    pub(crate) timeout: Option<Duration>,
    /// Time from SIGTERM to SIGKILL; may be zero.
    pub(crate) grace: Duration,
    /// Variables for the ranks, in addition to those of this process.
    pub(crate) env: Vec<(String, String)>,
    /// The program: a path, or a name that is looked up in PATH.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// True if rank 0 gets this process's standard input; otherwise no rank gets it.
    pub(crate) input: bool,
    /// Where the ranks' output goes.
    pub(crate) output: Output,
}

/// How ranks run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Each is a process.
    Processes,
    /// All are threads of one process.
    Threads,
    /// All are threads of one process, in simulated time.
    Simulated {
        /// Seed of the simulation.
        seed: u64,
    },
}

impl Options {
    /// The number of processes to start.
    pub(crate) fn processes(&self) -> usize {
        if self.way == Way::Processes { self.ranks } else { 1 }
    }
}

/// Where the ranks' output goes, line by line.
pub(crate) enum Output {
    /// To this process's standard output and error.
    Pass {
        /// True if each line begins with its rank.
        label: bool,
    },
    /// To a function.
    Capture(Capture),
}

/// Receives the index of the process that wrote, the stream, and one line with its end. A line has
/// no end if the process ended without one, or if the line is longer than
/// [`super::line_buffer::LINE_BYTES_MAX`]. A line that is to be overwritten ends with `\r`.
pub(crate) type Capture = Box<dyn FnMut(usize, Stream, &[u8])>;

/// One of a process's two output streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}
