//! What the job prints: the ranks' lines, and the launcher's own.

use super::options::{Capture, Options, Output, Stream, Way};
use super::outlet::Outlet;
use super::watch::{PollSet, Source};
use rustix::io::Errno;
use std::io::{Stderr, Stdout};

/// The launcher among the sources of lines.
const LAUNCHER: usize = usize::MAX;

/// Both of our streams, and who is given the ranks' lines instead, if somebody is.
pub(crate) struct Printer {
    out: Outlet<Stdout>,
    err: Outlet<Stderr>,
    capture: Option<Capture>,
    /// What each process's lines begin with.
    labels: Option<Vec<String>>,
}

impl Printer {
    /// A printer as the options want it. They keep nothing of a capturing function.
    pub(crate) fn new(options: &mut Options) -> Printer {
        let all = format!("[0-{}] ", options.ranks - 1);
        let each = || (0..options.ranks).map(|rank| format!("[{rank}] ")).collect();
        let labels = if options.way == Way::Processes { each() } else { vec![all] };
        let (capture, label) = match std::mem::replace(&mut options.output, Output::Pass { label: false }) {
            Output::Pass { label } => (None, label),
            Output::Capture(capture) => (Some(capture), false),
        };
        let (out, err) = (Outlet::new(std::io::stdout()), Outlet::new(std::io::stderr()));
        Printer { out, err, capture, labels: label.then_some(labels) }
    }

    /// How many columns there are for what a process writes on standard error, if that goes to a terminal.
    pub(crate) fn columns(&self, index: usize) -> Option<u16> {
        if self.capture.is_some() {
            return None;
        }
        let columns = rustix::termios::tcgetwinsize(self.err.target()).ok()?.ws_col;
        let left = columns.checked_sub(label(self.labels.as_deref(), index).len() as u16)?;
        (left > 0).then_some(left)
    }

    /// Prints lines of a process.
    pub(crate) fn put(&mut self, index: usize, stream: Stream, lines: &[u8]) {
        if let Some(capture) = &mut self.capture {
            lines.split_inclusive(|&byte| byte == b'\n').for_each(|line| capture(index, stream, line));
            return;
        }
        let label = label(self.labels.as_deref(), index);
        match stream {
            Stream::Out => self.out.put(index, label, lines),
            Stream::Err => self.err.put(index, label, lines),
        }
    }

    /// Says something of our own, on standard error.
    pub(crate) fn say(&mut self, text: &str) {
        self.err.put(LAUNCHER, "", format!("tasuki: {text}\n").as_bytes());
    }

    /// Whether more lines of that stream may come.
    pub(crate) fn takes(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => !self.out.is_full(),
            Stream::Err => !self.err.is_full(),
        }
    }

    /// Whether anything waits to be written.
    pub(crate) fn has_waiting(&self) -> bool {
        self.out.has_waiting() || self.err.has_waiting()
    }

    /// Says what it waits for.
    pub(crate) fn watch<'f>(&'f self, watch: &mut PollSet<'f>) {
        if self.out.has_waiting() {
            watch.write(Source::Outlet(Stream::Out), self.out.target());
        }
        if self.err.has_waiting() {
            watch.write(Source::Outlet(Stream::Err), self.err.target());
        }
    }

    /// Writes what can be written. An error of standard output; one of standard error is no reason to fail.
    pub(crate) fn write(&mut self, stream: Stream) -> Result<(), Errno> {
        match stream {
            Stream::Out => self.out.write(),
            Stream::Err => {
                let _ = self.err.write();
                Ok(())
            }
        }
    }
}

/// What a process's lines begin with.
fn label(labels: Option<&[String]>, index: usize) -> &str {
    labels.map_or("", |labels| labels[index].as_str())
}
