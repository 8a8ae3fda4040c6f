//! The `mpiexec` of installed libraries whose launchers speak PMI-1 and so can start Tasuki
//! programs.

use super::{Peer, Place};
use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use std::path::PathBuf;
use std::process::Command;

/// Open MPI is missing: its launcher speaks PMIx.
const SPEAK_PMI_1: [Peer; 2] = [Peer::Mpich, Peer::Intel];

/// The launcher of another project.
pub(crate) struct Launcher {
    peer: Peer,
    prefix: PathBuf,
}

/// Installs the libraries whose launchers speak PMI-1, unless they are installed. Compiles nothing.
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

    /// The command `mpiexec -n RANKS`, to which the program is added.
    pub(crate) fn command(&self, ranks: usize) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        if self.peer == Peer::Intel {
            // The launcher finds its parts with this variable.
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
