//! Forwards a terminal's input to rank 0. Ranks are not in the terminal's foreground group, so the
//! terminal would stop them if they read from it. Rank 0 inherits any other kind of standard input.

use crate::run::poll_sources::{PollSet, Source, never_wait};
use rustix::io::Errno;
use std::io::{IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::process::ChildStdin;

/// Forwards bytes from the terminal to rank 0.
pub(crate) struct StdinForwarder {
    from: Stdin,
    to: Option<ChildStdin>,
    waiting: Vec<u8>,
    /// The launcher was in the background when input came. Reading would have stopped it.
    paused: bool,
}

impl StdinForwarder {
    /// Returns true if standard input is a terminal and must be forwarded.
    pub(crate) fn is_needed() -> bool {
        std::io::stdin().is_terminal()
    }

    /// Forwards standard input to `to`.
    pub(crate) fn new(to: ChildStdin) -> rustix::io::Result<StdinForwarder> {
        never_wait(to.as_fd())?;
        Ok(StdinForwarder { from: std::io::stdin(), to: Some(to), waiting: Vec::new(), paused: false })
    }

    /// Adds the descriptors that it waits for.
    pub(crate) fn watch<'f>(&'f self, watch: &mut PollSet<'f>) {
        match &self.to {
            Some(to) if !self.waiting.is_empty() => watch.write(Source::RankInput, to.as_fd()),
            Some(_) if !self.paused => watch.read(Source::Input, self.from.as_fd()),
            _ => {}
        }
    }

    /// Reads from the terminal, which is readable or at its end.
    pub(crate) fn read(&mut self) {
        if !in_foreground(&self.from) {
            self.paused = true;
            return;
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&self.from, &mut bytes) {
            Ok(0) => self.to = None,
            Ok(count) => self.waiting.extend_from_slice(&bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to = None,
        }
    }

    /// Writes to rank 0, whose pipe is writable.
    pub(crate) fn feed(&mut self) {
        let Some(to) = &self.to else { return };
        match rustix::io::write(to, &self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to = None,
        }
    }

    /// Reads again: the launcher may be in the foreground again.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }
}

/// Returns true if the launcher may read: a terminal stops background processes that read from it.
/// A terminal that does not control this session stops no process.
fn in_foreground(terminal: &Stdin) -> bool {
    !rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group != rustix::process::getpgrp())
}
