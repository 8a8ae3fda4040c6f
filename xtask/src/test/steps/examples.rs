//! Runs every example in three ways: as processes, as threads, simulated.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use cargo_metadata::Target;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The options after `tasuki run -n 4`.
const WAYS: &[&[&str]] = &[&[], &["--threads"], &["--fabric", "sim", "--seed", "1"]];
const RANKS: &str = "4";

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let tool = build(shell)?;
    let examples = programs(shell);
    if examples.is_empty() {
        bail!("no program in tasuki-examples");
    }
    // Examples write their files below the target folder.
    let folder = shell.folder("xtask/examples")?;
    for example in &examples {
        let variants = variants(example, &folder)?;
        for (way, arguments) in WAYS.iter().flat_map(|way| variants.iter().map(move |variant| (way, variant)))
        {
            let mut command = Command::new(&tool);
            command.args(["run", "-n", RANKS]).args(*way).arg(example).args(arguments).current_dir(&folder);
            if shell.expect(&mut command)?.trim().is_empty() {
                bail!("{} printed nothing, started with {way:?}", example.display());
            }
        }
    }
    Ok(Outcome::Passed(format!("{} examples, {} ways each", examples.len(), WAYS.len())))
}

/// The arguments of an example: those that it needs, and its other variants.
fn variants(example: &Path, folder: &Path) -> Result<Vec<Vec<OsString>>> {
    if example.ends_with("heat") {
        return Ok(["puts", "messages", "commands"].map(|way| vec!["--by".into(), way.into()]).to_vec());
    }
    if example.ends_with("graph") {
        return Ok(vec![["--scale", "10", "--roots", "2", "--check"].map(OsString::from).to_vec()]);
    }
    if example.ends_with("farm") {
        return Ok(vec![["--size", "100", "--slow", "2", "--check"].map(OsString::from).to_vec()]);
    }
    if example.ends_with("sgd") {
        return Ok(vec![["--steps", "30"].map(OsString::from).to_vec()]);
    }
    if !example.ends_with("kmer") {
        return Ok(vec![Vec::new()]);
    }
    let file = folder.join("letters.fa");
    let letters = (0..2000_usize).map(|place| b"ACGT"[(place * place / 7) % 4] as char);
    fs::write(&file, format!(">letters\n{}\n", letters.collect::<String>()))?;
    Ok(vec![vec!["--check".into(), "-k".into(), "5".into(), file.into()]])
}

/// Builds the tool and the examples, and returns the tool. It uses the features of the tests, so
/// that shared crates are not built again with fewer features.
pub(super) fn build(shell: &Shell) -> Result<PathBuf> {
    shell.expect(&mut shell.cargo("build --workspace --bins --examples"))?;
    Ok(built(shell).join("tasuki"))
}

/// The executables of the package of examples.
fn programs(shell: &Shell) -> Vec<PathBuf> {
    let packages = shell.workspace.packages.iter().filter(|package| package.name == "tasuki-examples");
    packages.flat_map(|package| &package.targets).filter_map(|target| executable(shell, target)).collect()
}

fn executable(shell: &Shell, target: &Target) -> Option<PathBuf> {
    let folder = if target.is_example() { built(shell).join("examples") } else { built(shell) };
    (target.is_bin() || target.is_example()).then(|| folder.join(&target.name))
}

fn built(shell: &Shell) -> PathBuf {
    shell.workspace.target_directory.as_std_path().join("debug")
}
