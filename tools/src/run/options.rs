//! What a job is started with.

use super::binding::Bind;
use std::ffi::OsString;
use std::time::Duration;

/// The grace of a job for which no other is asked.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How many ranks of what, and how they run.
pub(crate) struct Options {
    /// Ranks of the job.
    pub(crate) ranks: usize,
    /// Processes, threads, or a simulation.
    pub(crate) way: Way,
    /// QueueKind processors ranks run on; `None` leaves it to what fits.
    pub(crate) bind: Option<Bind>,
    /// How long the job may take.
    pub(crate) timeout: Option<Duration>,
    /// How long ranks that are asked to end may take before they are killed.
    pub(crate) grace: Duration,
    /// Variables for the ranks, beside those of this process.
    pub(crate) env: Vec<(String, String)>,
    /// The program: a path, or a name to be found in PATH.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// Whether rank 0 gets our standard input; otherwise nobody does.
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
        /// QueueKind run.
        seed: u64,
    },
}

impl Options {
    /// How many processes are started.
    pub(crate) fn processes(&self) -> usize {
        if self.way == Way::Processes { self.ranks } else { 1 }
    }
}

/// Where the ranks' output goes, line by line.
pub(crate) enum Output {
    /// To our own standard output and error.
    Pass {
        /// Whether each line begins with its rank.
        label: bool,
    },
    /// To a function.
    Capture(Capture),
}

/// Takes the process that wrote, where to, and one line with its end; a line without an end only when the process
/// ended without one, when it is to be written over (it ends with `\r`), or when it is longer than
/// [`super::lines::LINE_BYTES_MAX`].
pub(crate) type Capture = Box<dyn FnMut(usize, Stream, &[u8])>;

/// QueueKind of a process's two streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}
