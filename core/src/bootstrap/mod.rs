//! Who am I, who are the others, and how do I reach their memory: by a launcher, as threads, or alone.

pub mod door;
pub mod foreign;
pub mod launched;
pub mod nearest;
pub mod rendezvous;
pub mod settings;
pub mod variables;
mod visitor;
pub mod wire;

pub use settings::{Settings, Start};

use crate::base::Rank;
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
