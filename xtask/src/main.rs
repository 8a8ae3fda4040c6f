//! Maintenance commands of the repository: `cargo xtask test` runs all checks, `cargo xtask tidy`
//! checks the project's own rules, `cargo xtask peers` installs the libraries with which the bench
//! compares, and `cargo xtask install` the libraries for C and Fortran.
// This program's purpose is to print.

use anyhow::Result;
use cargo_metadata::MetadataCommand;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod install;
mod peers;
mod test;
mod tidy;
mod tree;

/// Maintenance commands of the Tasuki repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check in sequence: style, tests, documentation, model checking, sanitizers,
    /// examples.
    Test(test::Options),
    /// Install the libraries with which the bench compares: mpich, openmpi, intel, ucx.
    Peers(peers::Options),
    /// Install the command and the libraries for C and Fortran below a folder.
    Install(install::Options),
    /// Check the project's own rules, which neither the compiler nor clippy checks.
    Tidy,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let workspace = MetadataCommand::new().no_deps().exec()?;
    let all_well = match arguments.chore {
        Chore::Test(options) => test::run(&workspace, &options)?,
        Chore::Peers(options) => peers::run(&workspace, &options)?,
        Chore::Install(options) => install::run(&workspace, &options)?,
        Chore::Tidy => tidy::run(workspace.workspace_root.as_std_path())?,
    };
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
