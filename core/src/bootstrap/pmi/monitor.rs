//! The thread of every rank but the first that watches the first, which watches all others.

use crate::base::{Error, Rank, Result};
use crate::bootstrap::rendezvous_client::LauncherConnection;
use crate::engine::node_state::NodeState;
use crate::os::disabled_features::DisabledFeatures;
use crate::os::poll::PollSet;
use crate::os::{clock, process, socket};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Monitor {
    line: UnixStream,
    dismissed: Arc<AtomicBool>,
    pid: u32,
}

impl Monitor {
    /// Watches the rank at the other end of the line.
    pub(super) fn start(line: &LauncherConnection, whom: Rank, denied: DisabledFeatures) -> Result<Monitor> {
        let copy = || line.stream().try_clone().map_err(|error| Error::from_io("dup", &error));
        let (ours, theirs) = (copy()?, copy()?);
        let pid = socket::credentials(line.stream())?.pid;
        // Beside the line, because a child that the rank has forked may hold that open.
        let end = process::pidfd(pid, denied);
        let (node_state, dismissed) = (line.node_state().clone(), Arc::new(AtomicBool::new(false)));
        let over = dismissed.clone();
        let body = move || watch(&theirs, end.as_ref(), &over, &node_state, whom, pid);
        let thread = std::thread::Builder::new().name("sentry".into()).spawn(body);
        thread.map_err(|error| Error::from_io("starting the sentry's thread", &error))?;
        Ok(Monitor { line: ours, dismissed, pid: std::process::id() })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // A forked child shares the line: closing it for both would end the rank.
        if std::process::id() == self.pid {
            self.dismissed.store(true, Ordering::Release); // SYNC sentry-dismissed
            let _ = self.line.shutdown(Shutdown::Both);
        }
    }
}

/// Sleeps until the line closes, or its other end's process ends. Neither happens before this rank has left, unless
/// that process is dead: nothing is said on the line once all have joined.
fn watch(
    line: &UnixStream,
    end: Option<&OwnedFd>,
    dismissed: &AtomicBool,
    node_state: &NodeState,
    whom: Rank,
    pid: u32,
) {
    loop {
        let mut watch = PollSet::default();
        watch.read((), line.as_fd());
        end.iter().for_each(|end| watch.read((), end.as_fd()));
        if !watch.wait(None).is_empty() {
            break;
        }
    }
    let dismissed = dismissed.load(Ordering::Acquire); // SYNC sentry-dismissed
    if !dismissed {
        let how = format!("process {pid} ended before all ranks had left the job");
        node_state.declare_dead(whom, &how, clock::now_ns());
    }
}
