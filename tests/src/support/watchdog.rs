//! Ends a test that hangs: after a generous time it aborts the process with a message that names
//! the test.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than any case needs on a busy machine under a sanitizer; shorter than the limit at which
/// a test runner kills the test without a message.
const LIMIT: Duration = Duration::from_secs(150);

/// For cases that move gigabytes: a virtual machine may need minutes to provide memory that is
/// touched for the first time.
const LIMIT_OF_LARGE: Duration = Duration::from_secs(540);

/// Aborts the process if it is not dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts to watch; `name` appears in the message.
    pub fn over(name: impl Into<String>) -> Watchdog {
        let (name, (over, end)) = (name.into(), channel());
        let limit = if name.starts_with("a8_") { LIMIT_OF_LARGE } else { LIMIT };
        let thread = thread::spawn(move || {
            if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: {name} has not ended after {limit:?}; aborting");
                std::process::abort();
            }
        });
        Watchdog { over: Some(over), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
