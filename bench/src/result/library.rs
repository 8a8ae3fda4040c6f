//! Who is measured.

use crate::peers::Peer;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Ours, others, or bare loops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Library {
    /// Ours.
    Tasuki,
    /// MPICH.
    Mpich,
    /// Open MPI.
    Openmpi,
    /// Intel MPI.
    Intel,
    /// UCX.
    Ucx,
    /// Bare loops.
    Limit,
}

impl From<Peer> for Library {
    fn from(peer: Peer) -> Library {
        match peer {
            Peer::Mpich => Library::Mpich,
            Peer::Openmpi => Library::Openmpi,
            Peer::Intel => Library::Intel,
            Peer::Ucx => Library::Ucx,
        }
    }
}

impl Library {
    /// Whether it is one that we compare with.
    pub(crate) fn is_peer(self) -> bool {
        !matches!(self, Library::Tasuki | Library::Limit)
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Library::Tasuki => "tasuki",
            Library::Mpich => "mpich",
            Library::Openmpi => "openmpi",
            Library::Intel => "intel",
            Library::Ucx => "ucx",
            Library::Limit => "limit",
        })
    }
}
