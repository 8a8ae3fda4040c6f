//! The event sources of the launcher, and the poll set in which it sleeps.

use super::options::Stream;
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;
use tasuki_core::bootstrap::rendezvous_server::ServerSource;
use tasuki_core::os::poll;

/// A source of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A signal has come.
    Signals,
    /// A connection to the rendezvous server has an event.
    RendezvousServer(ServerSource),
    /// A process wrote to a pipe, or closed it.
    Pipe(usize, Stream),
    /// A process has ended.
    End,
    /// The launcher's own output stream is writable.
    OutputReady(Stream),
    /// The launcher's standard input is readable.
    Input,
    /// The standard input of rank 0 is writable.
    RankInput,
}

/// The descriptors that the launcher waits for in one poll.
pub(crate) type PollSet<'f> = poll::PollSet<'f, Source>;

/// How many bytes can be written to a descriptor that poll(2) calls ready without waiting: to a
/// pipe or terminal one page, to a file anything.
pub(crate) fn ready_size(descriptor: BorrowedFd<'_>) -> usize {
    let is_file = rustix::fs::fstat(descriptor)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if is_file { 256 << 10 } else { 4096 }
}

/// Makes the descriptor non-blocking.
pub(crate) fn never_wait(descriptor: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    rustix::fs::fcntl_setfl(descriptor, flags | rustix::fs::OFlags::NONBLOCK)
}
