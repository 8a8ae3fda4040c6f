//! How a process becomes a rank of a job, and gets the node state and the memory files of all ranks: by a launcher, as
//! threads of one process, or alone.

pub mod did_you_mean;
pub mod environment_variables;
pub mod foreign_launcher;
pub mod helper_setting;
pub mod pmi;
pub mod rendezvous;
pub mod rendezvous_client;
pub mod rendezvous_server;
mod server_connection;
pub mod settings;
pub mod wire;

pub use settings::{AnySourceSize, Settings, Start};

use crate::base::{Cause, Rank, Result};
use crate::node::node_state::NodeState;
use crate::os::memfile::MemFile;
use std::sync::Arc;

/// What a rank gets when it joins a job: a fabric and a worker are made from it.
#[derive(Clone, Debug)]
pub struct Membership {
    /// This process's rank.
    pub rank: Rank,
    /// The node state; its size is the number of ranks.
    pub node_state: Arc<NodeState>,
    /// The memory files of all ranks by rank, this one's included.
    pub files: Vec<Arc<MemFile>>,
}

impl Membership {
    /// Returns the number of ranks of the job.
    pub fn size(&self) -> usize {
        self.node_state.size()
    }
}

/// The connection of a rank to its job, open while the rank lives. If it closes before the rank has left, the rank is
/// dead.
#[derive(Debug)]
pub enum JobConnection {
    /// The connection to the launcher.
    Launcher(rendezvous_client::LauncherConnection),
    /// The connection to the other ranks and to the process manager that started them.
    Manager(pmi::PmiConnection),
}

impl JobConnection {
    /// Leaves the job in order: no other rank needs this one any more. Does nothing in a forked child.
    pub fn leave(self) {
        match self {
            JobConnection::Launcher(connection) => connection.leave(),
            JobConnection::Manager(connection) => connection.leave(),
        }
    }
}

/// Joins the job that this process was started for. Waits until all its ranks have joined. Errors:
/// the rank was refused; another rank has ended before it joined.
pub fn join(settings: &Settings) -> Result<(Membership, JobConnection)> {
    let (rank, joined) = match &settings.start {
        Start::Launched(launched) => {
            let joined = rendezvous_client::join(settings, launched, rendezvous_client::LAUNCHER);
            (
                launched.rank,
                joined.map(|(membership, connection)| (membership, JobConnection::Launcher(connection))),
            )
        }
        Start::Managed(managed) => {
            let joined = pmi::join(settings, managed);
            (
                managed.rank,
                joined.map(|(membership, connection)| (membership, JobConnection::Manager(connection))),
            )
        }
        _ => return Err(Cause::Bug("join() in a process that was not launched".into()).into()),
    };
    joined.map_err(|error| error.on_rank(rank).in_call(|| "join".into()))
}
