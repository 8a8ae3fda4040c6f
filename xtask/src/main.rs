//! The chores of the repository: `cargo xtask test` checks everything, `cargo xtask tidy` the rules of the
//! house; `cargo xtask peers` installs what the bench is compared with.
// Printing is what this program is for.

use anyhow::Result;
use cargo_metadata::MetadataCommand;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod peers;
mod test;
mod tidy;
mod tree;

/// Chores of the Tasuki repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check in sequence: style, tests, documentation, model checking, sanitizers, examples.
    Test(test::Options),
    /// Install the libraries that the bench compares with: mpich, openmpi, intel, ucx.
    Peers(peers::Options),
    /// Check the rules of the house that neither the compiler nor clippy knows.
    Tidy,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let workspace = MetadataCommand::new().no_deps().exec()?;
    let all_well = match arguments.chore {
        Chore::Test(options) => test::run(&workspace, &options)?,
        Chore::Peers(options) => peers::run(&workspace, &options)?,
        Chore::Tidy => tidy::run(workspace.workspace_root.as_std_path())?,
    };
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
