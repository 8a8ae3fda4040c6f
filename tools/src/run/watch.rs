//! Waiting for the first of many things: the one place where the launcher sleeps.

use super::options::Stream;
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;
use tasuki_core::bootstrap::rendezvous_server::Caller;
use tasuki_core::os::poll;

/// What has something to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A signal has come.
    Signals,
    /// Somebody comes to the door.
    RendezvousServer(Caller),
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

/// Everything that the launcher waits for at a time.
pub(crate) type PollSet<'f> = poll::PollSet<'f, Source>;

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
