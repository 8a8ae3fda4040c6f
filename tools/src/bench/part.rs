//! What the processes that the bench starts are to do: this very program, with one argument that says it.

use super::figure::Event;
use super::limit::{Rounds, answer_probe};
use super::plan::Plan;
use super::{memory, pair, startup, waiting};
use crate::run::spawn::ends_with_us;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use tasuki::{Job, Rank};

/// The hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "__bench-part";

/// A part to play.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Part {
    /// A rank of two that play cases against limits.
    Two(Plan),
    /// A rank that meets the others and leaves.
    Startup,
    /// A rank that waits for a signal that never comes.
    Waiting,
    /// A rank that looks at its memory.
    Memory,
    /// No rank: answers hand-overs on this processor.
    Probe(usize, Rounds),
}

impl Part {
    /// What starts a process that plays this part without any launcher.
    pub(super) fn alone(&self) -> anyhow::Result<Command> {
        let mut command = Command::new(program()?);
        command.arg(SUBCOMMAND).arg(serde_json::to_string(self)?);
        ends_with_us(&mut command, Signal::KILL);
        Ok(command)
    }

    /// What starts a job whose ranks play this part: `tasuki run` as any user types it, bound if processors are named.
    pub(super) fn job(&self, ranks: usize, processors: &[usize]) -> anyhow::Result<Command> {
        let program = program()?;
        let mut command = Command::new(&program);
        command.args(["run", "-n", &ranks.to_string()]);
        if !processors.is_empty() {
            let list: Vec<String> = processors.iter().map(ToString::to_string).collect();
            command.args(["--bind", &list.join(",")]);
        }
        command.arg("--").arg(&program).arg(SUBCOMMAND).arg(serde_json::to_string(self)?);
        ends_with_us(&mut command, Signal::TERM);
        Ok(command)
    }
}

fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?)
}

/// The hidden subcommand's arguments.
#[derive(clap::Args)]
pub(crate) struct PartArgs {
    /// The part, as JSON.
    part: String,
    /// Where the probe finds the limit's memory.
    file: Option<String>,
}

/// Plays a part.
pub(crate) fn play(args: &PartArgs) -> ExitCode {
    let part = match serde_json::from_str(&args.part) {
        Ok(part) => part,
        Err(error) => return failed(&error.to_string()),
    };
    match part {
        Part::Two(plan) => tasuki::main(|job| pair::app(job, &plan, &|event| tell_if_first(job, &event))),
        Part::Startup => tasuki::main(startup::app),
        Part::Waiting => tasuki::main(|job| waiting::app(job, &tell)),
        Part::Memory => tasuki::main(|job| memory::app(job, &tell)),
        Part::Probe(processor, rounds) => {
            match answer_probe(args.file.as_deref().unwrap_or_default(), processor, rounds) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error.to_string()),
            }
        }
    }
}

fn failed(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr().lock(), "{SUBCOMMAND}: {why}");
    ExitCode::FAILURE
}

fn tell_if_first(job: &Job, event: &Event) {
    if job.rank() == Rank(0) {
        tell(event.clone());
    }
}

/// One line of standard output. Nobody to hear it is no reason to fail.
fn tell(event: Event) {
    if let Ok(line) = serde_json::to_string(&event) {
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}
