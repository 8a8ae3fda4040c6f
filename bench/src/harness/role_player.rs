//! A process that the bench has started plays its role: it runs the function of a case, or of the tuning.

use super::process_role::{ProcessRole, SUBCOMMAND, report, say};
use super::rank_server;
use crate::cases::commands::handlers;
use crate::cases::memory::{planning_ranks, reporting, sending_ranks, stepping_ranks};
use crate::cases::whole_jobs::{startup_ranks, waiting_ranks};
use crate::tuning::plan_times;
use std::io::Write;
use std::process::ExitCode;
use tasuki::Handlers;

/// The arguments of the hidden subcommand.
#[derive(clap::Args)]
pub struct ProcessRoleArgs {
    role: String,
}

/// Runs the hidden subcommand.
pub fn play(args: &ProcessRoleArgs) -> ExitCode {
    match serde_json::from_str(&args.role) {
        Ok(ProcessRole::Measure(plan)) => {
            let handlers = if plan.has_handlers() { handlers() } else { Handlers::new() };
            tasuki::main_with(&handlers, |job| rank_server::serve(job, &plan, &rank_server::read_order, &say))
        }
        Ok(ProcessRole::Startup) => tasuki::main(startup_ranks),
        Ok(ProcessRole::Waiting) => tasuki::main(waiting_ranks),
        Ok(ProcessRole::RankMemory) => tasuki::main(reporting(stepping_ranks)),
        Ok(ProcessRole::MessageMemory) => tasuki::main(reporting(sending_ranks)),
        Ok(ProcessRole::PlanMemory) => tasuki::main(reporting(planning_ranks)),
        Ok(ProcessRole::PlanTimes) => {
            tasuki::main(|job| plan_times::measure(job, plan_times::USUAL, &report))
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "{SUBCOMMAND}: {error}");
            ExitCode::FAILURE
        }
    }
}
