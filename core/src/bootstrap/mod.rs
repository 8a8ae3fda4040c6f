//! Who am I, who are the others, and how do I reach their memory: by a launcher, as threads, or alone.

pub mod door;
pub mod foreign;
pub mod helper;
pub mod launched;
pub mod nearest;
pub mod pmi;
pub mod rendezvous;
pub mod settings;
pub mod variables;
mod visitor;
pub mod wire;

pub use settings::{Settings, Start};

use crate::base::{Cause, Rank, Result};
use crate::engine::board::Board;
use crate::os::memfile::MemFile;
use std::sync::Arc;

/// What a rank knows once it has joined a job: all that a fabric and an engine are made from.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Which rank this is.
    pub rank: Rank,
    /// The node's board; its size is the number of ranks of the node.
    pub board: Arc<Board>,
    /// The memory files of all ranks of the node, by rank; one's own included.
    pub files: Vec<Arc<MemFile>>,
}

impl Membership {
    /// How many ranks the job has.
    pub fn size(&self) -> usize {
        self.board.size()
    }
}

/// What shows the others that this rank lives, and how it leaves. Dropped before it has left, the rank is dead.
#[derive(Debug)]
pub enum Connection {
    /// To the launcher.
    Launcher(launched::Line),
    /// To the other ranks, and the process manager that started them.
    Manager(pmi::Connection),
}

impl Connection {
    /// The rank has left in order: nobody needs it any more. In a forked child it does nothing.
    pub fn leave(self) {
        match self {
            Connection::Launcher(line) => line.leave(),
            Connection::Manager(connection) => connection.leave(),
        }
    }
}

/// Joins the job that this process was started for. Waits until all its ranks are there; the wait ends with an error
/// when one of them cannot come any more.
pub fn join(settings: &Settings) -> Result<(Membership, Connection)> {
    let (rank, joined) = match &settings.start {
        Start::Launched(launched) => {
            let joined = launched::enter(settings, launched, launched::LAUNCHER);
            (launched.rank, joined.map(|(membership, line)| (membership, Connection::Launcher(line))))
        }
        Start::Managed(managed) => {
            let joined = pmi::join(settings, managed);
            (managed.rank, joined.map(|(membership, tie)| (membership, Connection::Manager(tie))))
        }
        _ => return Err(Cause::Bug("join() in a process that was not launched".into()).into()),
    };
    joined.map_err(|error| error.on_rank(rank).in_call(|| "join".into()))
}
