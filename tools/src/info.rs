//! `tasuki info`: what this machine offers, which variables are set, and which algorithms plans
//! would choose.

use crate::algorithm_choices::{self, Choices};
use serde::Serialize;
use std::fmt::Write;
use tasuki_command::{print, warn};
use tasuki_core::bootstrap::environment_variables::{self, Environment, Row};
use tasuki_core::bootstrap::settings::Settings;
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::membarrier::{self, FenceScope};
use tasuki_core::os::{affinity, available_memory, process, process_vm};
use tasuki_core::segment::layout;

const EXAMPLE: &str = "\
Examples:
  tasuki info
  tasuki info --env
  tasuki info --collectives --ranks 8
  tasuki info --json | jq .facilities";

/// Show version, machine, variables, and algorithms.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Show the variables that Tasuki reads: name, default, value, and where the value comes from
    #[arg(long)]
    env: bool,
    /// Show the algorithm that plans would choose for each collective, and the estimated time of a
    /// start
    #[arg(long, conflicts_with = "env")]
    collectives: bool,
    /// Number of ranks [default: one for each processor]
    #[arg(short = 'n', long, value_name = "N", value_parser = algorithm_choices::ranks, requires = "collectives")]
    ranks: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `tasuki info` shows.
#[derive(Serialize)]
struct Machine {
    version: &'static str,
    protocol: u32,
    layout: String,
    architecture: &'static str,
    kernel: String,
    processors_allowed: Vec<usize>,
    processors_usable: usize,
    memory_available_bytes: u64,
    memory_limit: String,
    facilities: Vec<Facility>,
}

/// A facility of the system, whether it is there, and what is done without it.
#[derive(Serialize)]
struct Facility {
    name: &'static str,
    usable: bool,
    remark: String,
}

/// A variable.
#[derive(Serialize)]
struct Variable {
    name: &'static str,
    default: &'static str,
    value: String,
    origin: &'static str,
    allowed: &'static str,
    meaning: &'static str,
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    if args.collectives {
        let choices = Choices::here(args.ranks)?;
        print(&if args.json { json(&choices)? } else { choices.table() })?;
        return Ok(0);
    }
    let text = match (args.env, args.json) {
        (true, true) => json(&environment())?,
        (true, false) => environment_table(&environment()),
        (false, true) => json(&machine())?,
        (false, false) => machine_table(&machine()),
    };
    print(&text)?;
    if args.env {
        let environment = Environment::current();
        let wrong = Settings::parse(&environment).err().map(|error| error.to_string());
        for remark in environment.unknown().into_iter().chain(wrong) {
            warn(&remark);
        }
    }
    Ok(0)
}

fn json(what: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(what)?))
}

fn machine() -> Machine {
    let available = available_memory::available();
    Machine {
        version: env!("CARGO_PKG_VERSION"),
        protocol: layout::PROTOCOL,
        layout: format!("{:016x}", layout::HASH),
        architecture: std::env::consts::ARCH,
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string(),
        processors_allowed: affinity::allowed(),
        processors_usable: affinity::usable(),
        memory_available_bytes: available.bytes,
        memory_limit: available.limit,
        facilities: facilities(),
    }
}

fn facilities() -> Vec<Facility> {
    // A variable for tests disables system features; another place reports a wrong value of it.
    let denied = Settings::parse(&Environment::current())
        .map_or(DisabledFeatures::default(), |settings| settings.disabled);
    let barrier = membarrier::register(FenceScope::Registered, denied);
    let pidfd = process::pidfd(std::process::id(), denied).is_some();
    let copies = process_vm::permitted(denied);
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let among_ranks = copies && matches!(scope.trim(), "" | "0");
    let remark = |usable: bool, with: &str, without: &str| if usable { with } else { without }.to_string();
    vec![
        Facility {
            name: "membarrier",
            usable: barrier,
            remark: remark(barrier, "raising a signal costs no fence", "each signal raised costs a fence"),
        },
        Facility {
            name: "pidfd",
            usable: pidfd,
            remark: remark(
                pidfd,
                "it reports the ends of processes",
                "SIGCHLD reports the ends of processes",
            ),
        },
        Facility {
            name: "process_vm",
            usable: among_ranks,
            remark: match (copies, among_ranks) {
                (_, true) => "memory outside the job is copied by the kernel".into(),
                (true, false) => {
                    format!(
                        "not between ranks (kernel.yama.ptrace_scope = {}): owners are asked",
                        scope.trim()
                    )
                }
                (false, _) => "refused: owners of memory outside the job are asked".into(),
            },
        },
    ]
}

fn machine_table(machine: &Machine) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("tasuki", format!("{} (protocol {}, layout {})", machine.version, machine.protocol, machine.layout));
    line("system", format!("Linux {} on {}", machine.kernel, machine.architecture));
    let allowed = machine.processors_allowed.len();
    let paid = if machine.processors_usable < allowed { " (the container's quota)" } else { "" };
    line("processors", format!("{} of {allowed} allowed{paid}", machine.processors_usable));
    let mib = machine.memory_available_bytes >> 20;
    line("memory", format!("{mib} MiB available: {}", machine.memory_limit));
    for facility in &machine.facilities {
        line(facility.name, format!("{}: {}", if facility.usable { "yes" } else { "no" }, facility.remark));
    }
    text
}

fn environment() -> Vec<Variable> {
    Environment::current().rows().into_iter().map(variable).collect()
}

fn variable(row: Row) -> Variable {
    let environment_variables::Variable { name, default, allowed, meaning, .. } = *row.variable;
    let hidden = name == environment_variables::KEY && !row.value.is_empty();
    let value = if hidden { "(secret)".into() } else { row.value };
    Variable { name, default, value, origin: row.origin, allowed, meaning }
}

fn environment_table(variables: &[Variable]) -> String {
    let shown = |value: &str| if value.is_empty() { "-".to_string() } else { value.to_string() };
    let mut text = format!("{:<20} {:<8} {:<40} origin\n    meaning (values)\n", "name", "default", "value");
    for v in variables {
        let (default, value) = (shown(v.default), shown(&v.value));
        let _ = writeln!(text, "{:<20} {default:<8} {value:<40} {}", v.name, v.origin);
        let _ = writeln!(text, "    {} ({})", v.meaning, v.allowed);
    }
    text
}
