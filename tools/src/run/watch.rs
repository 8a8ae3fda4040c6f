//! Waiting for the first of many things: the one place where the launcher sleeps.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::options::Stream;

/// What has something to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A signal has come.
    Signals,
    /// Somebody connects.
    Knock,
    /// A connection can be read, written, or has ended.
    Visitor(u64),
    /// A process wrote, or closed its end.
    Spout(usize, Stream),
    /// A process has ended.
    End,
    /// Our own output takes more.
    Outlet(Stream),
    /// There is something on our standard input.
    Input,
    /// Rank 0 takes more of it.
    Feed,
}

/// Everything that is waited for at a time.
#[derive(Default)]
pub(crate) struct Watch<'f> {
    sources: Vec<Source>,
    descriptors: Vec<PollFd<'f>>,
}

impl<'f> Watch<'f> {
    /// Waits for something to read, or the end.
    pub(crate) fn read(&mut self, source: Source, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, PollFlags::IN);
    }

    /// Waits for room to write, or the end.
    pub(crate) fn write(&mut self, source: Source, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, PollFlags::OUT);
    }

    fn add(&mut self, source: Source, descriptor: BorrowedFd<'f>, flags: PollFlags) {
        self.sources.push(source);
        self.descriptors.push(PollFd::from_borrowed_fd(descriptor, flags));
    }

    /// Sleeps until something is ready, a signal comes, or the deadline is reached; what is ready.
    pub(crate) fn wait(mut self, deadline: Option<Instant>) -> Vec<Source> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // An interruption by a signal shows at the signals' own descriptor in the next round.
        if poll(&mut self.descriptors, left.map(timespec).as_ref()).is_err() {
            return Vec::new();
        }
        let ready = self.sources.iter().zip(&self.descriptors).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(source, _)| *source).collect()
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// How many bytes can be written to a descriptor that poll(2) calls ready without waiting: to a pipe or terminal
/// one page, to a file anything.
pub(crate) fn ready_size(descriptor: BorrowedFd<'_>) -> usize {
    let is_file = rustix::fs::fstat(descriptor)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if is_file { 256 << 10 } else { 4096 }
}

/// Makes reads and writes of our end answer at once.
pub(crate) fn never_wait(descriptor: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    rustix::fs::fcntl_setfl(descriptor, flags | rustix::fs::OFlags::NONBLOCK)
}
