//! Prints the ranks' lines and the launcher's messages.

use crate::run::options::{Capture, Options, Output, Stream, Way};
use crate::run::output::OutputStream;
use crate::run::poll_sources::{PollSet, Source};
use rustix::io::Errno;
use std::io::{Stderr, Stdout};
use std::os::fd::BorrowedFd;

/// The source number of the launcher's own lines.
const LAUNCHER: usize = usize::MAX;

/// The launcher's two output streams, and the function that receives the ranks' lines instead, if
/// there is one.
pub(crate) struct Printer {
    out: OutputStream<Stdout>,
    err: OutputStream<Stderr>,
    /// True if both streams go to one terminal, pipe or file. Then all text goes through `out`,
    /// which knows about unfinished lines.
    is_joined: bool,
    capture: Option<Capture>,
    /// The label of each process's lines.
    labels: Option<Vec<String>>,
}

impl Printer {
    /// A printer for these options. It takes a capturing function out of them.
    pub(crate) fn new(options: &mut Options) -> Printer {
        let all = format!("[0-{}] ", options.ranks - 1);
        let each = || (0..options.ranks).map(|rank| format!("[{rank}] ")).collect();
        let labels = if options.way == Way::Processes { each() } else { vec![all] };
        let (capture, label) = match std::mem::replace(&mut options.output, Output::Pass { label: false }) {
            Output::Pass { label } => (None, label),
            Output::Capture(capture) => (Some(capture), false),
        };
        let (out, err) = (OutputStream::new(std::io::stdout()), OutputStream::new(std::io::stderr()));
        let is_joined = is_same(out.target(), err.target());
        Printer { out, err, is_joined, capture, labels: label.then_some(labels) }
    }

    /// The number of columns for a process's standard error, if that goes to a terminal.
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
            Stream::Err if !self.is_joined => self.err.put(index, label, lines),
            _ => self.out.put(index, label, lines),
        }
    }

    /// Prints a message of the launcher on standard error.
    pub(crate) fn say(&mut self, text: &str) {
        let line = format!("tasuki: {text}\n");
        if self.is_joined {
            self.out.put(LAUNCHER, "", line.as_bytes());
        } else {
            self.err.put(LAUNCHER, "", line.as_bytes());
        }
    }

    /// Returns true if the beginning of a line may be printed before the rest. A capturing function
    /// receives whole lines only.
    pub(crate) fn takes_unfinished(&self) -> bool {
        self.capture.is_none()
    }

    /// Returns true if the stream can take more lines.
    pub(crate) fn takes(&self, stream: Stream) -> bool {
        match stream {
            Stream::Err if !self.is_joined => !self.err.is_full(),
            _ => !self.out.is_full(),
        }
    }

    /// Returns true if text waits to be written.
    pub(crate) fn has_waiting(&self) -> bool {
        self.out.has_waiting() || self.err.has_waiting()
    }

    /// Adds the descriptors that the printer waits for.
    pub(crate) fn watch<'f>(&'f self, watch: &mut PollSet<'f>) {
        if self.out.has_waiting() {
            watch.write(Source::OutputReady(Stream::Out), self.out.target());
        }
        if self.err.has_waiting() {
            watch.write(Source::OutputReady(Stream::Err), self.err.target());
        }
    }

    /// Writes as much as possible. Returns an error of standard output; an error of standard error
    /// is ignored.
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

/// Returns true if both descriptors are one file, terminal or pipe.
fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => place(one) == place(other),
        _ => false,
    }
}

/// The label of a process's lines.
fn label(labels: Option<&[String]>, index: usize) -> &str {
    labels.map_or("", |labels| labels[index].as_str())
}
