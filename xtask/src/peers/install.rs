//! Installs the libraries: wheels of PyPI, unpacked by pip; UCX from the distribution's packages.

use super::{Peer, Place, answers, run_shown, say};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that shows that UCX can be compiled against.
const UCX_HEADER: &str = "/usr/include/ucp/api/ucp.h";
const UCX_PACKAGES: [&str; 2] = ["libucx-dev", "ucx-utils"];
/// The library with ScaLAPACK and its BLACS. Programs need no header of it.
const SCALAPACK: &str = "/usr/lib/x86_64-linux-gnu/libscalapack-openmpi.so.2.2";
const BLACS_PACKAGES: [&str; 3] = ["libscalapack-openmpi2.2", "libopenblas0", "openmpi-bin"];

const PIP_WAY_OUT: &str =
    "pip needs the network, or a mirror named by PIP_INDEX_URL; the wheels are for Linux on x86_64";

/// Unpacks a wheel and its dependencies into the peer's prefix. Returns the name and version of the
/// library.
///
/// It unpacks beside the prefix and moves the complete folder, so that a prefix is never
/// incomplete. The libraries find their parts relative to their own place, so they can be moved.
pub(super) fn wheel(place: &Place, wheel: &str) -> Result<String> {
    ensure_pip()?;
    say(place.peer, &format!("installing {wheel} with pip"));
    let fresh = place.prefix.with_extension("new");
    remove(&fresh)?;
    // Isolated from this machine's own Python packages, which are neither used nor changed.
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--no-warn-script-location",
    ])
    .args(["--root-user-action", "ignore", "--ignore-installed", "--prefix"])
    .args([fresh.as_os_str(), wheel.as_ref()]);
    run_shown(&mut pip, PIP_WAY_OUT)?;
    let unpacked = root_of(&fresh)?;
    let library = library_in(&unpacked).context("pip has left no description of what it installed")?;
    remove(&place.prefix)?;
    fs::rename(&unpacked, &place.prefix).with_context(|| format!("moving {}", unpacked.display()))?;
    remove(&fresh)?;
    Ok(library)
}

fn ensure_pip() -> Result<()> {
    let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    let is_there = pip.is_ok_and(|output| output.status.success());
    ensure!(is_there, "python3 with pip is needed: apt-get install -y python3-pip, or python3 -m ensurepip");
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

/// Below a prefix, Debian's own Python puts everything into `local`.
fn root_of(prefix: &Path) -> Result<PathBuf> {
    let places = [prefix.to_owned(), prefix.join("local")];
    let root = places.into_iter().find(|place| place.join("bin/mpicc").exists());
    root.with_context(|| format!("pip has put no bin/mpicc below {}", prefix.display()))
}

/// Names and versions of the wheels below a prefix, from the folders `NAME-VERSION.dist-info`.
fn library_in(prefix: &Path) -> Option<String> {
    let pythons = fs::read_dir(prefix.join("lib")).ok()?.flatten();
    let packages = pythons
        .flat_map(|python| ["site-packages", "dist-packages"].map(|packages| python.path().join(packages)));
    let entries = packages.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| wheel_of(entry.file_name().to_str()?)).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.join(", "))
}

fn wheel_of(folder: &str) -> Option<String> {
    let (name, version) = folder.strip_suffix(".dist-info")?.rsplit_once('-')?;
    Some(format!("{name} {version}"))
}

/// Returns true if a program can be linked with ScaLAPACK and started by Open MPI.
pub(super) fn has_blacs() -> bool {
    Path::new(SCALAPACK).exists() && answers(Path::new("mpirun"))
}

/// Makes sure that ScaLAPACK is installed. Returns its name.
pub(super) fn blacs(place: &Place) -> Result<String> {
    if !has_blacs() {
        install(place.peer, &BLACS_PACKAGES, "ScaLAPACK over Open MPI")?;
    }
    ensure!(has_blacs(), "the packages are there, but {SCALAPACK} or mpirun is not");
    Ok("ScaLAPACK 2.2, Open MPI 4 of Debian".into())
}

/// Returns true if UCX can be compiled against.
pub(super) fn has_ucx() -> bool {
    Path::new(UCX_HEADER).exists()
}

/// Makes sure that UCX is installed. Returns its version.
pub(super) fn ucx(place: &Place) -> Result<String> {
    if !has_ucx() {
        install(place.peer, &UCX_PACKAGES, "UCX with its headers")?;
    }
    ensure!(has_ucx(), "the packages are there, but {UCX_HEADER} is not");
    let said = Command::new("ucx_info").arg("-v").output();
    let version = said.ok().and_then(|output| ucx_version(&String::from_utf8_lossy(&output.stdout)));
    Ok(format!("ucx {}", version.as_deref().unwrap_or("of unknown version")))
}

fn install(peer: Peer, all: &[&str], what: &str) -> Result<()> {
    let packages = all.join(" ");
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root || !answers(Path::new("apt-get")) {
        bail!("as root: apt-get install -y {packages} (elsewhere than on Debian: {what})");
    }
    say(peer, &format!("installing {packages} with apt-get"));
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-q", "--no-install-recommends"]).args(all);
    run_shown(apt.env("DEBIAN_FRONTEND", "noninteractive"), "try apt-get update first")
}

/// The version in `# Version 1.13.1`, or in `# Library version: 1.18.0` of later ones.
fn ucx_version(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.to_lowercase().contains("version"))?;
    line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_packages_leave() {
        assert_eq!(wheel_of("mpich-5.0.2.dist-info").as_deref(), Some("mpich 5.0.2"));
        assert_eq!(wheel_of("impi_devel-2021.18.1.dist-info").as_deref(), Some("impi_devel 2021.18.1"));
        assert_eq!(wheel_of("pip"), None);
        assert_eq!(ucx_version("# Version 1.13.1\n# Git branch ''").as_deref(), Some("1.13.1"));
        assert_eq!(ucx_version("# Library version: 1.18.0\n").as_deref(), Some("1.18.0"));
        assert_eq!(ucx_version("no such thing"), None);
    }

    #[test]
    fn a_prefix_without_mpicc_is_none() {
        assert!(root_of(Path::new("no/such/prefix")).is_err());
        assert_eq!(library_in(Path::new("no/such/prefix")), None);
    }
}
