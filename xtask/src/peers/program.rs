//! The C programs of the bench: their sources and how they are compiled.

use super::{Peer, Place, answers, run_shown, say};
use anyhow::{Context, Result, ensure};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiled like peers in usual comparisons: optimised, for no specific processor, as Rust does.
const FLAGS: [&str; 4] = ["-O3", "-std=gnu11", "-Wall", "-Wextra"];
const COMPILER: &str = "cc";
/// By the names of the files, which the packages for running programs have, too.
const BLACS_LIBRARIES: [&str; 5] =
    ["-l:libscalapack-openmpi.so.2.2", "-l:libmpi.so.40", "-l:liblapack.so.3", "-l:libblas.so.3", "-lm"];

/// The program's source and its name.
fn source(peer: Peer) -> (&'static str, &'static str) {
    match peer {
        Peer::Ucx => ("ucx.c", "peer_ucx"),
        Peer::Blacs => ("blacs.c", "peer_blacs"),
        _ => ("mpi.c", "peer_mpi"),
    }
}

/// Where the compiled program is.
pub(super) fn path(place: &Place) -> PathBuf {
    place.prefix.join("bin").join(source(place.peer).1)
}

/// Changes whenever the program must be compiled again: with any file of the folder, or the flags.
pub(super) fn fingerprint(place: &Place) -> Result<String> {
    let folder = &place.sources;
    let entries = fs::read_dir(folder).with_context(|| format!("the sources in {}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|file| is_c(file)).collect();
    files.sort_unstable();
    let mut hasher = DefaultHasher::new();
    FLAGS.hash(&mut hasher);
    for file in &files {
        fs::read(file).with_context(|| file.display().to_string())?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn is_c(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "c" || kind == "h")
}

/// Compiles the program with the peer's own compiler wrapper.
pub(super) fn compile(place: &Place) -> Result<()> {
    ensure!(answers(Path::new(COMPILER)), "a C compiler is needed: apt-get install -y gcc libc6-dev");
    let program = path(place);
    say(place.peer, &format!("compiling {}", source(place.peer).0));
    fs::create_dir_all(place.prefix.join("bin"))?;
    run_shown(
        &mut command(place, &program),
        "if the library's files are damaged, remove its folder and try again",
    )
}

fn command(place: &Place, program: &Path) -> Command {
    let mut command = match place.peer {
        Peer::Ucx | Peer::Blacs => Command::new(COMPILER),
        _ => Command::new(place.mpicc()),
    };
    command.args(FLAGS).arg("-o").arg(program).arg(place.sources.join(source(place.peer).0));
    match place.peer {
        // The compiler wrapper is a script that needs this variable to find its parts.
        Peer::Intel => command.env("I_MPI_ROOT", &place.prefix).env("I_MPI_CC", COMPILER),
        Peer::Ucx => command.args(["-lucp", "-lucs"]),
        Peer::Blacs => command.args(BLACS_LIBRARIES),
        Peer::Mpich | Peer::Openmpi => &mut command,
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::shown;

    fn place(peer: Peer) -> Place {
        Place { peer, prefix: "p".into(), sources: "s".into() }
    }

    #[test]
    fn each_peer_is_compiled_with_its_own_compiler() {
        let line = |peer| shown(&command(&place(peer), &path(&place(peer))));
        assert_eq!(line(Peer::Mpich), "p/bin/mpicc -O3 -std=gnu11 -Wall -Wextra -o p/bin/peer_mpi s/mpi.c");
        assert!(line(Peer::Ucx).starts_with("cc ") && line(Peer::Ucx).ends_with("s/ucx.c -lucp -lucs"));
        let place = place(Peer::Intel);
        let intel = command(&place, Path::new("x"));
        assert!(intel.get_envs().any(|(name, value)| name == "I_MPI_ROOT" && value == Some("p".as_ref())));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        assert!(format!("{:#}", fingerprint(&place(Peer::Ucx)).unwrap_err()).contains("sources in s"));
    }
}
