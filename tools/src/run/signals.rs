//! Signals to the launcher, read from a descriptor.

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use tasuki_core::os::process::ignores;

/// True while no job runs: then these signals have their default effect.
static IDLE: AtomicBool = AtomicBool::new(true);
static PREPARED: AtomicBool = AtomicBool::new(false);

/// The signals that have come. While this value lives, they have no other effect. Only one job at a
/// time has it.
pub(crate) struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Catches signals from now on. SIGHUP (nohup), SIGUSR1 and SIGUSR2 stay ignored if they were
    /// ignored before, by the ranks too. The others are caught even then, because shells start
    /// background commands with SIGINT and SIGQUIT ignored.
    pub(crate) fn catch() -> io::Result<Signals> {
        let mut caught = vec![SIGCHLD, SIGCONT, SIGINT, SIGQUIT, SIGTERM, SIGTSTP];
        caught.extend([SIGHUP, SIGUSR1, SIGUSR2].into_iter().filter(|&signal| !ignores(signal)));
        if !PREPARED.swap(true, Ordering::SeqCst) {
            for &signal in caught.iter().filter(|signal| ![SIGCHLD, SIGCONT].contains(signal)) {
                register_conditional_default(signal, &IDLE)?;
            }
        }
        IDLE.store(false, Ordering::SeqCst);
        let (read, write) = UnixStream::pair()?;
        Ok(Signals { delivery: SignalDelivery::with_pipe(read, write, SignalOnly, caught)? })
    }

    /// A descriptor that is readable when signals have come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Takes the signals that have come.
    pub(crate) fn take(&mut self) -> Vec<Signal> {
        self.delivery.pending().filter_map(Signal::from_named_raw).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        IDLE.store(true, Ordering::SeqCst);
    }
}
