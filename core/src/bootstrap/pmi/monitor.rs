//! The thread of each rank but rank 0 that watches rank 0, which watches all others.

use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{Error, Rank, Result};
use crate::bootstrap::rendezvous_client::LauncherConnection;
use crate::node::node_state::NodeState;
use crate::os::disabled_features::DisabledFeatures;
use crate::os::poll::PollSet;
use crate::os::{clock, process, socket};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Monitor {
    stream: UnixStream,
    stopped: Arc<AtomicBool>,
    pid: u32,
}

impl Monitor {
    /// Starts to watch `rank`, the rank at the other end of the connection.
    pub(super) fn start(
        connection: &LauncherConnection,
        rank: Rank,
        disabled: DisabledFeatures,
    ) -> Result<Monitor> {
        let copy = || connection.stream().try_clone().map_err(|error| Error::from_io("dup", &error));
        let (ours, theirs) = (copy()?, copy()?);
        let pid = socket::credentials(connection.stream())?.pid;
        // The connection alone is not enough: a child that the rank has forked may keep it open.
        let pidfd = process::pidfd(pid, disabled);
        let (node_state, stopped) = (connection.node_state().clone(), Arc::new(AtomicBool::new(false)));
        let is_stopped = stopped.clone();
        let body = move || watch(&theirs, pidfd.as_ref(), &is_stopped, &node_state, rank, pid);
        let thread = std::thread::Builder::new().name("monitor".into()).spawn(body);
        thread.map_err(|error| Error::from_io("starting the monitor thread", &error))?;
        Ok(Monitor { stream: ours, stopped, pid: std::process::id() })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // A forked child shares the connection: shutting it down for both would end the rank.
        if std::process::id() == self.pid {
            self.stopped.store(true, Ordering::Release); // SYNC monitor-stopped
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Sleeps until the connection closes or the process at the other end ends. Unless that process died, neither happens
/// before this rank has left: no message comes on the connection after all ranks have joined.
fn watch(
    stream: &UnixStream,
    pidfd: Option<&OwnedFd>,
    stopped: &AtomicBool,
    node_state: &NodeState,
    rank: Rank,
    pid: u32,
) {
    loop {
        let mut set = PollSet::default();
        set.read((), stream.as_fd());
        pidfd.iter().for_each(|pidfd| set.read((), pidfd.as_fd()));
        if !set.wait(None).is_empty() {
            break;
        }
    }
    let stopped = stopped.load(Ordering::Acquire); // SYNC monitor-stopped
    if !stopped {
        let how = format!("process {pid} ended before all ranks had left the job");
        node_state.declare_dead(rank, &how, clock::now_ns());
    }
}
