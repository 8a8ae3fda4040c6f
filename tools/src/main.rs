//! The `tasuki` command: one file, or folder, for each of its subcommands.

mod algorithm_choices;
mod arguments;
mod demo;
mod info;
mod plan;
mod ps;
mod run;
mod sim;
mod svg_drawing;
mod trace;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tasuki_bench as bench;
use tasuki_command::{MISUSE, outcome};
use tasuki_core::bootstrap::did_you_mean::nearest;

/// Programs of many processes: start them, see what they wait for.
#[derive(Parser)]
#[command(name = "tasuki", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Run(run::args::Args),
    Ps(ps::Args),
    Trace(trace::Args),
    Plan(plan::Args),
    Bench(bench::Args),
    Info(info::Args),
    Sim(sim::Args),
    /// Runs a rank of the demonstration.
    #[command(name = demo::SUBCOMMAND, hide = true)]
    DemoRank(demo::RankArgs),
    /// Runs a rank of the bench.
    #[command(name = bench::SUBCOMMAND, hide = true)]
    BenchPart(bench::ProcessRoleArgs),
    /// Ends the processes of a job whose launcher was killed.
    #[command(name = run::keeper::SUBCOMMAND, hide = true)]
    Keeper {
        /// The job, as shown in lists of processes.
        job: String,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return outcome(show(&with_suggestion(error))),
    };
    match cli.command {
        Command::Demo(args) => outcome(demo::command(&args)),
        Command::DemoRank(args) => demo::rank(&args),
        Command::Bench(args) => outcome(bench::command(&args)),
        Command::BenchPart(args) => bench::play(&args),
        Command::Run(args) => outcome(run::command(args)),
        Command::Ps(args) => outcome(ps::command(&args)),
        Command::Trace(args) => outcome(trace::command(&args)),
        Command::Plan(args) => outcome(plan::command(&args)),
        Command::Sim(args) => outcome(sim::command(&args)),
        Command::Info(args) => outcome(info::command(&args)),
        Command::Keeper { .. } => run::keeper::keep(),
    }
}

/// Prints what the command line asks for, such as help, or what is wrong with it.
fn show(answer: &clap::Error) -> anyhow::Result<u8> {
    answer.print()?;
    Ok(answer.exit_code().try_into().unwrap_or(MISUSE))
}

/// Names the nearest subcommand for a wrong one where clap finds none near enough.
fn with_suggestion(mut error: clap::Error) -> clap::Error {
    if error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand)
    {
        let cli = Cli::command();
        let names =
            cli.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        if let Some(right) = nearest(wrong, names) {
            let right = ContextValue::Strings(vec![right.to_string()]);
            error.insert(ContextKind::SuggestedSubcommand, right);
        }
    }
    error
}
