//! The `mpiexec` of libraries that are installed: those that tell ranks of each other by PMI-1, and so can start
//! programs of Tasuki, too.

use super::{Peer, Place};
use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use std::path::PathBuf;
use std::process::Command;

/// Open MPI's speaks PMIx.
const SPEAK_PMI_1: [Peer; 2] = [Peer::Mpich, Peer::Intel];

/// A launcher of somebody else's.
pub(crate) struct Launcher {
    peer: Peer,
    prefix: PathBuf,
}

/// Installs what is not there yet of the libraries whose launchers speak PMI-1. Compiles nothing.
pub(crate) fn launchers(workspace: &Metadata) -> Result<Vec<Launcher>> {
    let launcher = |peer: Peer| {
        let place = Place::of(peer, workspace);
        place.install().context(peer.name())?;
        Ok(Launcher { peer, prefix: place.prefix })
    };
    SPEAK_PMI_1.into_iter().map(launcher).collect()
}

impl Launcher {
    /// The library's name.
    pub(crate) fn name(&self) -> &'static str {
        self.peer.name()
    }

    /// `mpiexec -n RANKS`; the program follows.
    pub(crate) fn command(&self, ranks: usize) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        if self.peer == Peer::Intel {
            // It finds its parts by this.
            command.env("I_MPI_ROOT", &self.prefix);
        }
        command.args(["-n", &ranks.to_string()]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::shown;

    #[test]
    fn launch_lines_are_those_that_each_library_needs() {
        let launcher = |peer| Launcher { peer, prefix: "p".into() };
        assert_eq!(shown(&launcher(Peer::Mpich).command(3)), "p/bin/mpiexec -n 3");
        let intel = launcher(Peer::Intel).command(2);
        assert!(intel.get_envs().any(|variable| variable == ("I_MPI_ROOT".as_ref(), Some("p".as_ref()))));
    }
}
