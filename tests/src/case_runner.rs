//! Runs cases and failing jobs on threads, in other processes and on the simulator.

use crate::exchange::is_watched;
use crate::failing_jobs::Failing;
use crate::simulated_machines::{MACHINES, Machine, OFFERING};
use crate::watchdog::Watchdog;
use crate::{Case, failing_jobs, table};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};
use tasuki::Sim;
use tasuki::engine::Simulated;

/// Environment variables of the library's test switches, with their values.
pub type Switches = &'static [(&'static str, &'static str)];

/// Runs a case on threads of this process, once for each number of ranks of the case; where AddressSanitizer slows
/// everything down, with few and with many.
pub fn on_threads(name: &str) {
    let case = the_case(name);
    let counts = if is_watched() { case.few_and_many(5) } else { case.counts().collect() };
    for ranks in counts {
        let _watched = Watchdog::over(format!("{name} on {ranks} threads"));
        if let Err(error) = tasuki::local_with(ranks, case.handlers(), case.body) {
            panic!("{name} on {ranks} threads: {error}");
        }
    }
}

/// Runs a failing job on threads of this process.
pub fn failing_on_threads(name: &str) {
    let failing = the_failing(name);
    let _watched = Watchdog::over(format!("{name} on threads"));
    let outcome = tasuki::local_with(failing.ranks, failing.handlers(), failing.body);
    let error = outcome.expect_err("the job must fail");
    says_what_it_should(failing, &error.to_string());
}

/// The virtual time after which the simulator ends a case with an error. No case needs that much. A case that hangs
/// ends with an error that says what each rank waits for, long before the watchdog would abort the process without that
/// information.
const VIRTUAL_NS_MAX: u64 = 20_000_000_000;

/// Runs a case on simulated ranks: each number of ranks of the case, on each machine of `MACHINES`, with each seed. A
/// case that takes long runs on each machine with every second number of ranks only, and on its neighbours with the
/// other ones.
pub fn on_sim(name: &str, seeds: Range<u64>, takes_long: bool) {
    on_machines(&MACHINES, name, seeds, takes_long);
}

/// Runs a case as `on_sim` does, on the networks that have a barrier and a multicast of their own.
pub fn on_offering_sim(name: &str, seeds: Range<u64>) {
    on_machines(&OFFERING, name, seeds, false);
}

fn on_machines(machines: &[Machine], name: &str, seeds: Range<u64>, takes_long: bool) {
    let case = the_case(name);
    for (number, machine) in machines.iter().enumerate() {
        for ranks in case.counts().filter(|ranks| !takes_long || (ranks + number) % 2 == 0) {
            for seed in seeds.clone() {
                simulated(case, machine, ranks, seed);
            }
        }
    }
}

/// Runs a case twice with one seed on each machine. Both runs must have exactly the same events.
pub fn the_same_again_on_sim(name: &str) {
    let case = the_case(name);
    let ranks = case.counts().max().unwrap_or(1);
    for (seed, machine) in (100..).zip(&MACHINES) {
        let once = simulated(case, machine, ranks, seed);
        let again = simulated(case, machine, ranks, seed);
        assert_eq!(once, again, "{name} on {} differs from run to run, seed {seed}", machine.name);
        let other = simulated(case, machine, ranks, seed + 1000);
        assert_ne!(
            once.trace_hash, other.trace_hash,
            "{name} on {}: another seed changes nothing",
            machine.name
        );
    }
}

fn simulated(case: &Case, machine: &Machine, ranks: usize, seed: u64) -> Simulated<()> {
    let what = format!("{} on {ranks} simulated ranks, {}, seed {seed}", case.name, machine.name);
    let _watched = Watchdog::over(what.clone());
    let sim = (machine.of)(Sim::seed(seed).ranks(ranks)).time_max_ns(VIRTUAL_NS_MAX);
    tasuki::sim_with(sim, case.handlers(), case.body).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Runs a failing job on simulated ranks.
pub fn failing_on_sim(failing: &Failing, seeds: Range<u64>) {
    for machine in &MACHINES {
        for seed in seeds.clone() {
            let what = format!("{} on {}, seed {seed}", failing.name, machine.name);
            let _watched = Watchdog::over(what.clone());
            let sim = (machine.of)(Sim::seed(seed).ranks(failing.ranks)).time_max_ns(VIRTUAL_NS_MAX);
            let error = tasuki::sim_with(sim, failing.handlers(), failing.body).expect_err(&what);
            says_what_it_should(failing, &error.to_string());
        }
    }
}

/// Runs a case with switches set, in a process of its own, first with few ranks, then with more.
pub fn on_switched_threads(program: &str, name: &str, switches: Switches) {
    let case = the_case(name);
    for ranks in case.few_and_many(4) {
        let output = start(program, name, ranks, switches);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{name} on {ranks} threads, {switches:?}: {}\n{said}",
            output.status
        );
    }
}

/// Runs a failing job with switches set, in a process of its own.
pub fn failing_on_switched_threads(program: &str, name: &str, switches: Switches) {
    let failing = the_failing(name);
    let output = start(program, name, failing.ranks, switches);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{name}, {switches:?}: {said}");
    says_what_it_should(failing, &said);
}

/// Runs a case in a process that no launcher started: a job of one rank.
pub fn alone(program: &str, name: &str) {
    let output = start(program, name, 0, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} alone: {}\n{said}", output.status);
}

/// Runs `program` with the given `TASUKI_` variables and no others. With `ranks` 0 nothing tells
/// the program how many ranks to have.
fn start(program: &str, name: &str, ranks: usize, switches: Switches) -> Output {
    let mut command = without_variables(Path::new(program));
    if ranks > 0 {
        command.env("TASUKI_THREADS", ranks.to_string());
    }
    command
        .arg(name)
        .envs(switches.iter().copied())
        .output()
        .expect("the program of all cases can be started")
}

/// A command for `program` without the `TASUKI_` variables of this process.
pub(crate) fn without_variables(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TASUKI_"))
    {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn says_what_it_should(failing: &Failing, text: &str) {
    for wanted in failing.says {
        assert!(text.contains(wanted), "{}: {wanted:?} is not in: {text}", failing.name);
    }
}

/// Returns the case of that name.
pub fn the_case(name: &str) -> &'static Case {
    table::find(name).expect("the test was made from the table")
}

pub(crate) fn the_failing(name: &str) -> &'static Failing {
    failing_jobs::find(name).expect("the test was made from the table")
}
