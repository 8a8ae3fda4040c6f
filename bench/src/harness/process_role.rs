//! What the processes that the bench starts are to do: this very program, with one argument that says it.

use crate::cases::memory::message_memory;
use crate::cases::memory::plan_memory;
use crate::cases::memory::rank_memory;
use crate::cases::message_latency;
use crate::cases::overlap::collective_overlap;
use crate::cases::oversubscription;
use crate::cases::whole_job::startup;
use crate::cases::whole_job::waiting_ranks;
use crate::harness::control_channel::{self, Link, tell};
use crate::harness::measurement_plan::Plan;
use crate::harness::rank_group;
use crate::harness::rank_pair;
use crate::limit::{Rounds, answer_probe};
use crate::result::figure::Event;
use crate::tuning::plan_times;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use tasuki::{Job, Rank};
use tasuki_command::child::ends_with_us;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__bench-part";

/// A part to play.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ProcessRole {
    /// A rank of two that play cases against limits and other libraries.
    Pair(Plan),
    /// A rank of several that play collective calls.
    Group(Plan),
    /// A rank of several of which two exchange messages, so many for each figure.
    Oversubscribed(message_latency::SendMode, u64),
    /// A rank that meets the others and leaves.
    Startup,
    /// A rank that waits for a signal that never comes.
    Waiting,
    /// A rank that looks at its memory.
    RankMemory,
    /// The same, while it exchanges messages.
    MessageMemory,
    /// A rank that prepares plans and drops them.
    PlanMemory,
    /// A rank that works while its plans go on.
    OverlapColl(collective_overlap::OverlapEffort),
    /// A rank that starts plans.
    PlanTimes(plan_times::PlanTimesEffort),
    /// No rank: answers hand-overs on this processor.
    Probe(usize, Rounds),
}

impl ProcessRole {
    /// What starts a process that plays this part without any launcher.
    pub(crate) fn alone(&self) -> anyhow::Result<Command> {
        let mut command = Command::new(program()?);
        command.arg(SUBCOMMAND).arg(serde_json::to_string(self)?);
        ends_with_us(&mut command, Signal::KILL);
        Ok(command)
    }

    /// What starts a job whose ranks play this part: `tasuki run` as any user types it, bound if processors are named.
    pub(crate) fn job(&self, ranks: usize, processors: &[usize]) -> anyhow::Result<Command> {
        let list: Vec<String> = processors.iter().map(ToString::to_string).collect();
        let bound = ["--bind", &list.join(",")];
        self.run(ranks, if processors.is_empty() { &[] } else { &bound })
    }

    /// The same with simulated ranks.
    pub(crate) fn simulated(&self, ranks: usize) -> anyhow::Result<Command> {
        self.run(ranks, &["--fabric", "sim", "--seed", "1"])
    }

    /// The same with these options.
    pub(crate) fn run(&self, ranks: usize, options: &[&str]) -> anyhow::Result<Command> {
        let program = program()?;
        let mut command = Command::new(&program);
        command.args(["run", "-n", &ranks.to_string()]).args(options);
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
pub struct ProcessRoleArgs {
    /// The part, as JSON.
    part: String,
    /// Where the probe finds the limit's memory.
    file: Option<String>,
}

/// Plays a part.
pub fn play(args: &ProcessRoleArgs) -> ExitCode {
    let part = match serde_json::from_str(&args.part) {
        Ok(part) => part,
        Err(error) => return failed(&error.to_string()),
    };
    match part {
        ProcessRole::Pair(plan) => {
            tasuki::main_with(&plan.handlers(), |job| with_link(job, |link| rank_pair::app(job, &plan, link)))
        }
        ProcessRole::Group(plan) => {
            tasuki::main(|job| with_link(job, |link| rank_group::app(job, &plan, link)))
        }
        ProcessRole::Oversubscribed(mode, rounds) => tasuki::main(|job| {
            oversubscription::app(job, mode, rounds, &control_channel::hear, &control_channel::say)
        }),
        ProcessRole::Startup => tasuki::main(startup::app),
        ProcessRole::Waiting => tasuki::main(|job| waiting_ranks::app(job, &tell)),
        ProcessRole::RankMemory => tasuki::main(|job| rank_memory::app(job, &tell)),
        ProcessRole::MessageMemory => tasuki::main(|job| message_memory::app(job, &tell)),
        ProcessRole::PlanMemory => tasuki::main(|job| plan_memory::app(job, &tell)),
        ProcessRole::OverlapColl(effort) => tasuki::main(|job| collective_overlap::app(job, effort, &tell)),
        ProcessRole::PlanTimes(effort) => tasuki::main(|job| plan_times::app(job, effort, &tell)),
        ProcessRole::Probe(processor, rounds) => {
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

/// What the first rank has to tell and to ask goes to the bench.
fn with_link<T>(job: &Job, body: impl FnOnce(Link<'_>) -> T) -> T {
    let tell_if_first = |event: Event| {
        if job.rank() == Rank(0) {
            tell(event);
        }
    };
    body(Link { tell: &tell_if_first, ask: &control_channel::call_with_reply })
}
