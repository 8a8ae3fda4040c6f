//! Runs the whole test with one command: named steps in sequence, each with its time, and a table
//! at the end.

use anyhow::{Result, bail};
use cargo_metadata::Metadata;
use std::env;
use std::time::Instant;

mod failures;
mod libtest;
mod planted;
mod report;
mod shell;
mod step;
mod steps;
mod watchdog;

use report::Row;
use shell::Shell;
use step::Step;

/// Which part of the whole test to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only what is quick: skips documentation, model checking, sanitizers, examples and the demo.
    #[arg(long)]
    quick: bool,
    /// Only the steps whose name contains one of these words.
    names: Vec<String>,
}

/// Runs the steps and returns true if none failed. With `CI=true` a skipped step counts as a
/// failure unless it is optional.
pub(crate) fn run(workspace: &Metadata, options: &Options) -> Result<bool> {
    let strict = env::var("CI").is_ok_and(|value| value == "true");
    let chosen: Vec<&Step> = steps::ALL.iter().filter(|step| is_chosen(step, &options.names)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = steps::ALL.iter().map(|step| step.name).collect();
        bail!("no step of that name; there are: {}", names.join(", "));
    }
    let mut rows = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        report::heading(index + 1, chosen.len(), step.name);
        let start = Instant::now();
        let shell = Shell::open(workspace, step.name)?;
        let outcome = step.outcome(&shell, options.quick).judged(step, strict);
        let row = Row::new(step.name, outcome, start.elapsed(), &shell)?;
        row.print(&shell)?;
        rows.push(row);
    }
    Ok(report::summary(&rows))
}

fn is_chosen(step: &Step, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| step.name.contains(name.as_str()))
}
