//! What the processes that the bench starts are to do, and how it starts them. Each of them is this program, with one
//! argument that names its role.

use super::rank_server::Plan;
use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::process::{Command, Stdio};
use tasuki_command::child::ends_with_us;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__bench-part";

/// What a rank does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ProcessRole {
    /// Measures the groups of a plan.
    Measure(Plan),
    Startup,
    Waiting,
    RankMemory,
    MessageMemory,
    PlanMemory,
    PlanTimes,
}

impl ProcessRole {
    /// Returns the command that starts a job of this many ranks with these options of `tasuki run`.
    pub(crate) fn job(&self, ranks: usize, options: &[String]) -> anyhow::Result<Command> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(&program);
        command.args(["run", "-n", &ranks.to_string()]).args(options);
        command.arg("--").arg(&program).arg(SUBCOMMAND).arg(serde_json::to_string(self)?);
        ends_with_us(&mut command, Signal::TERM);
        Ok(command)
    }

    /// Runs such a job and returns what its ranks report, in no order.
    pub(crate) fn reports(&self, ranks: usize, options: &[String]) -> anyhow::Result<Vec<(String, u64)>> {
        let mut command = self.job(ranks, options)?;
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.context("tasuki run could not be started")?;
        ensure!(output.status.success(), "the job of {ranks} ranks failed ({})", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(reported).collect())
    }
}

/// Reports a number on standard output.
pub(crate) fn report(what: &str, number: u64) {
    say(&serde_json::json!([what, number]).to_string());
}

/// Parses a line that `report` wrote.
pub(crate) fn reported(line: &str) -> Option<(String, u64)> {
    serde_json::from_str(line).ok()
}

/// Writes a line to standard output. Errors are ignored: if nobody reads the line, the bench has ended, and it will end
/// this process.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
