//! Waiting for the first of many descriptors.
#![allow(unsafe_code)]
//! Unsafe: ppoll on an array of our own, whose descriptors are borrowed for as long as it is used.

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

/// Everything that is waited for at a time; each descriptor with what it stands for.
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
    /// Waits for something to read, or the end.
    pub fn read(&mut self, source: S, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, libc::POLLIN);
    }

    /// Waits for room to write, or the end.
    pub fn write(&mut self, source: S, descriptor: BorrowedFd<'f>) {
        self.add(source, descriptor, libc::POLLOUT);
    }

    fn add(&mut self, source: S, descriptor: BorrowedFd<'f>, events: libc::c_short) {
        self.sources.push(source);
        self.descriptors.push(libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 });
    }

    /// Sleeps until something is ready, a signal comes, or the deadline is reached; what is ready.
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
            return Vec::new(); // a signal came: whoever waits looks again
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
    fn what_is_ready_is_found_and_a_deadline_ends_the_wait() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let ready = |deadline| {
            let mut watch = PollSet::default();
            watch.read('r', far.as_fd());
            watch.wait(deadline)
        };
        assert!(ready(Some(Instant::now())).is_empty());
        near.write_all(b"x").unwrap();
        assert_eq!(ready(None), ['r']);
        let mut watch = PollSet::default();
        watch.write('w', near.as_fd());
        assert_eq!(watch.wait(None), ['w']);
    }
}
