//! Waits until one of several descriptors is ready.
#![allow(unsafe_code)]
//! Unsafe: ppoll on an array that this structure owns. The descriptors are borrowed while it exists.

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

/// The descriptors of one wait. The caller gives each a value `S` that identifies it in the result.
#[derive(Debug)]
pub struct PollSet<'f, S> {
    sources: Vec<S>,
    descriptors: Vec<libc::pollfd>,
    borrowed: PhantomData<BorrowedFd<'f>>,
}

impl<S> Default for PollSet<'_, S> {
    fn default() -> Self {
        PollSet { sources: Vec::new(), descriptors: Vec::new(), borrowed: PhantomData }
    }
}

impl<'f, S: Copy> PollSet<'f, S> {
    /// Adds a descriptor: `source` is ready when it can be read or has been closed.
    pub fn read(&mut self, source: S, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, libc::POLLIN);
    }

    /// Adds a descriptor: `source` is ready when it can be written or has been closed.
    pub fn write(&mut self, source: S, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, libc::POLLOUT);
    }

    fn add(&mut self, source: S, descriptor: BorrowedFd<'f>, events: libc::c_short) {
        self.sources.push(source);
        self.descriptors.push(libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 });
    }

    /// Sleeps until a descriptor is ready, the process receives a signal, or the deadline is reached. Returns the
    /// sources that are ready.
    pub fn wait(mut self, deadline: Option<Instant>) -> Vec<S> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(|left| libc::timespec {
            tv_sec: left.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        });
        let limit = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = self.descriptors.len() as libc::nfds_t;
        // SAFETY: the array holds `count` entries, and `limit` is null or points to `left`.
        let ready = unsafe { libc::ppoll(self.descriptors.as_mut_ptr(), count, limit, std::ptr::null()) };
        if ready < 0 {
            return Vec::new(); // interrupted by a signal: the caller checks its conditions again
        }
        let found = self.sources.iter().zip(&self.descriptors).filter(|(_, fd)| fd.revents != 0);
        found.map(|(source, _)| *source).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn wait_returns_ready_sources_and_ends_at_its_deadline() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let ready = |deadline| {
            let mut set = PollSet::default();
            set.read('r', far.as_fd());
            set.wait(deadline)
        };
        assert!(ready(Some(Instant::now())).is_empty());
        near.write_all(b"x").unwrap();
        assert_eq!(ready(None), ['r']);
        let mut set = PollSet::default();
        set.write('w', near.as_fd());
        assert_eq!(set.wait(None), ['w']);
    }
}
