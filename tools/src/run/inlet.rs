//! Standard input for rank 0 where it is a terminal: ranks are no foreground group, so the terminal would stop
//! them for reading. Anything else rank 0 reads itself.

use super::watch::{PollSet, Source, never_wait};
use rustix::io::Errno;
use std::io::{IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::process::ChildStdin;

/// Carries lines from the terminal to rank 0.
pub(crate) struct Inlet {
    from: Stdin,
    to: Option<ChildStdin>,
    waiting: Vec<u8>,
    /// We were in the background when there was something to read: the terminal would have stopped us.
    paused: bool,
}

impl Inlet {
    /// Whether our standard input must be carried.
    pub(crate) fn is_needed() -> bool {
        std::io::stdin().is_terminal()
    }

    /// Carries it to `to`.
    pub(crate) fn new(to: ChildStdin) -> rustix::io::Result<Inlet> {
        never_wait(to.as_fd())?;
        Ok(Inlet { from: std::io::stdin(), to: Some(to), waiting: Vec::new(), paused: false })
    }

    /// Says what it waits for.
    pub(crate) fn watch<'f>(&'f self, watch: &mut PollSet<'f>) {
        match &self.to {
            Some(to) if !self.waiting.is_empty() => watch.write(Source::Feed, to.as_fd()),
            Some(_) if !self.paused => watch.read(Source::Input, self.from.as_fd()),
            _ => {}
        }
    }

    /// The terminal has something, or its end.
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

    /// Rank 0 takes more.
    pub(crate) fn feed(&mut self) {
        let Some(to) = &self.to else { return };
        match rustix::io::write(to, &self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to = None,
        }
    }

    /// We may be in the foreground again.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }
}

/// Whether the terminal lets us read: it stops whoever reads in the background. One that is not our own stops nobody.
fn in_foreground(terminal: &Stdin) -> bool {
    !rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group != rustix::process::getpgrp())
}
