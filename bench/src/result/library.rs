//! The libraries that are measured.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is measured: Tasuki, another library, or the machine itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Library {
    #[value(skip)]
    Tasuki,
    Mpich,
    Openmpi,
    Intel,
    Ucx,
    /// Bare loops.
    #[value(skip)]
    Limit,
}

impl Library {
    /// The other libraries.
    pub(crate) const PEERS: [Library; 4] = [Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];

    /// Returns the name as users type and see it. The library's folder has the same name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Library::Tasuki => "tasuki",
            Library::Mpich => "mpich",
            Library::Openmpi => "openmpi",
            Library::Intel => "intel",
            Library::Ucx => "ucx",
            Library::Limit => "limit",
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
