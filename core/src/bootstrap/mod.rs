//! Who am I, who are the others, and how do I reach their memory: by a launcher, as threads, or alone.

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

pub use settings::{Settings, Start};

use crate::base::{Cause, Rank, Result};
use crate::engine::node_state::NodeState;
use crate::os::memfile::MemFile;
use std::sync::Arc;

/// What a rank knows once it has joined a job: all that a fabric and an engine are made from.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Which rank this is.
    pub rank: Rank,
    /// The node's node state; its size is the number of ranks of the node.
    pub node_state: Arc<NodeState>,
    /// The memory files of all ranks of the node, by rank; one's own included.
    pub files: Vec<Arc<MemFile>>,
}

impl Membership {
    /// How many ranks the job has.
    pub fn size(&self) -> usize {
        self.node_state.size()
    }
}

/// What shows the others that this rank lives, and how it leaves. Dropped before it has left, the rank is dead.
#[derive(Debug)]
pub enum JobConnection {
    /// To the launcher.
    Launcher(rendezvous_client::LauncherConnection),
    /// To the other ranks, and the process manager that started them.
    Manager(pmi::PmiConnection),
}

impl JobConnection {
    /// The rank has left in order: nobody needs it any more. In a forked child it does nothing.
    pub fn leave(self) {
        match self {
            JobConnection::Launcher(line) => line.leave(),
            JobConnection::Manager(connection) => connection.leave(),
        }
    }
}

/// Joins the job that this process was started for. Waits until all its ranks are there; the wait ends with an error
/// when one of them cannot come any more.
pub fn join(settings: &Settings) -> Result<(Membership, JobConnection)> {
    let (rank, joined) = match &settings.start {
        Start::LauncherSettings(launched) => {
            let joined = rendezvous_client::enter(settings, launched, rendezvous_client::LAUNCHER);
            (launched.rank, joined.map(|(membership, line)| (membership, JobConnection::Launcher(line))))
        }
        Start::Managed(managed) => {
            let joined = pmi::join(settings, managed);
            (managed.rank, joined.map(|(membership, tie)| (membership, JobConnection::Manager(tie))))
        }
        _ => return Err(Cause::Bug("join() in a process that was not launched".into()).into()),
    };
    joined.map_err(|error| error.on_rank(rank).in_call(|| "join".into()))
}
